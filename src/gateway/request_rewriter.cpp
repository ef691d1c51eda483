#include "gateway/request_rewriter.hpp"

#include "fairlead/json/writer.hpp"
#include "json/members.hpp"
#include "json/splice.hpp"
#include "protocol/envelope.hpp"
#include "protocol/method_table.hpp"

namespace fairlead::gateway {

namespace {

using mcp::is_modern;

void remove_if_present(json::Splice& splice, json::View member) {
  if (!member.absent()) splice.remove_member(member.text());
}

// Returns a client's capabilities without extensions, because the gateway does not forward the messages of
// extensions.
std::string without_extensions(json::View capabilities) {
  if (capabilities.absent()) return "{}";
  const json::View extensions = capabilities["extensions"];
  if (extensions.absent()) return std::string(capabilities.text());
  const Bytes copy = Bytes::copy_of(capabilities.text());
  json::Splice splice(copy);
  splice.remove_member(json::View(copy.view())["extensions"].text());
  return std::string(splice.joined().view());
}

}  // namespace

std::string_view RequestRewriter::target() const noexcept {
  return target_ ? std::string_view(*target_) : facts()->target_text().value_or(std::string_view());
}

rpc::Rope RequestRewriter::encode(mcp::Revision server, EncodeOptions options) const {
  mcp::RequestSplice splice(request_, *facts(), options);
  if (target_) splice.replace_with_string(facts()->target(), *target_);
  splice.remove_member(facts()->task);
  const bool from_modern = is_modern(client_.revision);
  if (from_modern && is_modern(server)) {
    splice.remove_member(facts()->extensions);
    if (!request_state_.absent()) splice.replace(facts()->request_state, request_state_.bytes());
  } else if (from_modern) {
    remove_modern_members(splice);
  } else if (is_modern(server)) {
    add_modern_members(splice, server);
  }
  return splice.finish();
}

void RequestRewriter::remove_modern_members(mcp::RequestSplice& splice) const {
  for (const json::View value :
       {facts()->protocol_version, facts()->client_capabilities, facts()->client_info, facts()->log_level,
        facts()->input_responses, facts()->request_state})
    splice.remove_member(value);
}

void RequestRewriter::add_modern_members(mcp::RequestSplice& splice, mcp::Revision server) const {
  remove_modern_members(splice);  // a legacy client must not set these itself
  splice.add_to_meta(mcp::kVersionKey, json::string(to_string(server)).text());
  splice.add_to_meta(mcp::kCapabilitiesKey, without_extensions(client_.capabilities));
  if (!client_.info.absent()) splice.add_to_meta(mcp::kClientInfoKey, client_.info.text());
  if (client_.log_level)
    splice.add_to_meta(mcp::kLogLevelKey, json::string(to_string(*client_.log_level)).text());
  if (!input_responses_.absent()) splice.add_to_params("inputResponses", input_responses_.text());
  if (!request_state_.absent()) splice.add_to_params("requestState", request_state_.text());
}

json::Raw result_for_client(const rpc::Message& response, std::string_view method, mcp::Revision server,
                            mcp::Revision client, std::string_view server_info) {
  json::Raw result = response.result();
  const json::View view(result);
  // A result that is not an object violates MCP; no member can be added to it or removed from it.
  if (is_modern(server) == is_modern(client) || !view.is(json::Type::object)) return result;
  json::Splice splice(result.bytes());
  if (is_modern(client)) {
    splice.insert_member_text(view.text(), R"("resultType":"complete")", {}, {});
    const mcp::MethodInfo* info = mcp::find_method(method, client);
    if (info && info->cacheable)
      splice.insert_member_text(view.text(), R"("ttlMs":0,"cacheScope":"private")", {}, {});
    const json::View meta = json::Members(response.members(), view, {"_meta"})["_meta"];
    if (meta.is(json::Type::object)) {
      splice.insert_member_text(meta.text(), R"("io.modelcontextprotocol/serverInfo":)", server_info, {});
    } else if (meta.absent()) {
      splice.insert_member_text(view.text(), R"("_meta":{"io.modelcontextprotocol/serverInfo":)", server_info,
                                "}");
    }
  } else {
    const json::Members members(response.members(), view,
                                {"_meta", "resultType", "ttlMs", "cacheScope", "structuredContent"});
    for (const std::string_view key : {"resultType", "ttlMs", "cacheScope"})
      remove_if_present(splice, members[key]);
    remove_if_present(splice, members["_meta"][mcp::kServerInfoKey]);
    // In revisions up to 2025-11-25, structuredContent is an object or absent.
    const json::View structured = members["structuredContent"];
    if (!structured.is(json::Type::object)) remove_if_present(splice, structured);
  }
  return json::Raw::trusted(splice.joined(), result.is_one_line());
}

}  // namespace fairlead::gateway
