#include "gateway/request_state_sealer.hpp"

#include <chrono>

#include "fairlead/json/writer.hpp"
#include "fairlead/process/failure.hpp"
#include "fairlead/rpc/codes.hpp"
#include "gateway/failure.hpp"
#include "json/members.hpp"
#include "json/splice.hpp"
#include "mcp/server_state.hpp"

namespace fairlead::gateway {

namespace {

std::string state_limit_text() {
  return "max_request_state_bytes (" + std::to_string(kMaxRequestStateBytes) + ")";
}

}  // namespace

// The prefix "server" differs from that of the front server's own request states, which are sealed with the
// same keys.
std::string RequestStateSealer::binding_text(const StateBinding& binding) const {
  const std::string& endpoint = front_.state()->endpoint_name();
  return "server\n" + std::to_string(endpoint.size()) + ":" + endpoint + identity_key(binding.principal) +
         "\n" + binding.server + "\n" + binding.facts.method + "\n" +
         std::string(binding.facts.target_text().value_or(std::string_view()));
}

Result<json::Raw> RequestStateSealer::seal(const rpc::Message& response, const StateBinding& binding) const {
  json::Raw result = response.result();
  const json::View state =
      json::Members(response.members(), json::View(result), {"requestState"})["requestState"];
  if (state.absent()) return result;
  const std::string subject = "server `" + binding.server + "` responded with a requestState ";
  if (!state.is(json::Type::string))
    return refusal_error(rpc::kInternalError, subject + "that is not a string", failure::protocol_violation);
  if (state.text().size() > kMaxRequestStateBytes)
    return refusal_error(rpc::kInternalError, subject + "that exceeds " + state_limit_text(),
                         failure::resource_exhausted);
  const std::string sealed =
      front_.state()->sealer->seal(state.text(), binding_text(binding), std::chrono::system_clock::now());
  json::Splice splice(result.bytes());
  splice.replace(state.text(), json::string(sealed).bytes());
  return json::Raw::trusted(splice.joined(), result.is_one_line());
}

Result<json::Raw> RequestStateSealer::open(const StateBinding& binding) const {
  const json::View sealed = binding.facts.request_state;
  if (sealed.absent()) return json::Raw();
  if (sealed.text().size() > 2 * kMaxRequestStateBytes)
    return refusal_error(rpc::kInvalidParams, "requestState exceeds twice the limit " + state_limit_text(),
                         failure::invalid_request);
  const Result<std::string> opened = front_.state()->sealer->open(
      sealed.as_string().value_or(""), binding_text(binding), std::chrono::system_clock::now());
  if (!opened)
    return refusal_error(rpc::kInvalidParams, "requestState was not issued for this request, or has expired",
                         failure::invalid_request_state);
  return json::Raw::trusted(Bytes::copy_of(*opened));
}

}  // namespace fairlead::gateway
