#include "admin/routes.hpp"

#include "admin/handlers.hpp"
#include "admin/row_kinds.hpp"
#include "admin/rows.hpp"

namespace fairlead::admin {

namespace {

using registry::Area;
using registry::Operation;

constexpr std::string_view kString = R"({"type":"string"})";
constexpr std::string_view kBoolean = R"({"type":"boolean"})";

constexpr Parameter kLimit{"limit", "Items in a page",
                           R"({"type":"integer","minimum":1,"maximum":500,"default":50})"};
constexpr Parameter kCursor{"cursor", "`nextCursor` of the previous page", kString};
constexpr Parameter kName{"name", "A name, or a pattern in which * matches any text", kString};
constexpr Parameter kEnabled{"enabled", "Whether the row is enabled", kBoolean};

std::vector<Parameter> page_and(std::initializer_list<Parameter> more) {
  std::vector<Parameter> all = {kLimit, kCursor};
  all.insert(all.end(), more);
  return all;
}

// The five routes of one kind of rows.
struct RowRoutes {
  Area area;
  std::string_view path;       // of the list
  std::string_view item_path;  // of one row
  std::string_view noun, row, input, patch, list;
  std::string_view operations[5];  // list, create, get, patch, remove
  std::string_view summaries[5];
  std::vector<Parameter> filters;
};

template <class Kind>
void add_row_routes(std::vector<Route>& routes, const RowRoutes& rows) {
  const auto add = [&](std::string_view method, std::string_view path, int number, Operation access,
                       RouteHandler handler) -> Route& {
    Route& route = routes.emplace_back();
    route.method = method;
    route.path = path;
    route.operation = rows.operations[number];
    route.summary = rows.summaries[number];
    route.area = rows.area;
    route.access = access;
    route.handler = handler;
    return route;
  };
  Route& list = add("GET", rows.path, 0, Operation::list, list_rows<Kind>);
  list.query = rows.filters;
  list.responses = {{200, "A page of the list", rows.list}};
  Route& create = add("POST", rows.path, 1, Operation::create, create_row<Kind>);
  create.body = Body::json;
  create.request_schema = rows.input;
  create.responses = {{201, "The new row", rows.row}};
  add("GET", rows.item_path, 2, Operation::read, get_row<Kind>).responses = {{200, "The row", rows.row}};
  Route& patch = add("PATCH", rows.item_path, 3, Operation::update, patch_row<Kind>);
  patch.body = Body::merge_patch;
  patch.request_schema = rows.patch;
  patch.responses = {{200, "The changed row", rows.row}};
  add("DELETE", rows.item_path, 4, Operation::remove, remove_row<Kind>).responses = {{204, "Removed", ""}};
}

Route make(std::string_view method, std::string_view path, std::string_view operation,
           std::string_view summary, std::optional<Area> area, Operation access, RouteHandler handler) {
  Route route;
  route.method = method;
  route.path = path;
  route.operation = operation;
  route.summary = summary;
  route.area = area;
  route.access = access;
  route.handler = handler;
  return route;
}

void add_server_rows(std::vector<Route>& routes) {
  RowRoutes rows{
      Area::servers,
      "/mcp/servers",
      "/mcp/servers/{id}",
      "server",
      "Server",
      "ServerInput",
      "ServerPatch",
      "[Server]",
      {"listServers", "createServer", "getServer", "patchServer", "removeServer"},
      {"Lists the servers", "Registers a server", "Returns a server", "Changes a server", "Removes a server"},
      {}};
  rows.filters = page_and({kName,
                           {"tag", "A tag of the server", kString},
                           {"domain", "The domain of the server", kString},
                           {"visibility", "The visibility", R"({"enum":["hidden","visible","user"]})"},
                           kEnabled});
  add_row_routes<ServerKind>(routes, rows);
}

void add_server_operations(std::vector<Route>& routes) {
  const auto add = [&](std::string_view method, std::string_view path, std::string_view operation,
                       std::string_view summary, Operation access, RouteHandler handler) -> Route& {
    return routes.emplace_back(make(method, path, operation, summary, Area::servers, access, handler));
  };
  add("POST", "/mcp/servers/{id}/test", "testServer",
      "Starts the server in a process of its own, lists its tools, and stops it", Operation::operate,
      test_server)
      .responses = {{200,
                     "The outcome; `ok` is false if the server fails. With Accept: text/event-stream, the "
                     "events `step` and then `result`",
                     "TestResult", true}};
  add("POST", "/mcp/servers/{id}/refresh", "refreshServer", "Fetches the lists of the server now",
      Operation::operate, refresh_server)
      .responses = {{200, "How its tools have changed", "RefreshResult"}};
  add("POST", "/mcp/servers/{id}/restart", "restartServer",
      "Drains and stops the server, and starts it again", Operation::operate, restart_server)
      .responses = {{200, "The state of the new process", "ServerState"}};
  add("POST", "/mcp/servers/{id}/stop", "stopServer",
      "Drains and stops the server; the next call starts it again", Operation::operate, stop_server)
      .responses = {{200, "No process was running", "ServerState"},
                    {202, "The processes drain", "ServerState"}};
  Route& tools =
      add("GET", "/mcp/servers/{id}/tools", "listServerTools",
          "Lists the tools of a server as it listed them last", Operation::list, list_server_tools);
  tools.query = page_and({kName});
  tools.responses = {{200, "A page of the list", "[Tool]"}};
  Route& logs = add("GET", "/mcp/servers/{id}/logs", "getServerLogs",
                    "Returns the last lines of the server's stderr", Operation::list, get_server_logs);
  constexpr std::string_view kLineCount = R"({"type":"integer","minimum":1,"maximum":1000,"default":100})";
  logs.query = {{"lines", "How many lines; the last ones are returned", kLineCount},
                {"limit", "The same as `lines`, as in other lists", kLineCount}};
  logs.responses = {{200,
                     "The lines, oldest first. With Accept: text/event-stream, the events `line` as they "
                     "are written",
                     "LogLines", true}};
  Route& all =
      add("GET", "/tools", "listTools", "Lists the tools of all servers", Operation::list, list_all_tools);
  all.query = page_and(
      {kName, {"domain", "The domain of the server", kString}, {"tag", "A tag of the server", kString}});
  all.responses = {{200, "A page of the list", "[Tool]"}};
}

void add_runtime(std::vector<Route>& routes) {
  Route& processes = routes.emplace_back(make(
      "GET", "/processes", "listProcesses", "Lists the processes of the servers and the connections to them",
      Area::processes, Operation::list, list_processes));
  processes.query = page_and({{"server", "The id or the name of a server", kString},
                              {"state", "A state, such as ready; without it, all that run", kString}});
  processes.responses = {{200, "A page of the list", "[Process]"}};
  Route& sessions =
      routes.emplace_back(make("GET", "/sessions", "listSessions", "Lists the sessions of MCP clients",
                               Area::sessions, Operation::list, list_sessions));
  sessions.query = page_and({{"endpoint", "The path of an endpoint", kString}});
  sessions.responses = {{200, "A page of the list", "[Session]"}};
  routes
      .emplace_back(make("DELETE", "/sessions/{session}", "removeSession", "Ends a session", Area::sessions,
                         Operation::remove, remove_session))
      .responses = {{204, "Ended", ""}};
  Route& events = routes.emplace_back(make("GET", "/events", "streamEvents",
                                           "Streams changes of rows, servers and configuration", Area::events,
                                           Operation::list, stream_events));
  events.responses = {{200, "The events; Last-Event-ID resumes a stream", "", true}};
}

void add_endpoints(std::vector<Route>& routes) {
  RowRoutes rows{Area::endpoints,
                 "/endpoints",
                 "/endpoints/{id}",
                 "endpoint",
                 "Endpoint",
                 "EndpointInput",
                 "EndpointPatch",
                 "[Endpoint]",
                 {"listEndpoints", "createEndpoint", "getEndpoint", "patchEndpoint", "removeEndpoint"},
                 {"Lists the endpoints", "Creates an endpoint", "Returns an endpoint", "Changes an endpoint",
                  "Removes an endpoint"},
                 {}};
  rows.filters = page_and({kName, kEnabled});
  add_row_routes<EndpointKind>(routes, rows);
}

void add_users(std::vector<Route>& routes) {
  RowRoutes rows{Area::users,
                 "/users",
                 "/users/{id}",
                 "user",
                 "User",
                 "UserInput",
                 "UserPatch",
                 "[User]",
                 {"listUsers", "createUser", "getUser", "patchUser", "removeUser"},
                 {"Lists the users", "Creates a user", "Returns a user", "Changes a user",
                  "Removes a user and the user's tokens"},
                 {}};
  rows.filters = page_and({kName, kEnabled, {"role", "The role", R"({"enum":["admin","user"]})"}});
  add_row_routes<UserKind>(routes, rows);
}

void add_groups(std::vector<Route>& routes) {
  RowRoutes rows{
      Area::groups,
      "/groups",
      "/groups/{id}",
      "group",
      "Group",
      "GroupInput",
      "GroupPatch",
      "[Group]",
      {"listGroups", "createGroup", "getGroup", "patchGroup", "removeGroup"},
      {"Lists the groups", "Creates a group", "Returns a group", "Changes a group", "Removes a group"},
      {}};
  rows.filters = page_and({kName});
  add_row_routes<GroupKind>(routes, rows);
}

void add_tokens(std::vector<Route>& routes) {
  Route& list = routes.emplace_back(make("GET", "/tokens", "listTokens", "Lists the tokens", Area::tokens,
                                         Operation::list, list_rows<TokenKind>));
  list.query = page_and({kName, {"user", "The id of a user", kString}});
  list.responses = {{200, "A page of the list", "[Token]"}};
  Route& create = routes.emplace_back(make("POST", "/tokens", "createToken",
                                           "Creates a token, which is returned only once", Area::tokens,
                                           Operation::create, create_token));
  create.body = Body::json;
  create.request_schema = "TokenInput";
  create.responses = {{201, "The new token", "Token"}};
  create.secret_member = "token";
  routes
      .emplace_back(make("GET", "/tokens/{id}", "getToken", "Returns a token without its text", Area::tokens,
                         Operation::read, get_row<TokenKind>))
      .responses = {{200, "The row", "Token"}};
  routes
      .emplace_back(make("DELETE", "/tokens/{id}", "revokeToken", "Revokes a token", Area::tokens,
                         Operation::remove, revoke_token))
      .responses = {{204, "Revoked", ""}};
}

void add_config(std::vector<Route>& routes) {
  Route& list = routes.emplace_back(make("GET", "/config", "listConfig", "Lists the configuration",
                                         Area::config, Operation::list, list_config));
  list.query = page_and({{"category", "The part of the key before the dot", kString}});
  list.responses = {{200, "A page of the list", "[ConfigItem]"}};
  routes
      .emplace_back(make("GET", "/config/{key}", "getConfig", "Returns a value with its definition",
                         Area::config, Operation::read, get_config))
      .responses = {{200, "The value", "ConfigItem"}};
  Route& put = routes.emplace_back(
      make("PUT", "/config/{key}", "putConfig", "Sets a value", Area::config, Operation::update, put_config));
  put.body = Body::json;
  put.request_schema = "ConfigValue";
  put.responses = {{200, "The changed value", "ConfigItem"}};
  routes
      .emplace_back(make("DELETE", "/config/{key}", "resetConfig", "Resets a value to its default",
                         Area::config, Operation::update, reset_config))
      .responses = {{204, "Reset", ""}};
}

void add_secret_routes(std::vector<Route>& routes) {
  RowRoutes rows{
      Area::secrets,
      "/secrets",
      "/secrets/{id}",
      "secret",
      "Secret",
      "SecretInput",
      "SecretPatch",
      "[Secret]",
      {"listSecrets", "createSecret", "getSecret", "patchSecret", "removeSecret"},
      {"Lists the secrets, without their values", "Stores a secret", "Returns a secret, without its value",
       "Replaces the value of a secret", "Removes a secret"},
      {}};
  rows.filters = page_and({kName,
                           {"server", "The id of a server; empty: secrets of all servers", kString},
                           {"user", "The id of a user; empty: secrets of all users", kString}});
  add_row_routes<SecretKind>(routes, rows);
  for (Route& route : routes)
    route.has_secret_body = route.has_secret_body || route.operation == "createSecret";
  routes
      .emplace_back(make("GET", "/secrets/status", "getSecretStatus",
                         "Returns which key encrypts the secrets, and whether it can be used", Area::secrets,
                         Operation::administer, get_secret_status))
      .responses = {{200, "The state of the key", "SecretStatus"}};
  Route& rekey = routes.emplace_back(make("POST", "/secrets/rekey", "rekeySecrets",
                                          "Replaces the keys that encrypt the secrets", Area::secrets,
                                          Operation::administer, rekey_secrets));
  rekey.body = Body::json;
  rekey.request_schema = "RekeyInput";
  rekey.responses = {{200, "What was encrypted again", "RekeyResult"}};
  Route& references =
      routes.emplace_back(make("GET", "/mcp/servers/{id}/secrets", "listServerSecrets",
                               "Lists the secrets that a server refers to, and whose value the caller gets",
                               Area::servers, Operation::list, list_server_secrets));
  references.query = page_and({});
  references.responses = {{200, "A page of the list", "[SecretReference]"}};
}

void add_drift(std::vector<Route>& routes) {
  Route& list = routes.emplace_back(make(
      "GET", "/drift", "listDrift", "Lists changes of the tools, resources, templates and prompts of servers",
      Area::drift, Operation::list, list_drift));
  list.query = page_and({{"server", "The id or the name of a server", kString},
                         {"status", "The status", R"({"enum":["open","approved","rejected","reverted"]})"}});
  list.responses = {{200, "A page of the list", "[Drift]"}};
  const auto add = [&](std::string_view method, std::string_view path, std::string_view operation,
                       std::string_view summary, Operation access, RouteHandler handler) {
    Route& route = routes.emplace_back(make(method, path, operation, summary, Area::drift, access, handler));
    route.responses = {{200, "The change", "Drift"}};
  };
  add("GET", "/drift/{change}", "getDrift", "Returns a change", Operation::read, get_drift);
  add("POST", "/drift/{change}/approve", "approveDrift",
      "Approves a change: the entry is offered as it is now", Operation::operate, approve_drift);
  add("POST", "/drift/{change}/reject", "rejectDrift", "Rejects a change: the entry is not offered",
      Operation::operate, reject_drift);
}

void add_documents(std::vector<Route>& routes) {
  routes
      .emplace_back(make("GET", "/openapi.json", "getOpenApi", "Returns this document", std::nullopt,
                         Operation::read, get_openapi))
      .responses = {{200, "The document", "any"}};
  routes
      .emplace_back(make("GET", "/docs", "getDocs", "Returns a page that shows this document", std::nullopt,
                         Operation::read, get_docs))
      .responses = {{200, "The page", "html"}};
}

}  // namespace

RouteTable admin_routes() {
  std::vector<Route> routes;
  add_server_rows(routes);
  add_server_operations(routes);
  add_runtime(routes);
  add_endpoints(routes);
  add_users(routes);
  add_groups(routes);
  add_tokens(routes);
  add_config(routes);
  add_secret_routes(routes);
  add_drift(routes);
  add_documents(routes);
  return RouteTable(std::move(routes));
}

}  // namespace fairlead::admin
