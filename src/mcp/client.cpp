#include "fairlead/mcp/client.hpp"

#include "mcp/client_session.hpp"

namespace fairlead::mcp {

namespace {

using Made = Result<std::shared_ptr<Client>>;
using Step = Result<ClientSession::Probe>;

// Speaks the legacy handshake, or fails with its connection closed.
Task<Made> shake_hands(std::shared_ptr<ClientSession> session, Revision revision) {
  Task<Result<void>> initializing = session->initialize(revision);
  const Result<void> initialized = co_await initializing;
  if (initialized) co_return std::shared_ptr<Client>(session);
  Task<void> closing = session->close();
  co_await closing;
  co_return initialized.error();
}

Task<Made> settle_era(std::shared_ptr<ClientSession> session, ClientOptions options, bool& gone) {
  if (options.pinned && !is_modern(*options.pinned)) {
    Task<Made> shaking = shake_hands(session, *options.pinned);
    Made made = co_await shaking;
    co_return made;
  }
  Task<Step> probing = session->probe();
  const Step probed = co_await probing;
  gone = probed && *probed == ClientSession::Probe::gone;
  if (probed && *probed == ClientSession::Probe::modern) co_return std::shared_ptr<Client>(session);
  if (probed && *probed == ClientSession::Probe::legacy && !options.pinned) {
    Task<Made> shaking = shake_hands(session, kNewestLegacy);
    Made made = co_await shaking;
    co_return made;
  }
  Task<void> closing = session->close();
  co_await closing;
  if (!probed) co_return probed.error();
  co_return Error(ErrorKind::connection_failed,
                  "the server does not speak revision " + std::string(to_string(kNewest)));
}

}  // namespace

Task<Made> Client::on(std::shared_ptr<Connection> connection, ClientOptions options) {
  bool gone = false;
  Task<Made> settling = settle_era(ClientSession::start(std::move(connection), options), options, gone);
  Made made = co_await settling;
  co_return made;
}

// A server that dies of the modern question is started once more and spoken to in the legacy way.
Task<Made> Client::connect(Loop& loop, std::string uri, ClientOptions options) {
  Task<ConnectResult> connecting = fairlead::connect(loop, uri, options.connect);
  ConnectResult connection = co_await connecting;
  if (!connection) co_return connection.error();
  bool gone = false;
  Task<Made> settling = settle_era(ClientSession::start(*connection, options), options, gone);
  Made made = co_await settling;
  if (made || !gone || options.pinned) co_return made;
  Task<ConnectResult> reconnecting = fairlead::connect(loop, uri, options.connect);
  ConnectResult again = co_await reconnecting;
  if (!again) co_return again.error();
  Task<Made> shaking = shake_hands(ClientSession::start(*again, options), kNewestLegacy);
  Made legacy = co_await shaking;
  co_return legacy;
}

Task<Result<std::vector<json::Raw>>> Client::tools() {
  return list("tools/list", "tools");
}
Task<Result<std::vector<json::Raw>>> Client::resources() {
  return list("resources/list", "resources");
}
Task<Result<std::vector<json::Raw>>> Client::resource_templates() {
  return list("resources/templates/list", "resourceTemplates");
}
Task<Result<std::vector<json::Raw>>> Client::prompts() {
  return list("prompts/list", "prompts");
}

Task<Result<std::uint64_t>> Client::subscribe(std::string uri) {
  ListenFilter filter;
  filter.uris.push_back(std::move(uri));
  return listen(std::move(filter));
}

Task<Result<std::vector<ResourceContents>>> Client::read_resource(std::string uri) {
  const auto keep = shared_from_this();
  json::Writer params;
  params.begin_object().key("uri").string(uri).end_object();
  ToolCallOptions options;
  Task<Result<json::Raw>> asking = request("resources/read", params.finish(), std::move(options));
  const Result<json::Raw> answer = co_await asking;
  if (!answer) co_return answer.error();
  std::vector<ResourceContents> all;
  json::View(*answer)["contents"].each_element([&](json::View entry) {
    all.push_back(ResourceContents{entry["uri"].as_string().value_or(""),
                                   entry["mimeType"].as_string().value_or(""), entry["text"].as_string(),
                                   entry["blob"].as_string()});
    return true;
  });
  co_return all;
}

Task<Result<PromptResult>> Client::get_prompt(std::string name,
                                              std::map<std::string, std::string> arguments) {
  const auto keep = shared_from_this();
  json::Writer params;
  params.begin_object().key("name").string(name).key("arguments").begin_object();
  for (const auto& [key, value] : arguments) params.key(key).string(value);
  params.end_object().end_object();
  ToolCallOptions options;
  Task<Result<json::Raw>> asking = request("prompts/get", params.finish(), std::move(options));
  const Result<json::Raw> answer = co_await asking;
  if (!answer) co_return answer.error();
  PromptResult result;
  const json::View view(*answer);
  result.description = view["description"].as_string().value_or("");
  view["messages"].each_element([&](json::View message) {
    const json::View content = message["content"];
    result.messages.push_back(
        PromptMessage{message["role"].as_string().value_or(""),
                      Content(json::Raw::trusted(answer->bytes().part(content.text())))});
    return true;
  });
  co_return result;
}

}  // namespace fairlead::mcp
