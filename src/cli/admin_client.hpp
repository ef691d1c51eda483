// Requests to the admin API of a gateway (docs/admin-api.md), for the commands that manage one. run_admin()
// finds the gateway, or opens the database in this process if no gateway serves it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/common.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/task.hpp"
#include "http/client.hpp"

namespace fairlead::cli {

// The options that select a gateway. Without them: the variables FAIRLEAD_GATEWAY and FAIRLEAD_CONTEXT, the
// current context, the gateway that serves the default database, and at last that database itself.
struct GatewayChoice {
  std::string context;                   // --context
  std::string url;                       // --gateway
  std::string token_file;                // --token-file
  std::string database;                  // --db
  std::string ca_file;                   // --ca-file
  std::chrono::milliseconds timeout{0};  // --timeout; 0: kDefaultTimeout
  bool may_create_database = true;       // if `database` names one that does not exist yet

  void add_to(CLI::App& command);
  // How long to wait for each response, and for each answer of the user.
  std::chrono::milliseconds wait_limit() const;
};

// Where a gateway is, and how to authenticate there.
struct GatewayAddress {
  std::string url;      // http://…, https://… or unix:/PATH
  std::string token;    // empty: none is known
  std::string ca_file;  // certificates to trust in addition to those of the system; may be empty
  bool direct = false;  // the gateway is in this process, and runs no server
  // Where the token would be expected, for the remedy of an error; may be empty.
  std::string token_hint;
};

struct AdminRequest {
  AdminRequest(std::string verb, std::string where, json::Raw content = json::Raw())
      : method(std::move(verb)), path(std::move(where)), body(std::move(content)) {}

  std::string method;
  std::string path;      // below /api/v1, percent-encoded, such as "/mcp/servers/" + path_segment(name)
  json::Raw body;        // absent: none
  std::string if_match;  // an ETag; empty: none
  // The path is not below /api/v1: /health or /readyz, whose status 503 is no error.
  bool outside_api = false;
};

struct AdminReply {
  int status = 0;
  json::Raw body;  // absent if the response has none
  std::string etag;
};

// An event of a stream: its name, and its data, which is JSON.
struct AdminEvent {
  std::string name;
  json::Raw data;
};

// Returns `text` with every byte percent-encoded that is not a letter, a digit or one of -._~, for one
// segment of a path or one value of a query.
std::string path_segment(std::string_view text);

// All functions fail with the error of the problem document (RFC 9457) if the gateway responds with one: kind
// `authorization` for the status 401, otherwise `remote`; `detail()` has http_status, failure_code, remedy
// and pointer. They fail with `closed`, `connection_failed` or `timeout` if there is no response.
class AdminClient {
 public:
  static constexpr std::chrono::milliseconds kDefaultTimeout{180'000};
  static constexpr std::size_t kMaxResponseBytes = 64u << 20;
  static constexpr std::size_t kMaxListedRows = 1'000'000;

  static Result<std::shared_ptr<AdminClient>> create(Loop& loop, const GatewayAddress& address,
                                                     std::chrono::milliseconds timeout = kDefaultTimeout);
  ~AdminClient();
  AdminClient(const AdminClient&) = delete;
  AdminClient& operator=(const AdminClient&) = delete;

  Task<Result<AdminReply>> send(AdminRequest request);
  // These return the body of the response.
  Task<Result<json::Raw>> get(std::string path);
  Task<Result<json::Raw>> post(std::string path, json::Raw body = json::Raw());
  Task<Result<json::Raw>> put(std::string path, json::Raw body);
  // With `if_match`, fails if the row has changed since it was read with that ETag.
  Task<Result<json::Raw>> patch(std::string path, json::Raw body, std::string if_match = std::string());
  Task<Result<json::Raw>> remove(std::string path);
  // Returns the items of all pages of a list.
  Task<Result<std::vector<json::Raw>>> list(std::string path);
  // Sends a request with `Accept: text/event-stream` and calls `on_event` for each event until it returns
  // false or the stream ends. If the response is no stream, `on_event` is called once, with an empty name.
  Task<Result<void>> stream(AdminRequest request, std::function<bool(const AdminEvent&)> on_event);

  // The gateway is in this process, only for this command: no server runs in it.
  bool direct() const noexcept { return address_.direct; }
  // Fails if direct(). `what` begins the message, such as "the logs of a server".
  Result<void> require_gateway(std::string_view what) const;
  const GatewayAddress& address() const noexcept { return address_; }
  Loop& loop() const noexcept { return loop_; }

 private:
  AdminClient(Loop& loop, GatewayAddress address, std::chrono::milliseconds timeout)
      : loop_(loop), address_(std::move(address)), timeout_(timeout) {}
  using ResponseResult = Result<std::shared_ptr<http::ClientResponse>>;

  Task<ResponseResult> open(AdminRequest request, bool events);
  Result<json::Raw> parse_body(const std::string& text) const;
  Error problem(int status, const std::string& body) const;

  Loop& loop_;
  GatewayAddress address_;
  std::chrono::milliseconds timeout_;
  http::Url base_{};  // with the path before /api/v1
  std::shared_ptr<http::HttpClient> http_;
};

using AdminClientPtr = std::shared_ptr<AdminClient>;

// Finds the gateway and runs `action` with a client of it. Returns the exit status of the action, or that of
// the first error, which is printed to stderr.
using AdminAction = std::function<Task<Result<int>>(AdminClientPtr)>;
int run_admin(const GatewayChoice& choice, const AdminAction& action);

}  // namespace fairlead::cli
