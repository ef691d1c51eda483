#include "cli/connect_target.hpp"

#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <optional>

#include "admin/admin_token.hpp"
#include "admin/gateway_file.hpp"
#include "cli/attach.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::cli {

namespace {

constexpr std::string_view kDefaultUrl = "http://127.0.0.1:8808/mcp";

std::string variable_value(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

// Returns the gateway that serves the default database, or that of FAIRLEAD_DB.
std::optional<admin::ServingGateway> running_gateway() {
  std::string address = variable_value("FAIRLEAD_DB");
  if (address.empty()) {
    const Result<std::string> state = admin::state_directory();
    if (!state) return std::nullopt;
    address = "sqlite:" + *state + "/fairlead.db";
  }
  const std::string file = admin::sqlite_file_of(address);
  return file.empty() ? std::nullopt : admin::find_serving_gateway(file);
}

// Returns the URL of an endpoint of the gateway with this URL.
std::string endpoint_url(std::string url, const std::string& endpoint) {
  if (endpoint.empty()) return url;
  const std::string path = "/mcp/e/" + path_segment(endpoint);
  if (url.starts_with("unix:")) return url.substr(0, url.find('#')) + "#" + path;
  const std::size_t host = url.find("//");
  const std::size_t end = host == std::string::npos ? host : url.find('/', host + 2);
  return url.substr(0, end) + path;
}

Error token_needed(const std::string& url) {
  return Error(ErrorKind::validation, "the gateway at " + url + " needs a token")
      .with([](ErrorDetail& detail) {
        detail.remedy =
            "Pass --create-token USER to create one for a user, --token-file FILE with a token, or "
            "--token-env "
            "NAME for a variable in which the client has it.";
      });
}

Task<Result<int>> create_token_for(AdminClientPtr client, std::string user, std::string name,
                                   std::string* token) {
  const Result<std::vector<json::Raw>> users = co_await client->list("/users");
  if (!users) co_return users.error();
  std::string id;
  for (const json::Raw& row : *users) {
    const json::View view(row);
    if (view["name"].as_string() == user) id = view["id"].as_string().value_or("");
  }
  if (id.empty()) co_return Error(ErrorKind::validation, "--create-token: there is no user `" + user + "`");
  json::Writer body;
  body.begin_object().key("user").string(id).key("name").string(name);
  body.key("scopes").begin_array().string("mcp").end_array().end_object();
  json::Raw content = std::move(body).finish();
  const Result<json::Raw> created = co_await client->post("/tokens", std::move(content));
  if (!created) co_return created.error();
  *token = json::View(*created)["token"].as_string().value_or("");
  co_return 0;
}

Result<void> fill_token(clients::OwnEntry& own, const clients::Client& client, const ConnectChoice& choice,
                        bool probe) {
  own.token_variable = choice.token_env;
  if (!choice.token_file.empty()) {
    Result<std::string> token = read_client_token(choice.token_file);
    if (!token) return token.error();
    own.token = std::move(*token);
  }
  if (choice.create_token.empty() || !probe) return {};
  const std::string name = "connect " + std::string(client.id);
  std::string token;
  const AdminAction action = [&](AdminClientPtr admin) {
    return create_token_for(std::move(admin), choice.create_token, name, &token);
  };
  GatewayChoice gateway;
  if (!choice.url.empty()) gateway.url = choice.url.substr(0, choice.url.find("/mcp"));
  if (run_admin(gateway, action) != 0 || token.empty())
    return Error(ErrorKind::validation, "no token was created, and the file is unchanged");
  own.token = std::move(token);
  return {};
}

}  // namespace

Result<std::string> own_program_path() {
  char self[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
  if (length <= 0) return Error(ErrorKind::io, "cannot read /proc/self/exe, the path of this program");
  return std::string(self, static_cast<std::size_t>(length));
}

Result<ConnectTarget> connect_target(const clients::Client& client, const ConnectChoice& choice, bool probe) {
  ConnectTarget target;
  clients::OwnEntry& own = target.entry;
  const bool by_command = choice.stdio || client.connect_by == clients::ConnectBy::stdio;
  const std::optional<admin::ServingGateway> running = running_gateway();
  std::string url = choice.url;
  if (url.empty() && running && (by_command || !running->url.starts_with("unix:"))) url = running->url;
  if (url.empty()) url = kDefaultUrl;
  const Result<AttachAddress> address = parse_attach_address(endpoint_url(url, choice.endpoint));
  if (!address) return address.error();
  if (!by_command && !address->unix_socket.empty())
    return Error(
        ErrorKind::validation,
        std::string(client.title) + " does not connect to Unix sockets: pass --stdio, or an http URL");
  const Result<void> filled = fill_token(own, client, choice, probe);
  if (!filled) return filled.error();
  const bool attach = !choice.url.empty() || !choice.endpoint.empty();
  const bool has_token = !own.token.empty() || !own.token_variable.empty();
  if (probe && (attach || !by_command)) {
    const std::optional<int> status = probe_gateway(*address);
    if (!has_token && status == 401) return token_needed(address->url);
    target.answers = by_command || status.has_value();
  }
  if (!by_command) {
    own.url = address->url;
    return target;
  }
  const Result<std::string> program = own_program_path();
  if (!program) return program.error();
  own.command = {*program, "serve", "--stdio"};
  if (attach) {
    own.command.push_back("--attach");
    own.command.push_back(address->unix_socket.empty() ? address->url : endpoint_url(url, choice.endpoint));
  }
  return target;
}

}  // namespace fairlead::cli
