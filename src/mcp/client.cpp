#include "fairlead/mcp/client.hpp"

#include "fairlead/loop/timer.hpp"
#include "json/members.hpp"
#include "json/walk.hpp"
#include "loop/slices.hpp"
#include "mcp/client_session.hpp"

namespace fairlead::mcp {

namespace {

using Made = Result<std::shared_ptr<Client>>;

}  // namespace

Task<Made> Client::on(std::shared_ptr<Connection> connection, ClientOptions options) {
  const std::string problem = problem_of(options.extensions);
  if (!problem.empty()) {
    connection->close();
    co_return Error(ErrorKind::validation, problem);
  }
  const std::shared_ptr<ClientSession> session = ClientSession::make(connection->loop(), std::move(options));
  Task<Result<void>> settling = session->settle_on(std::move(connection));
  const Result<void> settled = co_await settling;
  if (!settled) co_return settled.error();
  co_return std::shared_ptr<Client>(session);
}

Task<Made> Client::connect(Loop& loop, std::string uri, ClientOptions options) {
  const std::string problem = problem_of(options.extensions);
  if (!problem.empty()) co_return Error(ErrorKind::validation, problem);
  const std::shared_ptr<ClientSession> session = ClientSession::make(loop, std::move(options));
  Task<Result<void>> connecting = session->connect_to(std::move(uri));
  const Result<void> connected = co_await connecting;
  if (!connected) co_return connected.error();
  co_return std::shared_ptr<Client>(session);
}

Task<Made> Client::connect(Loop& loop, Connector connector, ClientOptions options) {
  const std::shared_ptr<ClientSession> session = ClientSession::make(loop, std::move(options));
  Task<Result<void>> connecting = session->connect_by(std::move(connector));
  const Result<void> connected = co_await connecting;
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
  const json::View contents = json::View(*answer)["contents"];
  if (!contents.is(json::Type::array)) co_return all;
  const ListLimits limits;
  Slices slices;
  json::ElementWalk walk(contents.text());
  while (walk.next()) {
    if (all.size() == limits.max_list_entries)
      co_return list_over("resources/read", "max_list_entries", limits.max_list_entries);
    const json::Members entry(json::View(walk.value()), {"uri", "mimeType", "text", "blob"},
                              limits.max_message_members);
    all.push_back(ResourceContents{entry["uri"].as_string().value_or(""),
                                   entry["mimeType"].as_string().value_or(""), entry["text"].as_string(),
                                   entry["blob"].as_string()});
    if (slices.due(walk.value().size())) co_await sleep_for(connection().loop(), Slices::kPause);
  }
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
  const json::Members view(json::View(*answer), {"description", "messages"});
  result.description = view["description"].as_string().value_or("");
  if (!view["messages"].is(json::Type::array)) co_return result;
  const ListLimits limits;
  Slices slices;
  json::ElementWalk walk(view["messages"].text());
  while (walk.next()) {
    if (result.messages.size() == limits.max_list_entries)
      co_return list_over("prompts/get", "max_list_entries", limits.max_list_entries);
    const json::Members message(json::View(walk.value()), {"role", "content"}, limits.max_message_members);
    result.messages.push_back(
        PromptMessage{message["role"].as_string().value_or(""), Content(sub(*answer, message["content"]))});
    if (slices.due(walk.value().size())) co_await sleep_for(connection().loop(), Slices::kPause);
  }
  co_return result;
}

}  // namespace fairlead::mcp
