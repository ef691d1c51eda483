#include "cli/connect_target.hpp"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <optional>

#include "admin/admin_token.hpp"
#include "admin/gateway_file.hpp"
#include "base/uri.hpp"
#include "cli/attach.hpp"
#include "cli/contexts.hpp"
#include "cli/gateway_finder.hpp"
#include "clients/own_address.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::cli {

namespace {

constexpr std::string_view kDefaultUrl = "http://127.0.0.1:8808/mcp";

// The gateway that the client is to use, and how this program reaches its admin API.
struct ChosenGateway {
  ChosenGateway() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::string url;  // of MCP
  GatewayChoice admin;
  // Its URL was given, by --url, FAIRLEAD_GATEWAY or a context. Otherwise it serves a database.
  bool by_url = false;
  std::string database;  // other than the default one
};

// Returns the URL of a gateway without the path of MCP: http://HOST:PORT, or unix:/PATH.
std::string base_of(const std::string& url) {
  if (url.starts_with("unix:")) return url.substr(0, std::min(url.find('#'), url.find(" /")));
  const UriParts parts = split_uri(url);
  std::string_view path = parts.path;
  for (std::size_t at = path.find("/mcp"); at != std::string_view::npos; at = path.find("/mcp", at + 1)) {
    const bool is_segment = at + 4 == path.size() || path[at + 4] == '/';
    if (is_segment) path = path.substr(0, at);
  }
  while (path.ends_with('/')) path.remove_suffix(1);
  return std::string(parts.scheme).append(parts.authority).append(path);
}

// Returns the URL of MCP, or of an endpoint, of the gateway with this URL.
std::string mcp_url(const std::string& url, const std::string& endpoint) {
  const std::string base = base_of(url);
  const std::string path = endpoint.empty() ? "/mcp" : "/mcp/e/" + path_segment(endpoint);
  if (!base.starts_with("unix:")) return base + path;
  return endpoint.empty() ? base : base + "#" + path;
}

Result<ChosenGateway> gateway_at(const std::string& url, const ConnectChoice& choice) {
  ChosenGateway chosen;
  chosen.by_url = true;
  chosen.url = mcp_url(url, choice.endpoint);
  return chosen;
}

// Returns the gateway that serves a database, or the default address.
Result<ChosenGateway> gateway_of(const std::string& database, const ConnectChoice& choice, bool by_command) {
  ChosenGateway chosen;
  const std::string file = admin::sqlite_file_of(database);
  const std::optional<admin::ServingGateway> running =
      file.empty() ? std::nullopt : admin::find_serving_gateway(file);
  const bool is_usable = running && (by_command || !running->url.starts_with("unix:"));
  chosen.url = mcp_url(is_usable ? running->url : std::string(kDefaultUrl), choice.endpoint);
  return chosen;
}

// The same choice as that of the commands that manage a gateway, so that a token is created where it is used.
// Reads no token, because that may run a command.
Result<ChosenGateway> choose_gateway(const ConnectChoice& choice, bool by_command) {
  if (!choice.url.empty()) {
    Result<ChosenGateway> chosen = gateway_at(choice.url, choice);
    chosen->admin.url = base_of(choice.url);
    if (choice.endpoint.empty()) chosen->url = choice.url;
    return chosen;
  }
  if (const std::string url = environment_value("FAIRLEAD_GATEWAY"); !url.empty())
    return gateway_at(url, choice);
  const Result<Contexts> contexts = load_contexts();
  if (!contexts) return contexts.error();
  std::string name = environment_value("FAIRLEAD_CONTEXT");
  if (name.empty()) name = contexts->current;
  std::string database = environment_value("FAIRLEAD_DB");
  if (!name.empty()) {
    const Result<GatewayContext> context = find_context(*contexts, name);
    if (!context) return context.error();
    if (!context->gateway.empty()) return gateway_at(context->gateway, choice);
    database = context->database;
  }
  if (!database.empty()) {
    Result<ChosenGateway> chosen = gateway_of(database, choice, by_command);
    if (chosen && !name.empty()) chosen->database = database;
    return chosen;
  }
  const Result<std::string> state = admin::state_directory();
  return gateway_of(state ? "sqlite:" + *state + "/fairlead.db" : std::string(), choice, by_command);
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

// Sets the token and its id in `target`.
Task<Result<int>> create_token_for(AdminClientPtr client, std::string user, std::string name,
                                   ConnectTarget* target) {
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
  target->entry.token = json::View(*created)["token"].as_string().value_or("");
  target->created_token = json::View(*created)["id"].as_string().value_or("");
  co_return kSuccess;
}

Task<Result<int>> remove_token(AdminClientPtr client, std::string id) {
  const Result<json::Raw> removed = co_await client->remove("/tokens/" + path_segment(id));
  if (!removed) co_return removed.error();
  co_return kSuccess;
}

Result<void> fill_token(ConnectTarget& target, const clients::Client& client, const ConnectChoice& choice,
                        bool probe) {
  target.entry.token_variable = choice.token_env;
  if (!choice.token_file.empty()) {
    Result<std::string> token = read_client_token(choice.token_file);
    if (!token) return token.error();
    target.entry.token = std::move(*token);
  }
  if (choice.create_token.empty() || !probe) return {};
  const AdminAction action = [&](AdminClientPtr admin) {
    return create_token_for(std::move(admin), choice.create_token, "connect " + std::string(client.id),
                            &target);
  };
  if (run_admin(target.admin, action) != kSuccess || target.entry.token.empty())
    return Error(ErrorKind::validation, "no token was created, and the file is unchanged");
  return {};
}

}  // namespace

Result<std::string> own_program_path() {
  char self[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
  if (length <= 0) return Error(ErrorKind::io, "cannot read /proc/self/exe, the path of this program");
  return std::string(self, static_cast<std::size_t>(length));
}

bool is_same_gateway(const std::string& url, const std::string& own_url) {
  if (own_url.starts_with("unix:")) return base_of(url) == base_of(own_url);
  return url == own_url || clients::is_own_url(url, {own_url});
}

std::string endpoint_of(const std::string& url) {
  const std::string base = base_of(url);
  const std::size_t path = url.find("/mcp/", base.size());
  return path == std::string::npos ? std::string() : url.substr(path + 5);
}

Result<ConnectTarget> connect_target(const clients::Client& client, const ConnectChoice& choice, bool probe) {
  ConnectTarget target;
  clients::OwnEntry& own = target.entry;
  const bool by_command = choice.stdio || client.connect_by == clients::ConnectBy::stdio;
  const Result<ChosenGateway> chosen = choose_gateway(choice, by_command);
  if (!chosen) return chosen.error();
  const Result<AttachAddress> address = parse_attach_address(chosen->url);
  if (!address) return address.error();
  if (!by_command && !address->unix_socket.empty())
    return Error(
        ErrorKind::validation,
        std::string(client.title) + " does not connect to Unix sockets: pass --stdio, or an http URL");
  target.url = chosen->url;
  target.admin = chosen->admin;
  const Result<void> filled = fill_token(target, client, choice, probe);
  if (!filled) return filled.error();
  const bool attach = chosen->by_url || !choice.endpoint.empty();
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
  if (attach)
    own.command.insert(own.command.end(),
                       {"--attach", address->unix_socket.empty() ? address->url : chosen->url});
  if (!attach && !chosen->database.empty()) own.command.insert(own.command.end(), {"--db", chosen->database});
  return target;
}

void revoke_created_token(const ConnectTarget& target) {
  if (target.created_token.empty()) return;
  const AdminAction action = [&](AdminClientPtr admin) {
    return remove_token(std::move(admin), target.created_token);
  };
  run_admin(target.admin, action);
}

}  // namespace fairlead::cli
