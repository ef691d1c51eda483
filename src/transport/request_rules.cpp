#include "transport/request_rules.hpp"

#include <algorithm>
#include <typeinfo>

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

// Returns whether the message names a protocol version in its envelope. Only messages of the modern era do.
bool names_protocol_version(const rpc::Message& message) {
  return !mcp::CallFacts::of(message)->protocol_version.absent();
}

Refusal header_mismatch(std::string_view header, std::string_view problem) {
  return Refusal{400, mcp::kHeaderMismatch, std::string(header) + " " + std::string(problem)};
}

Refusal invalid_envelope(std::string_view key, std::string_view problem) {
  return Refusal{400, rpc::kInvalidParams, "_meta: " + std::string(key) + " " + std::string(problem)};
}

std::optional<Refusal> envelope_problem(const mcp::CallFacts& facts) {
  if (!facts.protocol_version.is(json::Type::string))
    return invalid_envelope(mcp::kVersionKey, "is missing or not a string");
  if (!facts.client_capabilities.is(json::Type::object))
    return invalid_envelope(mcp::kCapabilitiesKey, "is missing or not an object");
  if (!facts.client_info.absent() && !facts.client_info.is(json::Type::object))
    return invalid_envelope(mcp::kClientInfoKey, "is not an object");
  return std::nullopt;
}

bool is_modern_revision(const SingleHeader& version) {
  const std::optional<mcp::Revision> revision =
      version.count == 1 ? mcp::revision_named(version.value) : std::nullopt;
  return revision && mcp::is_modern(*revision);
}

// `in_body` is a string.
std::optional<Refusal> version_problem(const HeaderFacts& headers, json::View in_body) {
  const SingleHeader& header = headers.version;
  const std::string_view quoted = in_body.text();
  if (headers.names_modern_revision && quoted.substr(1, quoted.size() - 2) == header.value)
    return std::nullopt;
  const std::string version = *in_body.as_string();
  if (header.count == 0) return header_mismatch(mcp::kVersionHeader, "is missing");
  if (!header.is(version)) return header_mismatch(mcp::kVersionHeader, "does not match the body");
  const std::optional<mcp::Revision> revision = mcp::revision_named(version);
  if (revision && mcp::is_modern(*revision)) return std::nullopt;
  json::Writer data;
  data.begin_object().key("supported").begin_array().string(mcp::to_string(mcp::kNewestRevision)).end_array();
  data.key("requested").string(version).end_object();
  return Refusal{400, mcp::kUnsupportedVersion, "Unsupported protocol version", data.text()};
}

std::optional<Refusal> method_problem(const SingleHeader& header, std::string_view method) {
  if (header.count == 0) return header_mismatch(mcp::kMethodHeader, "is missing");
  if (!header.is(method)) return header_mismatch(mcp::kMethodHeader, "does not match the method");
  return std::nullopt;
}

std::optional<Refusal> name_problem(const HeaderFacts& headers, std::string_view member,
                                    std::optional<std::string_view> name) {
  const SingleHeader& header = headers.name;
  if (!name && header.count == 0) return std::nullopt;  // the handler of the method rejects the missing name
  if (header.count == 0) return header_mismatch(mcp::kNameHeader, "is missing");
  if (header.count > 1 || !name || headers.decoded_name != name)
    return header_mismatch(mcp::kNameHeader, "does not match params." + std::string(member));
  return std::nullopt;
}

std::optional<Refusal> param_problem(const http::Headers& headers, json::View arguments,
                                     const std::vector<mcp::HeaderParam>& params) {
  const mcp::HeaderLookup lookup = [&](std::string_view name) -> std::optional<std::string_view> {
    const SingleHeader header(headers, name);
    if (header.count == 0) return std::nullopt;
    return header.count > 1 ? "\n" : header.value;
  };
  std::optional<std::string> problem = mcp::param_header_problem(params, arguments, lookup);
  if (!problem) return std::nullopt;
  return Refusal{400, mcp::kHeaderMismatch, std::move(*problem)};
}

std::optional<Refusal> modern_problem(const HeaderFacts& headers, const rpc::Message& message,
                                      const mcp::CallFacts& facts, const HeaderParamsLookup& header_params) {
  if (std::optional<Refusal> problem = envelope_problem(facts)) return problem;
  if (std::optional<Refusal> problem = version_problem(headers, facts.protocol_version)) return problem;
  if (std::optional<Refusal> problem = method_problem(headers.method, message.method())) return problem;
  const std::string_view member = mcp::name_header_param(message.method());
  if (member.empty()) return std::nullopt;
  const std::optional<std::string_view> name = facts.target_text();
  if (std::optional<Refusal> problem = name_problem(headers, member, name)) return problem;
  if (message.method() != "tools/call" || !name) return std::nullopt;
  const mcp::HeaderParams params = header_params(*name);
  return params ? param_problem(headers.headers, facts.arguments, *params) : std::nullopt;
}

Classification classify_request(const HeaderFacts& headers, const rpc::Message& message,
                                const HeaderParamsLookup& header_params) {
  if (message.id() == "null")
    return {Era::legacy, Refusal{400, rpc::kInvalidRequest, "Invalid Request: a null id is not allowed"}};
  const std::shared_ptr<const mcp::CallFacts> facts = mcp::CallFacts::of(message);
  if (facts->problem()) return {Era::legacy, Refusal{400, rpc::kInvalidParams, facts->problem()->message()}};
  if (facts->protocol_version.absent()) {
    if (headers.allows_legacy_era && message.method() != "server/discover") return {};
    // The modern era has no `initialize`, with or without an envelope.
    if (message.method() == "initialize")
      return {Era::modern, Refusal{404, rpc::kMethodNotFound, "Method not found: initialize"}};
  }
  return {Era::modern, modern_problem(headers, message, *facts, header_params)};
}

