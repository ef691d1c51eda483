#include "fairlead/mcp/types.hpp"

#include <array>

#include "json/members.hpp"

namespace fairlead::mcp {

namespace {

constexpr std::array<std::string_view, 5> kTaskStatusNames = {"working", "input_required", "completed",
                                                              "failed", "cancelled"};
constexpr std::array<std::string_view, 8> kLoggingLevelNames = {"debug", "info",     "notice", "warning",
                                                                "error", "critical", "alert",  "emergency"};

void write_string_unless_empty(json::Writer& out, std::string_view key, std::string_view value) {
  if (!value.empty()) out.key(key).string(value);
}

void write_bool_if_set(json::Writer& out, std::string_view key, const std::optional<bool>& value) {
  if (value) out.key(key).boolean(*value);
}

void write_raw_if_present(json::Writer& out, std::string_view key, const json::Raw& value) {
  if (!value.absent()) out.key(key).raw(value);
}

void write_icons(json::Writer& out, const std::vector<Icon>& icons, Revision revision) {
  if (icons.empty() || revision < Revision::r2025_11_25) return;
  out.key("icons").begin_array();
  for (const Icon& icon : icons) write(out, icon);
  out.end_array();
}

void write_title(json::Writer& out, const std::string& title, Revision revision) {
  if (revision >= Revision::r2025_06_18) write_string_unless_empty(out, "title", title);
}

void write_meta(json::Writer& out, const json::Raw& meta, Revision revision) {
  if (revision >= Revision::r2025_06_18) write_raw_if_present(out, "_meta", meta);
}

Content make_block(std::string_view type,
                   std::initializer_list<std::pair<std::string_view, std::string_view>> members) {
  json::Writer out;
  out.begin_object().key("type").string(type);
  for (const auto& [key, value] : members) out.key(key).string(value);
  out.end_object();
  return Content(out.finish());
}

Content make_embedded_resource(std::string_view uri, std::string_view mime_type, std::string_view key,
                               std::string_view value) {
  json::Writer out;
  out.begin_object().key("type").string("resource").key("resource").begin_object().key("uri").string(uri);
  write_string_unless_empty(out, "mimeType", mime_type);
  out.key(key).string(value).end_object().end_object();
  return Content(out.finish());
}

// Before revision 2026-07-28 structured content had to be an object. For those revisions, a schema of another
// type is wrapped into the schema of an object, and so are the results of the tool (tool_calls.cpp).
void write_output_schema(json::Writer& out, const json::Raw& schema, Revision revision) {
  if (schema.absent()) return;
  const bool wrap = !is_modern(revision) && json::View(schema)["type"].as_string() != "object";
  out.key("outputSchema");
  if (!wrap) {
    out.raw(schema);
    return;
  }
  out.begin_object()
      .key("type")
      .string("object")
      .key("properties")
      .begin_object()
      .key("result")
      .raw(schema)
      .end_object();
  out.key("required").begin_array().string("result").end_array().end_object();
}

void write_annotations(json::Writer& out, const ToolAnnotations& hints) {
  if (hints.title.empty() && !hints.read_only && !hints.destructive && !hints.idempotent && !hints.open_world)
    return;
  out.key("annotations").begin_object();
  write_string_unless_empty(out, "title", hints.title);
  write_bool_if_set(out, "readOnlyHint", hints.read_only);
  write_bool_if_set(out, "destructiveHint", hints.destructive);
  write_bool_if_set(out, "idempotentHint", hints.idempotent);
  write_bool_if_set(out, "openWorldHint", hints.open_world);
  out.end_object();
}

}  // namespace

std::string_view to_string(LoggingLevel level) noexcept {
  return kLoggingLevelNames[static_cast<std::size_t>(level)];
}

std::optional<LoggingLevel> logging_level_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kLoggingLevelNames.size(); ++i) {
    if (kLoggingLevelNames[i] == name) return static_cast<LoggingLevel>(i);
  }
  return std::nullopt;
}

Content Content::text(std::string_view text) {
  return make_block("text", {{"text", text}});
}
Content Content::image(std::string_view data, std::string_view mime_type) {
  return make_block("image", {{"data", data}, {"mimeType", mime_type}});
}
Content Content::audio(std::string_view data, std::string_view mime_type) {
  return make_block("audio", {{"data", data}, {"mimeType", mime_type}});
}
Content Content::embedded_text(std::string_view uri, std::string_view mime_type, std::string_view text) {
  return make_embedded_resource(uri, mime_type, "text", text);
}
Content Content::embedded_blob(std::string_view uri, std::string_view mime_type, std::string_view blob) {
  return make_embedded_resource(uri, mime_type, "blob", blob);
}
Content Content::resource_link(std::string_view uri, std::string_view name, std::string_view mime_type) {
  json::Writer out;
  out.begin_object().key("type").string("resource_link").key("uri").string(uri).key("name").string(name);
  write_string_unless_empty(out, "mimeType", mime_type);
  out.end_object();
  return Content(out.finish());
}

Content Content::for_revision(Revision revision) const {
  if (revision >= Revision::r2025_06_18) return *this;
  const std::string kind = type();
  if (kind == "resource_link") return text(view()["uri"].as_string().value_or(""));
  if (kind == "audio" && revision < Revision::r2025_03_26) return text("[audio, " + mime_type() + "]");
  return *this;
}

