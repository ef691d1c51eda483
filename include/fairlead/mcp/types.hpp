// The protocol's data types. Types of received values (Content, TaskInfo …) store the JSON text and read its
// members on demand, because a value may have members that no revision defines. Types that are only sent are
// plain structs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/protocol/revision.hpp"

namespace fairlead::mcp {

struct Icon {
  std::string src;
  std::string mime_type;
  std::vector<std::string> sizes;
  std::string theme;
};

// Name and version of a client or a server. For display only; no behaviour depends on it.
struct Implementation {
  std::string name;
  std::string version;
  std::string title;
  std::string description;
  std::string website_url;
  std::vector<Icon> icons;
};

enum class LoggingLevel : std::uint8_t { debug, info, notice, warning, error, critical, alert, emergency };
std::string_view to_string(LoggingLevel level) noexcept;
std::optional<LoggingLevel> logging_level_named(std::string_view name) noexcept;

// One content block: text, image, audio, an embedded resource, a resource link, or an unknown type.
class Content {
 public:
  static Content text(std::string_view text);
  // `data` is base64.
  static Content image(std::string_view data, std::string_view mime_type);
  static Content audio(std::string_view data, std::string_view mime_type);
  static Content embedded_text(std::string_view uri, std::string_view mime_type, std::string_view text);
  static Content embedded_blob(std::string_view uri, std::string_view mime_type, std::string_view blob);
  static Content resource_link(std::string_view uri, std::string_view name, std::string_view mime_type = {});
  // Wraps a received block, or one that the caller has encoded.
  explicit Content(json::Raw raw) : raw_(std::move(raw)) {}

  // Each returns the member of the same name; empty if there is none.
  std::string type() const { return view()["type"].as_string().value_or(""); }
  std::string text() const { return view()["text"].as_string().value_or(""); }
  // The data of an image or audio block, as base64.
  std::string data() const { return view()["data"].as_string().value_or(""); }
  std::string mime_type() const { return view()["mimeType"].as_string().value_or(""); }
  json::View view() const { return json::View(raw_); }
  const json::Raw& raw() const noexcept { return raw_; }

  // Returns the block in a form that `revision` supports: text instead of audio before revision 2025-03-26,
  // and instead of resource links before revision 2025-06-18.
  Content for_revision(Revision revision) const;

 private:
  json::Raw raw_;
};

struct ToolResult {
  std::vector<Content> content;
  json::Raw structured;  // structured content; absent if there is none
  bool is_error = false;
  json::Raw meta;  // the `_meta` object, or absent
  // Only for results of a server's tools: the text of one more block, after those of `content`. It is encoded
  // with the response, without a copy before. If it is unset and there are no other blocks, the structured
  // content is also sent as text.
  std::optional<std::string> unencoded_text;

  static ToolResult text(std::string_view text);
  static ToolResult error(std::string_view text);
};

// Hints about a tool; unset hints are not sent.
struct ToolAnnotations {
  std::string title;
  std::optional<bool> read_only;
  std::optional<bool> destructive;
  std::optional<bool> idempotent;
  std::optional<bool> open_world;
};

// Whether calls of a tool may become tasks, that is, work that continues after the response. In the modern
// era the server decides whether a call becomes a task, if the client supports tasks; in revision 2025-11-25
// the client decides.
enum class TaskSupport : std::uint8_t {
  never,
  optional,  // modern: if the handler calls become_task(); 2025-11-25: if the client requests it
  required,  // always, from the start; calls of clients without task support are rejected
};

enum class TaskStatus : std::uint8_t { working, input_required, completed, failed, cancelled };
std::string_view to_string(TaskStatus status) noexcept;
std::optional<TaskStatus> task_status_named(std::string_view name) noexcept;

// The state of a task as the remote peer last reported it.
struct TaskInfo {
  std::string id;
  TaskStatus status = TaskStatus::working;
  std::string message;                   // status message, for people
  std::optional<std::uint64_t> ttl_ms;   // time to live, from its creation; nullopt means unlimited
  std::optional<std::uint64_t> poll_ms;  // poll interval that the remote peer suggests
  json::Raw raw;  // the complete object; in the modern era with `inputRequests`, `result` or `error`

  bool ended() const noexcept { return status >= TaskStatus::completed; }
  // Returns nullopt if `raw` is not a task, or has more than 1,000 members.
  static std::optional<TaskInfo> parse(const json::Raw& raw);
};

struct ToolSpec {
  std::string name;
  std::string title;
  std::string description;
  json::Raw input_schema;   // if absent, the arguments are an object with any members
  json::Raw output_schema;  // absent if the tool has no structured content
  ToolAnnotations annotations;
  std::vector<Icon> icons;
  json::Raw meta;
  TaskSupport task = TaskSupport::never;
};

struct ResourceSpec {
  std::string uri;  // the URI template if this is a resource template
  std::string name;
  std::string title;
  std::string description;
  std::string mime_type;
  std::optional<std::uint64_t> size;
  std::vector<Icon> icons;
  json::Raw meta;
};

// One element of the result of resources/read; either `text` or `blob` is set.
struct ResourceContents {
  std::string uri;
  std::string mime_type;
  std::optional<std::string> text;
  std::optional<std::string> blob;  // base64
};

struct PromptArgument {
  std::string name;
  std::string title;
  std::string description;
  bool required = false;
};

struct PromptSpec {
  std::string name;
  std::string title;
  std::string description;
  std::vector<PromptArgument> arguments;
  std::vector<Icon> icons;
  json::Raw meta;
};

struct PromptMessage {
  std::string role;  // "user" or "assistant"
  Content content;
};

struct PromptResult {
  std::string description;
  std::vector<PromptMessage> messages;
};

struct CompletionResult {
  std::vector<std::string> values;  // at most 100 are sent
  std::optional<std::uint64_t> total;
  bool has_more = false;
};

struct ElicitResult {
  enum class Action : std::uint8_t { accept, decline, cancel };
  Action action = Action::cancel;
  json::Raw content;  // the values of an accepted form; absent otherwise
};

struct Root {
  std::string uri;
  std::string name;
};

// How long, and for which clients, a modern result may be cached.
struct CacheHint {
  std::uint64_t ttl_ms = 0;
  bool is_public = false;  // may be cached for all clients, not only for the one that requested it
};

// Write a value as JSON. Members that `revision` does not define are omitted.
void write(json::Writer& out, const Icon& icon);
void write(json::Writer& out, const Implementation& implementation, Revision revision);
void write(json::Writer& out, const ToolSpec& tool, Revision revision);
void write(json::Writer& out, const ResourceSpec& resource, Revision revision, bool is_template);
void write(json::Writer& out, const ResourceContents& contents);
void write(json::Writer& out, const PromptSpec& prompt, Revision revision);

}  // namespace fairlead::mcp