// Returns whether a value of Accept lists the media type `type`, or a wildcard that matches it. Quality
// values are ignored.
bool lists_media_type(std::string_view accept, std::string_view type) {
  const std::string_view kind = type.substr(0, type.find('/'));
  return any_list_element(accept, [&](std::string_view range) {
    range = trim_blanks(range.substr(0, range.find(';')));
    return http::equals_ignore_case(range, type) || range == "*/*" ||
           (range.ends_with("/*") && http::equals_ignore_case(range.substr(0, range.size() - 2), kind));
  });
}

}  // namespace

Refusal session_not_found_refusal() {
  return Refusal{404, kSessionNotFound, "Session not found"};
}

Refusal shutting_down_refusal() {
  return Refusal{503, kRefused, "the server is shutting down"};
}

http::Response to_response(const Refusal& refusal, std::string_view id) {
  if (id == "null") id = {};
  return http::json_response(refusal.http_status,
                             rpc::make_error(id, refusal.rpc_code, refusal.message, refusal.data));
}

Classification classify(const HeaderFacts& headers, const rpc::Message& message,
                        const HeaderParamsLookup& header_params) {
  switch (message.kind()) {
    case rpc::Kind::malformed: {
      const rpc::WireError error = rpc::to_wire(message.problem());
      return {Era::legacy, Refusal{400, error.code, error.message, error.data}};
    }
    case rpc::Kind::batch:
      if (!headers.allows_legacy_era || std::ranges::any_of(message.batch(), names_protocol_version))
        return {Era::modern,
                Refusal{400, rpc::kInvalidRequest, "Invalid Request: batches are not allowed here"}};
      return {};
    case rpc::Kind::notification:
      return {names_protocol_version(message) || !headers.allows_legacy_era ? Era::modern : Era::legacy,
              std::nullopt};
    case rpc::Kind::response:
    case rpc::Kind::error:
      if (headers.allows_legacy_era) return {};
      return {Era::modern, Refusal{400, rpc::kInvalidRequest, "Invalid Request: unexpected response"}};
    case rpc::Kind::request: break;
  }
  return classify_request(headers, message, header_params);
}

HeaderFacts::HeaderFacts(const http::Headers& request_headers)
    : headers(request_headers),
      version(headers, mcp::kVersionHeader),
      method(headers, mcp::kMethodHeader),
      name(headers, mcp::kNameHeader),
      session(headers, mcp::kSessionHeader),
      decoded_name(name.count == 1 ? mcp::decode_header_value(name.value) : std::nullopt),
      accepted_types(transport::accepted_types(headers)),
      has_json_body(transport::has_json_body(headers)),
      allows_legacy_era(transport::allows_legacy_era(headers)),
      names_modern_revision(is_modern_revision(version)) {}

const HeaderFacts& HeaderFacts::of(const http::Request& request) {
  const http::HeadAttachment* const attached = request.attachment.get();
  if (attached && typeid(*attached) == typeid(HeaderFacts)) {
    const auto& facts = static_cast<const HeaderFacts&>(*attached);
    if (&facts.headers == &request.headers) return facts;  // `request` is no copy of another one
  }
  auto facts = std::make_shared<const HeaderFacts>(request.headers);
  request.attachment = facts;
  return *facts;
}

bool allows_legacy_era(const http::Headers& headers) {
  const SingleHeader header(headers, mcp::kVersionHeader);
  if (header.count == 0) return true;
  const std::optional<mcp::Revision> revision = mcp::revision_named(header.value);
  return revision && !mcp::is_modern(*revision);
}

AcceptedTypes accepted_types(const http::Headers& headers) {
  // What most clients send: the specification requires both types.
  const SingleHeader accept(headers, "Accept");
  if (accept.is("application/json, text/event-stream")) return AcceptedTypes{true, true};
  if (accept.is("text/event-stream")) return AcceptedTypes{false, true};
  AcceptedTypes accepted;
  bool has_accept = false;
  for (const auto& [name, value] : headers) {
    if (!http::equals_ignore_case(name, "Accept")) continue;
    has_accept = true;
    accepted.json = accepted.json || lists_media_type(value, "application/json");
    accepted.events = accepted.events || lists_media_type(value, "text/event-stream");
  }
  return has_accept ? accepted : AcceptedTypes{true, true};
}

bool has_json_body(const http::Headers& headers) {
  const std::string_view type = headers.get("Content-Type");
  std::string_view essence = type.substr(0, type.find(';'));
  essence = essence.substr(0, essence.find_last_not_of(" \t") + 1);
  return http::equals_ignore_case(essence, "application/json");
}

int http_status_for(std::int64_t rpc_code) noexcept {
  switch (rpc_code) {
    case rpc::kMethodNotFound: return 404;
    case mcp::kHeaderMismatch:
    case mcp::kMissingCapability:
    case mcp::kUnsupportedVersion: return 400;
    default: return 200;
  }
}

}  // namespace fairlead::transport
