#include "transport/request_rules.hpp"

#include <algorithm>

#include "base/comma_list.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/protocol/call_facts.hpp"
#include "fairlead/protocol/revision.hpp"
#include "fairlead/rpc/codes.hpp"
#include "fairlead/rpc/rope.hpp"
#include "http/sse.hpp"
#include "protocol/envelope.hpp"
#include "protocol/header_values.hpp"

namespace fairlead::transport {

namespace {

// Whether a message says that it is of the modern era.
bool claims_modern(const rpc::Message& message) {
  return !mcp::CallFacts::of(message)->protocol_version.absent();
}

// A header that may stand there once.
struct Single {
  explicit Single(const http::Headers& headers, std::string_view name) : count(headers.count(name)) {
    if (count > 0) value = headers.get(name);
  }
  bool is(std::string_view expected) const noexcept { return count == 1 && value == expected; }

  std::size_t count;
  std::string_view value;
};

Refusal mismatch(std::string_view header, std::string_view what) {
  return Refusal{400, mcp::kHeaderMismatch, std::string(header) + " " + std::string(what)};
}

Refusal bad_envelope(std::string_view key, std::string_view what) {
  return Refusal{400, rpc::kInvalidParams, "_meta: " + std::string(key) + " " + std::string(what)};
}

std::optional<Refusal> envelope_problem(const mcp::CallFacts& facts) {
  if (!facts.protocol_version.is(json::Type::string))
    return bad_envelope(mcp::kVersionKey, "is missing or not a string");
  if (!facts.client_capabilities.is(json::Type::object))
    return bad_envelope(mcp::kCapabilitiesKey, "is missing or not an object");
  if (!facts.client_info.absent() && !facts.client_info.is(json::Type::object))
    return bad_envelope(mcp::kClientInfoKey, "is not an object");
  return std::nullopt;
}

std::optional<Refusal> version_problem(const Single& header, const std::string& version) {
  if (header.count == 0) return mismatch(mcp::kVersionHeader, "is missing");
  if (!header.is(version)) return mismatch(mcp::kVersionHeader, "does not match the body");
  const std::optional<mcp::Revision> revision = mcp::revision_named(version);
  if (revision && mcp::is_modern(*revision)) return std::nullopt;
  json::Writer data;
  data.begin_object().key("supported").begin_array().string(mcp::to_string(mcp::kNewest)).end_array();
  data.key("requested").string(version).end_object();
  return Refusal{400, mcp::kUnsupportedVersion, "Unsupported protocol version", data.text()};
}

std::optional<Refusal> method_problem(const Single& header, std::string_view method) {
  if (header.count == 0) return mismatch(mcp::kMethodHeader, "is missing");
  if (!header.is(method)) return mismatch(mcp::kMethodHeader, "does not match the method");
  return std::nullopt;
}

std::optional<Refusal> name_problem(const Single& header, std::string_view member,
                                    std::optional<std::string_view> name) {
  if (!name && header.count == 0) return std::nullopt;  // for the method itself to refuse
  if (header.count == 0) return mismatch(mcp::kNameHeader, "is missing");
  if (header.count > 1 || !name || mcp::decode_header_value(header.value) != name)
    return mismatch(mcp::kNameHeader, "does not match params." + std::string(member));
  return std::nullopt;
}

std::optional<Refusal> param_problem(const http::Headers& headers, json::View arguments,
                                     const std::vector<mcp::HeaderParam>& params) {
  const mcp::HeaderLookup lookup = [&](std::string_view name) -> std::optional<std::string_view> {
    const Single header(headers, name);
    if (header.count == 0) return std::nullopt;
    return header.count > 1 ? "\n" : header.value;
  };
  std::optional<std::string> problem = mcp::param_header_problem(params, arguments, lookup);
  if (!problem) return std::nullopt;
  return Refusal{400, mcp::kHeaderMismatch, std::move(*problem)};
}

std::optional<Refusal> modern_problem(const http::Headers& headers, const rpc::Message& message,
                                      const mcp::CallFacts& facts, const HeaderParamsOf& params_of) {
  if (std::optional<Refusal> bad = envelope_problem(facts)) return bad;
  const Single version(headers, mcp::kVersionHeader);
  if (std::optional<Refusal> bad = version_problem(version, *facts.protocol_version.as_string())) return bad;
  const Single method(headers, mcp::kMethodHeader);
  if (std::optional<Refusal> bad = method_problem(method, message.method())) return bad;
  const std::string_view member = mcp::named_by(message.method());
  if (member.empty()) return std::nullopt;
  const std::optional<std::string_view> name = facts.target_text();
  if (std::optional<Refusal> bad = name_problem(Single(headers, mcp::kNameHeader), member, name)) return bad;
  if (message.method() != "tools/call" || !name) return std::nullopt;
  const mcp::HeaderParams params = params_of(*name);
  return params ? param_problem(headers, facts.arguments, *params) : std::nullopt;
}

Verdict judge_request(const http::Headers& headers, const rpc::Message& message,
                      const HeaderParamsOf& params_of) {
  if (message.id() == "null")
    return {Era::legacy, Refusal{400, rpc::kInvalidRequest, "Invalid Request: a null id is not allowed"}};
  const std::shared_ptr<const mcp::CallFacts> facts = mcp::CallFacts::of(message);
  if (facts->problem()) return {Era::legacy, Refusal{400, rpc::kInvalidParams, facts->problem()->message()}};
  if (facts->protocol_version.absent()) {
    if (has_legacy_version(headers) && message.method() != "server/discover") return {};
    // That method is gone, envelope or not.
    if (message.method() == "initialize")
      return {Era::modern, Refusal{404, rpc::kMethodNotFound, "Method not found: initialize"}};
  }
  return {Era::modern, modern_problem(headers, message, *facts, params_of)};
}

// Whether a list of media ranges has this one, or all of its kind; a quality of zero is not looked at.
bool lists(std::string_view accept, std::string_view type) {
  const std::string_view kind = type.substr(0, type.find('/'));
  return any_list_element(accept, [&](std::string_view one) {
    one = without_blanks(one.substr(0, one.find(';')));
    return http::same_name(one, type) || one == "*/*" ||
           (one.ends_with("/*") && http::same_name(one.substr(0, one.size() - 2), kind));
  });
}

}  // namespace

Refusal shutting_down() {
  return Refusal{503, kRefused, "the server is shutting down"};
}

http::Response refuse(const Refusal& refusal, std::string_view id) {
  if (id == "null") id = {};
  return http::json_response(refusal.status,
                             rpc::make_error(id, refusal.code, refusal.message, refusal.data));
}

Verdict judge(const http::Headers& headers, const rpc::Message& message, const HeaderParamsOf& params_of) {
  switch (message.kind()) {
    case rpc::Kind::malformed: {
      const rpc::WireError error = rpc::to_wire(message.problem());
      return {Era::legacy, Refusal{400, error.code, error.message, error.data}};
    }
    case rpc::Kind::batch:
      if (!has_legacy_version(headers) || std::ranges::any_of(message.batch(), claims_modern))
        return {Era::modern,
                Refusal{400, rpc::kInvalidRequest, "Invalid Request: batches are not allowed here"}};
      return {};
    case rpc::Kind::notification:
      return {claims_modern(message) || !has_legacy_version(headers) ? Era::modern : Era::legacy,
              std::nullopt};
    case rpc::Kind::response:
    case rpc::Kind::error:
      if (has_legacy_version(headers)) return {};
      return {Era::modern, Refusal{400, rpc::kInvalidRequest, "Invalid Request: nothing was asked"}};
    case rpc::Kind::request: break;
  }
  return judge_request(headers, message, params_of);
}

bool has_legacy_version(const http::Headers& headers) {
  const Single header(headers, mcp::kVersionHeader);
  if (header.count == 0) return true;
  const std::optional<mcp::Revision> revision = mcp::revision_named(header.value);
  return revision && !mcp::is_modern(*revision);
}

Accepts accepts_of(const http::Headers& headers) {
  Accepts accepts;
  bool said = false;
  for (const auto& [name, value] : headers) {
    if (!http::same_name(name, "Accept")) continue;
    said = true;
    accepts.json = accepts.json || lists(value, "application/json");
    accepts.events = accepts.events || lists(value, "text/event-stream");
  }
  return said ? accepts : Accepts{true, true};
}

bool has_json_body(const http::Headers& headers) {
  const std::string_view type = headers.get("Content-Type");
  std::string_view essence = type.substr(0, type.find(';'));
  essence = essence.substr(0, essence.find_last_not_of(" \t") + 1);
  return http::same_name(essence, "application/json");
}

int status_of(std::int64_t rpc_code) noexcept {
  switch (rpc_code) {
    case rpc::kMethodNotFound: return 404;
    case mcp::kHeaderMismatch:
    case mcp::kMissingCapability:
    case mcp::kUnsupportedVersion: return 400;
    default: return 200;
  }
}

}  // namespace fairlead::transport
