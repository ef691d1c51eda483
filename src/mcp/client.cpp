#include "fairlead/mcp/client.hpp"

#include "fairlead/loop/timer.hpp"
#include "json/members.hpp"
#include "json/walk.hpp"
#include "loop/slices.hpp"
#include "mcp/client_session.hpp"

namespace fairlead::mcp {

namespace {

using ClientResult = Result<std::shared_ptr<Client>>;

}  // namespace

Task<ClientResult> Client::connect_over(std::shared_ptr<Connection> connection, ClientOptions options) {
  const std::string problem = extensions_problem(options.extensions);
  if (!problem.empty()) {
    connection->close();
    co_return Error(ErrorKind::validation, problem);
  }
  const std::shared_ptr<ClientSession> session = ClientSession::make(connection->loop(), std::move(options));
  const Result<void> negotiated = co_await session->handshake_on(std::move(connection));
  if (!negotiated) co_return negotiated.error();
  co_return std::shared_ptr<Client>(session);
}

Task<ClientResult> Client::connect(Loop& loop, std::string uri, ClientOptions options) {
  const std::string problem = extensions_problem(options.extensions);
  if (!problem.empty()) co_return Error(ErrorKind::validation, problem);
  const std::shared_ptr<ClientSession> session = ClientSession::make(loop, std::move(options));
  const Result<void> connected = co_await session->connect_to(std::move(uri));
  if (!connected) co_return connected.error();
  co_return std::shared_ptr<Client>(session);
}

Task<ClientResult> Client::connect(Loop& loop, Connector connector, ClientOptions options) {
  const std::shared_ptr<ClientSession> session = ClientSession::make(loop, std::move(options));
  const Result<void> connected = co_await session->connect_with(std::move(connector));
  if (!connected) co_return connected.error();
  co_return std::shared_ptr<Client>(session);
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
  SubscriptionFilter filter;
  filter.uris.push_back(std::move(uri));
  return subscribe(std::move(filter));
}

Task<Result<std::vector<ResourceContents>>> Client::read_resource(std::string uri) {
  const auto keep_alive = shared_from_this();
  json::Writer params;
  params.begin_object().key("uri").string(uri).end_object();
  ClientCallOptions options;
  const Result<json::Raw> response = co_await request("resources/read", params.finish(), std::move(options));
  if (!response) co_return response.error();
  std::vector<ResourceContents> contents;
  const json::View elements = json::View(*response)["contents"];
  if (!elements.is(json::Type::array)) co_return contents;
  const ListLimits limits;
  Slices slices;
  json::ElementWalk walk(elements.text());
  while (walk.next()) {
    if (contents.size() == limits.max_list_entries)
      co_return list_limit_error("resources/read", "max_list_entries", limits.max_list_entries);
    const json::Members entry(json::View(walk.value()), {"uri", "mimeType", "text", "blob"},
                              limits.max_message_members);
    contents.push_back(ResourceContents{entry["uri"].as_string().value_or(""),
                                        entry["mimeType"].as_string().value_or(""), entry["text"].as_string(),
                                        entry["blob"].as_string()});
    if (slices.due(walk.value().size())) co_await sleep_for(connection().loop(), Slices::kPause);
  }
  co_return contents;
}

Task<Result<PromptResult>> Client::get_prompt(std::string name,
                                              std::map<std::string, std::string> arguments) {
  const auto keep_alive = shared_from_this();
  json::Writer params;
  params.begin_object().key("name").string(name).key("arguments").begin_object();
  for (const auto& [key, value] : arguments) params.key(key).string(value);
  params.end_object().end_object();
  ClientCallOptions options;
  const Result<json::Raw> response = co_await request("prompts/get", params.finish(), std::move(options));
  if (!response) co_return response.error();
  PromptResult result;
  const json::Members view(json::View(*response), {"description", "messages"});
  result.description = view["description"].as_string().value_or("");
  if (!view["messages"].is(json::Type::array)) co_return result;
  const ListLimits limits;
  Slices slices;
  json::ElementWalk walk(view["messages"].text());
  while (walk.next()) {
    if (result.messages.size() == limits.max_list_entries)
      co_return list_limit_error("prompts/get", "max_list_entries", limits.max_list_entries);
    const json::Members message(json::View(walk.value()), {"role", "content"}, limits.max_message_members);
    result.messages.push_back(PromptMessage{message["role"].as_string().value_or(""),
                                            Content(raw_part(*response, message["content"]))});
    if (slices.due(walk.value().size())) co_await sleep_for(connection().loop(), Slices::kPause);
  }
  co_return result;
}

}  // namespace fairlead::mcp
