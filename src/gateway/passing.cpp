#include "gateway/passing.hpp"

#include "fairlead/json/members.hpp"
#include "fairlead/json/splice.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/protocol/method_table.hpp"
#include "protocol/envelope.hpp"

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

rpc::Message PassedRequest::for_server(mcp::Revision server, const Asker& asker, const json::Raw& answers,
                                       const json::Raw& state) const {
  const json::View params(request_.params_text());
  const json::Members members(params, {"_meta", "task", "inputResponses", "requestState"});
  const json::View meta = members["_meta"];
  const bool from_modern = is_modern(asker.revision);
  const bool to_modern = is_modern(server);
  json::Splice splice(request_.frame());
  if (rename_) splice.replace(rename_->where.text(), json::string(rename_->to).bytes());
  remove(splice, members["task"]);
  if (from_modern && to_modern) {
    remove(splice, meta[mcp::kCapabilitiesKey]["extensions"]);
  } else if (from_modern) {
    for (const std::string_view key :
         {mcp::kVersionKey, mcp::kCapabilitiesKey, mcp::kClientInfoKey, mcp::kLogLevelKey})
      remove(splice, meta[key]);
    remove(splice, members["inputResponses"]);
    remove(splice, members["requestState"]);
  } else if (to_modern) {
    json::Writer envelope;
    envelope.begin_object();
    envelope.key(mcp::kVersionKey).string(to_string(server));
    envelope.key(mcp::kCapabilitiesKey).raw(without_extensions(asker.capabilities));
    if (!asker.info.absent()) envelope.key(mcp::kClientInfoKey).raw(asker.info.text());
    if (asker.log_level) envelope.key(mcp::kLogLevelKey).string(to_string(*asker.log_level));
    envelope.end_object();
    const json::Raw made = envelope.finish();
    if (params.absent()) {
      splice.insert_member(json::View(request_.frame().view()).text(), "params",
                           "{\"_meta\":" + std::string(made.text()) + "}");
    } else if (meta.absent()) {
      splice.insert_member(params.text(), "_meta", made.text());
    } else {
      json::View(made).each_member([&](std::string_view key, bool, json::View value) {
        splice.insert_member(meta.text(), key, value.text());
        return true;
      });
    }
    if (!answers.absent()) splice.insert_member(params.text(), "inputResponses", answers.text());
    if (!state.absent()) splice.insert_member(params.text(), "requestState", state.text());
  }
  return rpc::Message::parse(splice.joined());
}

json::Raw result_for_client(const json::Raw& result, std::string_view method, mcp::Revision server,
                            mcp::Revision client, const mcp::Implementation& gateway) {
  const json::View view(result);
  // What is no object is no result of MCP's; nothing can be added to it or taken from it.
  if (is_modern(server) == is_modern(client) || !view.is(json::Type::object)) return result;
  const json::Members members(view, {"_meta", "resultType", "ttlMs", "cacheScope", "structuredContent"});
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
