#include "gateway/request_states.hpp"

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

std::string max_state_text() {
  return "max_request_state_bytes (" + std::to_string(kMaxRequestStateBytes) + ")";
}

}  // namespace

// Begins unlike the binding of the front server's own states, which the same keys seal.
std::string RequestStates::text_of(const StateBinding& bound_to) const {
  const std::string& endpoint = front_.state()->endpoint_name();
  return "server\n" + std::to_string(endpoint.size()) + ":" + endpoint + identity_key(bound_to.principal) +
         "\n" + bound_to.server + "\n" + bound_to.facts.method + "\n" +
         std::string(bound_to.facts.target_text().value_or(std::string_view()));
}

Result<json::Raw> RequestStates::seal(const rpc::Message& answer, const StateBinding& bound_to) const {
  json::Raw result = answer.result();
  const json::View state =
      json::Members(answer.members(), json::View(result), {"requestState"})["requestState"];
  if (state.absent()) return result;
  const std::string answered = "server `" + bound_to.server + "` answered with a requestState ";
  if (!state.is(json::Type::string))
    return refusal_of(rpc::kInternalError, answered + "that is not a string", failure::protocol_violation);
  if (state.text().size() > kMaxRequestStateBytes)
    return refusal_of(rpc::kInternalError, answered + "over " + max_state_text(),
                      failure::resource_exhausted);
  const std::string sealed =
      front_.state()->sealer->seal(state.text(), text_of(bound_to), std::chrono::system_clock::now());
  json::Splice splice(result.bytes());
  splice.replace(state.text(), json::string(sealed).bytes());
  return json::Raw::trusted(splice.joined(), result.one_line());
}

Result<json::Raw> RequestStates::open(const StateBinding& bound_to) const {
  const json::View sealed = bound_to.facts.request_state;
  if (sealed.absent()) return json::Raw();
  if (sealed.text().size() > 2 * kMaxRequestStateBytes)
    return refusal_of(rpc::kInvalidParams, "requestState is over twice " + max_state_text(),
                      failure::invalid_request);
  const Result<std::string> opened = front_.state()->sealer->open(
      sealed.as_string().value_or(""), text_of(bound_to), std::chrono::system_clock::now());
  if (!opened)
    return refusal_of(rpc::kInvalidParams, "requestState was not given for this request, or has expired",
                      failure::invalid_request_state);
  return json::Raw::trusted(Bytes::copy_of(*opened));
}

}  // namespace fairlead::gateway
