#include "transport/streamable_state.hpp"

#include <algorithm>

#include "json/members.hpp"
#include "protocol/header_values.hpp"

namespace fairlead::transport {

bool StreamableState::on_send(const HttpClientMessage& message) {
  if (message.is_request()) {
    const std::optional<std::string_view> revision = message.modern_revision();
    modern_ = revision.has_value();
    if (revision) modern_revision_ = *revision;
    if (!modern_ && message.is_handshake()) {
      handshake_ = message.message();
      clear_session();
    }
  }
  return modern_;
}

std::optional<std::string_view> StreamableState::modern_revision_of(
    const HttpClientMessage& message) const noexcept {
  if (modern_ && message.is_notification() && !message.modern_revision()) return modern_revision_;
  return message.modern_revision();
}

http::Headers StreamableState::headers_for(const HttpClientMessage& message) {
  http::Headers headers = constant_headers_for(message);
  if (modern_revision_of(message)) add_params_headers(headers, message);
  return headers;
}

http::Headers StreamableState::constant_headers_for(const HttpClientMessage& message) const {
  http::Headers headers{{"Content-Type", "application/json"},
                        {"Accept", "application/json, text/event-stream"}};
  if (const std::optional<std::string_view> revision = modern_revision_of(message)) {
    headers.add(mcp::kVersionHeader, mcp::encode_header_value(*revision));
    headers.add(mcp::kMethodHeader, mcp::encode_header_value(message.method()));
  } else if (message.method() != "initialize") {
    for (const auto& [name, value] : session_headers()) headers.add(name, value);
  }
  return headers;
}

http::Headers StreamableState::session_headers() const {
  http::Headers headers;
  if (!session_id_.empty()) headers.add(mcp::kSessionHeader, session_id_);
  if (!negotiated_revision_.empty()) headers.add(mcp::kVersionHeader, negotiated_revision_);
  return headers;
}

bool StreamableState::has_argument_headers(const HttpClientMessage& message) {
  if (annotated_tools_.empty() || !modern_revision_of(message) || message.method() != "tools/call")
    return false;
  const std::optional<std::string_view> name = message.name_header_value();
  return name && header_params(*name);
}

void StreamableState::add_params_headers(http::Headers& headers, const HttpClientMessage& message) {
  const std::optional<std::string_view> name = message.name_header_value();
  if (!name) return;
  headers.add(mcp::kNameHeader, mcp::encode_header_value(*name));
  if (message.method() != "tools/call") return;
  const mcp::HeaderParams annotated = header_params(*name);
  if (!annotated) return;
  for (auto& [header, value] : mcp::param_headers(*annotated, message.arguments()))
    headers.add(header, value);
}

mcp::HeaderParams StreamableState::header_params(std::string_view tool) {
  const auto found = annotated_tools_.find(tool);
  if (found == annotated_tools_.end()) return nullptr;
  AnnotatedTool& entry = found->second;
  if (!entry.schema.empty()) {
    entry.params = mcp::read_header_annotations(json::View(entry.schema), limits_).shared_params();
    unparsed_schema_bytes_ -= entry.schema.size();
    entry.schema.clear();
    entry.schema.shrink_to_fit();
  }
  return entry.params;
}

void StreamableState::on_response(const HttpClientMessage& request, const rpc::Message& response) {
  if (!response.is(rpc::Kind::response)) return;
  if (request.method() == "initialize") {
    negotiated_revision_ = response.indexed_result()["protocolVersion"].as_string().value_or("");
    ++session_version_;
  }
  if (request.method() == "tools/list" && request.modern_revision())
    store_tool_annotations(request, response);
}

void StreamableState::store_tool_annotations(const HttpClientMessage& request, const rpc::Message& response) {
  if (request.is_first_page()) {
    annotated_tools_.clear();
    unparsed_schema_bytes_ = 0;
  }
  if (response.result_text().size() > limits_.max_list_bytes)
    return;  // such a list is rejected by its receiver, so nothing is stored
  if (response.members().member_count() > json::MemberIndex::kMaxMembers) return;
  std::size_t count = 0;
  std::size_t read = 0;
  response.indexed_result()["tools"].each_element([&](json::View tool) {
    if (++count > limits_.max_list_entries) return false;
    if (tool.text().size() > limits_.max_entry_bytes) return true;
    const bool annotated = mcp::may_have_header_annotations(tool);
    if (!annotated && annotated_tools_.empty()) return true;
    if (annotated && ++read > kMaxAnnotatedTools) return false;
    const json::Members members(tool, {"name", "inputSchema"});
    const std::optional<std::string> name = members["name"].as_string();
    const std::string_view schema = members["inputSchema"].text();
    if (!name) return true;
    if (const auto previous = annotated_tools_.find(*name); previous != annotated_tools_.end()) {
      unparsed_schema_bytes_ -= previous->second.schema.size();
      annotated_tools_.erase(previous);
    }
    const bool fits = schema.size() <= limits_.max_schema_bytes &&
                      annotated_tools_.size() < kMaxAnnotatedTools &&
                      unparsed_schema_bytes_ + schema.size() <= limits_.max_list_bytes;
    if (!fits || !mcp::may_have_header_annotations(members["inputSchema"])) return true;
    annotated_tools_.emplace(*name, AnnotatedTool{std::string(schema), nullptr});
    unparsed_schema_bytes_ += schema.size();
    return true;
  });
}

bool StreamableState::set_session_id(std::string_view id) {
  const bool valid = std::ranges::all_of(id, [](char c) { return c > ' ' && c <= '~'; });
  if (valid) {
    session_id_ = id;
    ++session_version_;
  }
  return valid;
}

void StreamableState::clear_session() {
  session_id_.clear();
  negotiated_revision_.clear();
  ++session_version_;
}

}  // namespace fairlead::transport
