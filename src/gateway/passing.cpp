#include "gateway/passing.hpp"

#include "fairlead/json/writer.hpp"
#include "json/members.hpp"
#include "json/splice.hpp"
#include "protocol/envelope.hpp"
#include "protocol/method_table.hpp"

namespace fairlead::gateway {

namespace {

using mcp::is_modern;

constexpr std::string_view kServerInfoKey = "io.modelcontextprotocol/serverInfo";

void remove(json::Splice& splice, json::View member) {
  if (!member.absent()) splice.remove_member(member.text());
}

// A client's capabilities without extensions: what they bring would have to pass through here too, and does
// not.
std::string without_extensions(json::View capabilities) {
  if (capabilities.absent()) return "{}";
  const json::View extensions = capabilities["extensions"];
  if (extensions.absent()) return std::string(capabilities.text());
  const Bytes own = Bytes::copy_of(capabilities.text());
  json::Splice splice(own);
  splice.remove_member(json::View(own.view())["extensions"].text());
  return std::string(splice.joined().view());
}

}  // namespace

std::string_view PassedRequest::target() const noexcept {
  return target_ ? std::string_view(*target_) : facts()->target_text().value_or(std::string_view());
}

rpc::Rope PassedRequest::encode(mcp::Revision server, Sending sending) const {
  mcp::RequestSplice splice(request_, *facts(), sending);
  if (target_) splice.replace(facts()->target(), json::string(*target_).bytes());
  splice.remove(facts()->task);
  const bool from_modern = is_modern(client_.revision);
  if (from_modern && is_modern(server)) {
    splice.remove(facts()->extensions);
    if (!state_.absent()) splice.replace(facts()->request_state, state_.bytes());
  } else if (from_modern) {
    remove_modern(splice);
  } else if (is_modern(server)) {
    add_modern(splice, server);
  }
  return splice.finish();
}

void PassedRequest::remove_modern(mcp::RequestSplice& splice) const {
  for (const json::View value :
       {facts()->protocol_version, facts()->client_capabilities, facts()->client_info, facts()->log_level,
        facts()->input_responses, facts()->request_state})
    splice.remove(value);
}

void PassedRequest::add_modern(mcp::RequestSplice& splice, mcp::Revision server) const {
  remove_modern(splice);  // a legacy client does not speak for itself with these
  splice.add_to_meta(mcp::kVersionKey, json::string(to_string(server)).text());
  splice.add_to_meta(mcp::kCapabilitiesKey, without_extensions(client_.capabilities));
  if (!client_.info.absent()) splice.add_to_meta(mcp::kClientInfoKey, client_.info.text());
  if (client_.log_level)
    splice.add_to_meta(mcp::kLogLevelKey, json::string(to_string(*client_.log_level)).text());
  if (!answers_.absent()) splice.add_to_params("inputResponses", answers_.text());
  if (!state_.absent()) splice.add_to_params("requestState", state_.text());
}

json::Raw result_for_client(const rpc::Message& answer, std::string_view method, mcp::Revision server,
                            mcp::Revision client, const mcp::Implementation& gateway) {
  json::Raw result = answer.result();
  const json::View view(result);
  // What is no object is no result of MCP's; nothing can be added to it or taken from it.
  if (is_modern(server) == is_modern(client) || !view.is(json::Type::object)) return result;
  const json::Members members(answer.members(), view,
                              {"_meta", "resultType", "ttlMs", "cacheScope", "structuredContent"});
  const json::View meta = members["_meta"];
  json::Splice splice(result.bytes());
  if (is_modern(client)) {
    splice.insert_member(view.text(), "resultType", "\"complete\"");
    const mcp::MethodInfo* info = mcp::find_method(method, client);
    if (info && info->cacheable) {
      splice.insert_member(view.text(), "ttlMs", "0");
      splice.insert_member(view.text(), "cacheScope", "\"private\"");
    }
    json::Writer who;
    write(who, gateway, client);
    if (meta.is(json::Type::object)) {
      splice.insert_member(meta.text(), kServerInfoKey, who.text());
    } else if (meta.absent()) {
      splice.insert_member(view.text(), "_meta",
                           "{\"" + std::string(kServerInfoKey) + "\":" + who.text() + "}");
    }
  } else {
    for (const std::string_view key : {"resultType", "ttlMs", "cacheScope"}) remove(splice, members[key]);
    remove(splice, meta[kServerInfoKey]);
    // Up to 2025-11-25 it is an object or not there.
    const json::View structured = members["structuredContent"];
    if (!structured.is(json::Type::object)) remove(splice, structured);
  }
  return json::Raw::trusted(splice.joined(), result.one_line());
}

}  // namespace fairlead::gateway
