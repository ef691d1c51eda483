// Route: one operation of the admin API. The table of routes serves the requests, and the OpenAPI document is
// generated from it. Private to the layer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/result.hpp"
#include "fairlead/http/headers.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/loop/task.hpp"
#include "registry/rules.hpp"

namespace fairlead::admin {

class Call;

// The response of a handler.
struct Reply {
  Reply() {}  // NOLINT: not an aggregate, see StreamConnectOptions
  explicit Reply(int code) : status(code) {}
  Reply(int code, json::Raw document) : status(code), body(std::move(document)) {}

  int status = 200;
  json::Raw body;         // absent: no content
  http::Headers headers;  // in addition to Content-Type
  bool sent = false;      // the handler has already responded, for example with an event stream
};

// Handles a request. `call` outlives the task.
using RouteHandler = Task<Result<Reply>> (*)(Call& call);

// A parameter of the query.
struct Parameter {
  std::string_view name;
  std::string_view description;
  std::string_view schema;  // JSON Schema of the value
};

struct ResponseSpec {
  int status = 200;
  std::string_view description;
  std::string_view schema;  // the name of a component schema, or "[NAME]" for a page of a list; may be empty
  bool events = false;      // also, or only, as an event stream
};

// How the body of a request is read.
enum class Body : unsigned char {
  none,         // must be empty, or an empty object
  json,         // application/json
  merge_patch,  // application/merge-patch+json or application/json
};

struct Route {
  std::string_view method;
  std::string_view path;  // below the prefix, such as "/mcp/servers/{id}"
  std::string_view operation;
  std::string_view summary;
  // What the client must be allowed to do in the area; handlers decide about rows. A route without an area is
  // open to every client that the authenticator accepts: with AuthMode::none also without a token.
  std::optional<registry::Area> area;
  registry::Operation access = registry::Operation::list;
  std::vector<Parameter> query;
  Body body = Body::none;
  std::string_view request_schema;  // the name of a component schema
  std::vector<ResponseSpec> responses;
  RouteHandler handler = nullptr;
  // The stored response to a request with an Idempotency-Key omits this member, because it is secret.
  std::string_view secret_member;
  bool has_secret_body = false;  // the body is not stored, not even as a digest that could be guessed

  bool is_read() const noexcept { return method == "GET"; }
};

// The prefix of all paths. The paths are also served without it, as aliases.
inline constexpr std::string_view kApiPrefix = "/api/v1";

class RouteTable {
 public:
  explicit RouteTable(std::vector<Route> routes);

  const std::vector<Route>& routes() const noexcept { return routes_; }

  struct Match {
    const Route* route = nullptr;           // null: no route has this path and method
    std::vector<std::string_view> allowed;  // the methods of the path; empty: no route has this path
    std::vector<std::string> values;        // of the parameters in the path, decoded
    bool malformed = false;                 // a segment is not percent-encoded UTF-8
  };
  // Finds the route for a request. `path` has no query; the prefix and a slash at its end are optional. HEAD
  // is served as GET. "/secrets/status" is not a path of "/secrets/{id}" if it has a route of its own.
  Match find(std::string_view method, std::string_view path) const;
  // Returns the paths to register at an http::Server, without "/*".
  std::vector<std::string> roots() const;

 private:
  std::vector<Route> routes_;
};

}  // namespace fairlead::admin
