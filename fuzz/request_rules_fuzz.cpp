// Classifies requests with arbitrary headers and body. The input is header lines, an empty line, and the
// body. The classifier never crashes, and every modern request that it accepts has an envelope that agrees
// with its headers.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fairlead/json/view.hpp"
#include "fairlead/protocol/header_annotations.hpp"
#include "transport/request_rules.hpp"

using namespace fairlead;

namespace {

mcp::HeaderParams header_params_of(std::string_view) {
  static const json::Raw schema = *json::Raw::parse(
      R"({"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"},"n":{"type":"integer","x-mcp-header":"N"}}})");
  static const mcp::HeaderParams params = mcp::read_header_annotations(json::View(schema)).shared_params();
  return params;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  http::Headers headers;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() < rest.size() ? line.size() + 1 : line.size());
    if (line.empty()) break;
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos)
      headers.add(std::string(line.substr(0, colon)), std::string(line.substr(colon + 1)));
  }
  const rpc::Message message = rpc::Message::parse(Bytes::copy_of(rest));
  const transport::HeaderFacts facts(headers);
  const transport::Classification classification = transport::classify(facts, message, header_params_of);
  if (classification.refusal) {
    const http::Response response = transport::to_response(*classification.refusal, message.id());
    std::string body;
    for (const Bytes& part : response.body) body += part.view();
    const rpc::Message said = rpc::Message::parse(Bytes::copy_of(body));
    if (!said.is(rpc::Kind::error) || said.id() == "null" || response.status < 400) std::abort();
  } else if (message.is(rpc::Kind::malformed)) {
    std::abort();
  } else if (classification.era == transport::Era::modern && message.is(rpc::Kind::request)) {
    if (headers.get("mcp-method") != message.method() || headers.get("mcp-protocol-version") != "2026-07-28")
      std::abort();
  }
  return 0;
}
