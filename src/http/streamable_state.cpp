#include "http/streamable_state.hpp"

#include <algorithm>

#include "fairlead/json/view.hpp"
#include "fairlead/protocol/header_values.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::http {

namespace {

// What a message of the modern era says its revision is.
std::optional<std::string> claimed_version(const rpc::Message& message) {
  return json::View(message.params_text())["_meta"][mcp::kVersionKey].as_string();
}

}  // namespace

bool StreamableState::sending(const rpc::Message& message) {
  if (message.is(rpc::Kind::request)) {
    const std::optional<std::string> claimed = claimed_version(message);
    modern_ = claimed.has_value();
    if (claimed) modern_version_ = *claimed;
    if (!modern_ && message.method() == "initialize") {
      handshake_ = message;
      forget_session();
    }
  }
  return modern_;
}

Headers StreamableState::headers_for(const rpc::Message& message) const {
  Headers headers{{"Content-Type", "application/json"}, {"Accept", "application/json, text/event-stream"}};
  const bool asks = message.is(rpc::Kind::request) || message.is(rpc::Kind::notification);
  const std::optional<std::string> claimed = asks ? claimed_version(message) : std::nullopt;
  if (claimed) {
    add_modern(headers, message, *claimed);
  } else if (modern_ && message.is(rpc::Kind::notification)) {
    add_modern(headers, message, modern_version_);
  } else if (message.method() != "initialize") {
    for (const auto& [name, value] : session_headers()) headers.add(name, value);
  }
  return headers;
}

Headers StreamableState::session_headers() const {
  Headers headers;
  if (!session_.empty()) headers.add(std::string(mcp::kSessionHeader), session_);
  if (!agreed_version_.empty()) headers.add(std::string(mcp::kVersionHeader), agreed_version_);
  return headers;
}

void StreamableState::add_modern(Headers& headers, const rpc::Message& message,
                                 std::string_view version) const {
  headers.add(std::string(mcp::kVersionHeader), mcp::encode_header_value(version));
  headers.add(std::string(mcp::kMethodHeader), mcp::encode_header_value(message.method()));
  const json::View params(message.params_text());
  const std::string_view member = mcp::named_by(message.method());
  const std::optional<std::string> name = member.empty() ? std::nullopt : params[member].as_string();
  if (!name) return;
  headers.add(std::string(mcp::kNameHeader), mcp::encode_header_value(*name));
  if (message.method() != "tools/call") return;
  const auto tool = annotated_.find(*name);
  if (tool == annotated_.end()) return;
  for (auto& [header, value] : mcp::param_headers(tool->second, params["arguments"]))
    headers.add(std::move(header), std::move(value));
}

void StreamableState::answered(const rpc::Message& request, const rpc::Message& answer) {
  if (!answer.is(rpc::Kind::response)) return;
  if (request.method() == "initialize")
    agreed_version_ = json::View(answer.result_text())["protocolVersion"].as_string().value_or("");
  if (request.method() == "tools/list" && claimed_version(request)) learn_tools(request, answer);
}

void StreamableState::learn_tools(const rpc::Message& request, const rpc::Message& answer) {
  if (json::View(request.params_text())["cursor"].absent()) annotated_.clear();  // the first page
  json::View(answer.result_text())["tools"].each_element([&](json::View tool) {
    const std::optional<std::string> name = tool["name"].as_string();
    if (!name) return true;
    std::vector<mcp::HeaderParam> params = mcp::header_params(tool["inputSchema"]);
    annotated_.erase(*name);
    if (!params.empty() && annotated_.size() < kMostTools) annotated_.emplace(*name, std::move(params));
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

}  // namespace fairlead::http
