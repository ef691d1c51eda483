#include "transport/streamable_state.hpp"

#include <algorithm>

#include "json/members.hpp"
#include "protocol/header_values.hpp"

namespace fairlead::transport {

bool StreamableState::sending(const OutgoingMessage& message) {
  if (message.is_request()) {
    const std::optional<std::string> claimed = message.version();
    modern_ = claimed.has_value();
    if (claimed) modern_version_ = *claimed;
    if (!modern_ && message.is_handshake()) {
      handshake_ = message.message();
      forget_session();
    }
  }
  return modern_;
}

http::Headers StreamableState::headers_for(const OutgoingMessage& message) {
  http::Headers headers{{"Content-Type", "application/json"},
                        {"Accept", "application/json, text/event-stream"}};
  if (const std::optional<std::string> claimed = message.version()) {
    add_modern(headers, message, *claimed);
  } else if (modern_ && message.is_notification()) {
    add_modern(headers, message, modern_version_);
  } else if (message.method() != "initialize") {
    for (const auto& [name, value] : session_headers()) headers.add(name, value);
  }
  return headers;
}

http::Headers StreamableState::session_headers() const {
  http::Headers headers;
  if (!session_.empty()) headers.add(mcp::kSessionHeader, session_);
  if (!agreed_version_.empty()) headers.add(mcp::kVersionHeader, agreed_version_);
  return headers;
}

void StreamableState::add_modern(http::Headers& headers, const OutgoingMessage& message,
                                 std::string_view version) {
  headers.add(mcp::kVersionHeader, mcp::encode_header_value(version));
  headers.add(mcp::kMethodHeader, mcp::encode_header_value(message.method()));
  const std::optional<std::string_view> name = message.target();
  if (!name) return;
  headers.add(mcp::kNameHeader, mcp::encode_header_value(*name));
  if (message.method() != "tools/call") return;
  const mcp::HeaderParams annotated = params_of(*name);
  if (!annotated) return;
  for (auto& [header, value] : mcp::param_headers(*annotated, message.arguments()))
    headers.add(header, value);
}

mcp::HeaderParams StreamableState::params_of(std::string_view tool) {
  const auto found = annotated_.find(tool);
  if (found == annotated_.end()) return nullptr;
  AnnotatedTool& known = found->second;
  if (!known.schema.empty()) {
    known.params = mcp::read_header_annotations(json::View(known.schema), limits_).shared();
    annotated_bytes_ -= known.schema.size();
    known.schema.clear();
    known.schema.shrink_to_fit();
  }
  return known.params;
}

void StreamableState::answered(const OutgoingMessage& request, const rpc::Message& answer) {
  if (!answer.is(rpc::Kind::response)) return;
  if (request.method() == "initialize")
    agreed_version_ = answer.indexed_result()["protocolVersion"].as_string().value_or("");
  if (request.method() == "tools/list" && request.version()) learn_tools(request, answer);
}

void StreamableState::learn_tools(const OutgoingMessage& request, const rpc::Message& answer) {
  if (request.is_first_page()) {
    annotated_.clear();
    annotated_bytes_ = 0;
  }
  if (answer.result_text().size() > limits_.max_list_bytes) return;  // the listing fails
  if (answer.members().count() > json::MemberIndex::kMaxMembers) return;
  std::size_t count = 0;
  std::size_t read = 0;
  answer.indexed_result()["tools"].each_element([&](json::View tool) {
    if (++count > limits_.max_list_entries) return false;
    if (tool.text().size() > limits_.max_entry_bytes) return true;
    const bool annotated = mcp::may_have_header_annotations(tool);
    if (!annotated && annotated_.empty()) return true;
    if (annotated && ++read > kMostTools) return false;
    const json::Members members(tool, {"name", "inputSchema"});
    const std::optional<std::string> name = members["name"].as_string();
    const std::string_view schema = members["inputSchema"].text();
    if (!name) return true;
    if (const auto former = annotated_.find(*name); former != annotated_.end()) {
      annotated_bytes_ -= former->second.schema.size();
      annotated_.erase(former);
    }
    const bool fits = schema.size() <= limits_.max_schema_bytes && annotated_.size() < kMostTools &&
                      annotated_bytes_ + schema.size() <= limits_.max_list_bytes;
    if (!fits || !mcp::may_have_header_annotations(members["inputSchema"])) return true;
    annotated_.emplace(*name, AnnotatedTool{std::string(schema), nullptr});
    annotated_bytes_ += schema.size();
    return true;
  });
}

bool StreamableState::name_session(std::string_view id) {
  const bool good = std::ranges::all_of(id, [](char c) { return c > ' ' && c <= '~'; });
  if (good) session_ = id;
  return good;
}

void StreamableState::forget_session() {
  session_.clear();
  agreed_version_.clear();
}

}  // namespace fairlead::transport