ToolResult ToolResult::text(std::string_view text) {
  ToolResult result;
  result.content.push_back(Content::text(text));
  return result;
}

ToolResult ToolResult::error(std::string_view text) {
  ToolResult result = ToolResult::text(text);
  result.is_error = true;
  return result;
}

void write(json::Writer& out, const Icon& icon) {
  out.begin_object().key("src").string(icon.src);
  write_string_unless_empty(out, "mimeType", icon.mime_type);
  if (!icon.sizes.empty()) {
    out.key("sizes").begin_array();
    for (const std::string& size : icon.sizes) out.string(size);
    out.end_array();
  }
  write_string_unless_empty(out, "theme", icon.theme);
  out.end_object();
}

void write(json::Writer& out, const Implementation& implementation, Revision revision) {
  out.begin_object().key("name").string(implementation.name).key("version").string(implementation.version);
  write_title(out, implementation.title, revision);
  if (revision >= Revision::r2025_11_25) {
    write_string_unless_empty(out, "description", implementation.description);
    write_string_unless_empty(out, "websiteUrl", implementation.website_url);
  }
  write_icons(out, implementation.icons, revision);
  out.end_object();
}

std::string_view to_string(TaskStatus status) noexcept {
  return kTaskStatusNames[static_cast<std::size_t>(status)];
}
std::optional<TaskStatus> task_status_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kTaskStatusNames.size(); ++i) {
    if (kTaskStatusNames[i] == name) return static_cast<TaskStatus>(i);
  }
  return std::nullopt;
}

std::optional<TaskInfo> TaskInfo::parse(const json::Raw& raw) {
  constexpr std::size_t kMaxMembers = 1000;
  const json::Members view(
      json::View(raw),
      {"taskId", "status", "statusMessage", "ttlMs", "ttl", "pollIntervalMs", "pollInterval"}, kMaxMembers);
  if (view.exceeds_max()) return std::nullopt;
  const auto milliseconds = [&](const char* modern, const char* legacy) -> std::optional<std::uint64_t> {
    const std::optional<double> value = (view[modern].absent() ? view[legacy] : view[modern]).as_double();
    if (!value || !(*value >= 0 && *value < 1e15)) return std::nullopt;
    return static_cast<std::uint64_t>(*value);
  };
  const std::optional<std::string> id = view["taskId"].as_string();
  const std::optional<TaskStatus> status = task_status_named(view["status"].as_string().value_or(""));
  if (!id || !status) return std::nullopt;
  return TaskInfo{*id,
                  *status,
                  view["statusMessage"].as_string().value_or(""),
                  milliseconds("ttlMs", "ttl"),
                  milliseconds("pollIntervalMs", "pollInterval"),
                  raw};
}

void write(json::Writer& out, const ToolSpec& tool, Revision revision) {
  out.begin_object().key("name").string(tool.name);
  write_title(out, tool.title, revision);
  write_string_unless_empty(out, "description", tool.description);
  out.key("inputSchema")
      .raw(tool.input_schema.absent() ? std::string_view(R"({"type":"object"})") : tool.input_schema.text());
  if (revision >= Revision::r2025_06_18) write_output_schema(out, tool.output_schema, revision);
  if (revision >= Revision::r2025_03_26) write_annotations(out, tool.annotations);
  write_icons(out, tool.icons, revision);
  if (revision == Revision::r2025_11_25 && tool.task != TaskSupport::never) {
    const bool always = tool.task == TaskSupport::required;
    out.key("execution")
        .begin_object()
        .key("taskSupport")
        .string(always ? "required" : "optional")
        .end_object();
  }
  write_meta(out, tool.meta, revision);
  out.end_object();
}

void write(json::Writer& out, const ResourceSpec& resource, Revision revision, bool is_template) {
  out.begin_object()
      .key(is_template ? "uriTemplate" : "uri")
      .string(resource.uri)
      .key("name")
      .string(resource.name);
  write_title(out, resource.title, revision);
  write_string_unless_empty(out, "description", resource.description);
  write_string_unless_empty(out, "mimeType", resource.mime_type);
  if (resource.size && !is_template) out.key("size").unsigned_integer(*resource.size);
  write_icons(out, resource.icons, revision);
  write_meta(out, resource.meta, revision);
  out.end_object();
}

void write(json::Writer& out, const ResourceContents& contents) {
  out.begin_object().key("uri").string(contents.uri);
  write_string_unless_empty(out, "mimeType", contents.mime_type);
  if (contents.blob) {
    out.key("blob").string(*contents.blob);
  } else {
    out.key("text").string(contents.text.value_or(""));
  }
  out.end_object();
}

void write(json::Writer& out, const PromptSpec& prompt, Revision revision) {
  out.begin_object().key("name").string(prompt.name);
  write_title(out, prompt.title, revision);
  write_string_unless_empty(out, "description", prompt.description);
  if (!prompt.arguments.empty()) {
    out.key("arguments").begin_array();
    for (const PromptArgument& argument : prompt.arguments) {
      out.begin_object().key("name").string(argument.name);
      write_title(out, argument.title, revision);
      write_string_unless_empty(out, "description", argument.description);
      if (argument.required) out.key("required").boolean(true);
      out.end_object();
    }
    out.end_array();
  }
  write_icons(out, prompt.icons, revision);
  write_meta(out, prompt.meta, revision);
  out.end_object();
}

}  // namespace fairlead::mcp
