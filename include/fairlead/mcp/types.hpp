// The protocol's data as C++ values. What a peer sends may have more members than a revision names, so things
// that come in are kept as the JSON they were (Content, ToolInfo …) and looked into; things that go out are
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

// Who a client or a server is. For people to read; nothing is decided by it.
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

// One block of content: text, image, audio, a resource, a link to one, or a kind nobody has heard of yet.
class Content {
 public:
  static Content text(std::string_view text);
  // `data` is base64.
  static Content image(std::string_view data, std::string_view mime_type);
  static Content audio(std::string_view data, std::string_view mime_type);
  static Content embedded_text(std::string_view uri, std::string_view mime_type, std::string_view text);
  static Content embedded_blob(std::string_view uri, std::string_view mime_type, std::string_view blob);
  static Content resource_link(std::string_view uri, std::string_view name, std::string_view mime_type = {});
  // A block as it came, or of your own making.
  explicit Content(json::Raw raw) : raw_(std::move(raw)) {}

  std::string type() const { return view()["type"].as_string().value_or(""); }
  std::string text() const { return view()["text"].as_string().value_or(""); }
  std::string data() const { return view()["data"].as_string().value_or(""); }
  std::string mime_type() const { return view()["mimeType"].as_string().value_or(""); }
  json::View view() const { return json::View(raw_); }
  const json::Raw& raw() const noexcept { return raw_; }

  // The block as `revision` can have it: audio before 2025-03-26 and links before 2025-06-18 become text.
  Content for_revision(Revision revision) const;

 private:
  json::Raw raw_;
};

struct ToolResult {
  std::vector<Content> content;
  json::Raw structured;  // absent when there is none
  bool is_error = false;
  json::Raw meta;  // members for `_meta`, an object, or absent

  static ToolResult text(std::string_view text);
  static ToolResult error(std::string_view text);
};

// Hints about a tool; those that are not set are not sent.
struct ToolAnnotations {
  std::string title;
  std::optional<bool> read_only;
  std::optional<bool> destructive;
  std::optional<bool> idempotent;
  std::optional<bool> open_world;
};

// Whether calls of a tool may become tasks: work that goes on after its request has been answered. In the
// modern era the server decides, and only for clients that can; in 2025-11-25 the client does.
enum class TaskSupport : std::uint8_t {
  never,
  optional,  // modern: when the handler says so, see Context::become_task(); 2025-11-25: when the client asks
  required,  // from its start, always; a client that cannot is refused
};

enum class TaskStatus : std::uint8_t { working, input_required, completed, failed, cancelled };
std::string_view to_string(TaskStatus status) noexcept;
std::optional<TaskStatus> task_status_named(std::string_view name) noexcept;

// A task as the other side last told of it.
struct TaskInfo {
  std::string id;
  TaskStatus status = TaskStatus::working;
  std::string message;                  // what it is doing, for people
  std::optional<std::uint64_t> ttl_ms;  // kept for so long from its creation; no value: for good
  std::optional<std::uint64_t> poll_ms;
  json::Raw raw;  // all of it; in the modern era with `inputRequests`, `result` or `error`

  bool ended() const noexcept { return status >= TaskStatus::completed; }
  // nullopt if it is not a task, or has more than 1,000 members.
  static std::optional<TaskInfo> from(const json::Raw& raw);
};

struct ToolSpec {
  std::string name;
  std::string title;
  std::string description;
  json::Raw input_schema;   // absent: an object with any members
  json::Raw output_schema;  // absent: no structured content
  ToolAnnotations annotations;
  std::vector<Icon> icons;
  json::Raw meta;
  TaskSupport task = TaskSupport::never;
};

struct ResourceSpec {
  std::string uri;  // or, for a template, the URI template
  std::string name;
  std::string title;
  std::string description;
  std::string mime_type;
  std::optional<std::uint64_t> size;
  std::vector<Icon> icons;
  json::Raw meta;
};

// What reading a resource yields: text, or base64.
struct ResourceContents {
  std::string uri;
  std::string mime_type;
  std::optional<std::string> text;
  std::optional<std::string> blob;
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
  json::Raw content;  // of an accepted form; absent otherwise
};

struct Root {
  std::string uri;
  std::string name;
};

// How long and for whom a modern result may be cached.
struct CacheHint {
  std::uint64_t ttl_ms = 0;
  bool is_public = false;
};

// Writing the above. `revision` decides which members are left out.
void write(json::Writer& out, const Icon& icon);
void write(json::Writer& out, const Implementation& implementation, Revision revision);
void write(json::Writer& out, const ToolSpec& tool, Revision revision);
void write(json::Writer& out, const ResourceSpec& resource, Revision revision, bool is_template);
void write(json::Writer& out, const ResourceContents& contents);
void write(json::Writer& out, const PromptSpec& prompt, Revision revision);

}  // namespace fairlead::mcp
