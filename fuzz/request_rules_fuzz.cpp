// The request classifier on any headers and body: header lines, an empty line, the body. It never crashes,
// and whatever is modern and not refused has an envelope and headers that agree with it.
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
  static const mcp::HeaderParams params = mcp::read_header_annotations(json::View(schema)).shared();
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
  const transport::Verdict verdict = transport::judge(headers, message, header_params_of);
  static_cast<void>(transport::accepts_of(headers));
  static_cast<void>(transport::has_json_body(headers));
  if (verdict.refusal) {
    const http::Response response = transport::refuse(*verdict.refusal, message.id());
    std::string body;
    for (const Bytes& part : response.body) body += part.view();
    const rpc::Message said = rpc::Message::parse(Bytes::copy_of(body));
    if (!said.is(rpc::Kind::error) || said.id() == "null" || response.status < 400) std::abort();
  } else if (message.is(rpc::Kind::malformed)) {
    std::abort();
  } else if (verdict.era == transport::Era::modern && message.is(rpc::Kind::request)) {
    if (headers.get("mcp-method") != message.method() || headers.get("mcp-protocol-version") != "2026-07-28")
      std::abort();
  }
  return 0;
}
