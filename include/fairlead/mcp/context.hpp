// Context: the request that a handler serves, and the means to communicate with the client while it runs. The
// interface is the same in both eras; a handler need not know the era.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/principal.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/loop/task.hpp"
#include "fairlead/mcp/types.hpp"
#include "fairlead/protocol/revision.hpp"

namespace fairlead {
class Loop;
class PostedBytes;
}  // namespace fairlead

namespace fairlead::mcp {

struct RequestState;

// Selects clients, for example those to notify; see Context::session() and principal().
using ClientPredicate = std::function<bool(std::string_view session, const Principal& principal)>;

class Context {
 public:
  explicit Context(std::shared_ptr<RequestState> state) : state_(std::move(state)) {}

  Revision revision() const noexcept;
  // The capabilities that the client declared: once per session (legacy era) or with this request (modern
  // era).
  json::View client_capabilities() const noexcept;
  // Returns the settings of an extension that the client declared; absent if the client did not declare it.
  json::View client_extension(std::string_view id) const;
  json::View client_info() const noexcept;
  // Returns the request's `_meta`; absent if it has none.
  json::View meta() const noexcept;
  // The authenticated principal; never null.
  const PrincipalPtr& principal() const noexcept;
  // The principal's user; empty if it has none.
  std::string_view user() const noexcept;
  // Returns the key of the connection or HTTP session on which the request arrived. Two requests have the
  // same key if and only if they arrived on the same connection or session. Empty for stateless requests.
  std::string_view session() const noexcept;
  // Stop is requested when the client cancels the request or disconnects.
  const std::stop_token& stop() const noexcept;
  // The loop of the client's connection. Functions that send to the client must be called on its thread.
  Loop& loop() const noexcept;
  // The limit (max_backlog_bytes) on the bytes that other threads have posted to loop() for this client.
  const PostedBytes& posted_bytes() const noexcept;

  // Sends a progress notification if the client requested progress. `progress` must increase with each call.
  void report_progress(double progress, std::optional<double> total = std::nullopt,
                       std::string_view message = {}) const;
  // Sends a log message if the client requested messages of this level.
  void log(LoggingLevel level, const json::Raw& data, std::string_view logger = {}) const;

  // Returns true after `time`, or false as soon as the request is cancelled.
  Task<bool> sleep(std::chrono::milliseconds time) const;

  // Turns the request into a task: the server responds with the task, and the handler continues. From then on
  // stop() returns the stop token of the task, an input request suspends the handler until its response
  // arrives instead of ending the round, and clients see the text of set_status_message(). For coroutine
  // tools with TaskSupport::optional. Returns true if the request is a task now or already was one. Returns
  // false if the client does not support tasks or max_tasks is reached; the handler then continues as an
  // ordinary request.
  Task<bool> become_task() const;
  bool is_task() const noexcept;
  // Sets the task's status message, a text for people. Does nothing if the request is not a task.
  void set_status_message(std::string_view message) const;

  // Closes the HTTP response stream of this request during long work. The client reconnects to receive the
  // messages that are sent from now on, including the response. Only clients of revision 2025-11-25 support
  // this; for other revisions and other transports the function does nothing.
  void close_stream() const;

  // ---- input requests, for coroutine handlers ----
  // These functions request input from the user or the model of the client. A legacy client is sent a
  // request. A modern client receives an input-required result and repeats its request with the input
  // responses (a new round): the handler then runs again FROM ITS START, and each input request that has a
  // response returns at once. So make all input requests before any side effect, always the same ones in the
  // same order. Independent input requests can be made together with all() of loop/all.hpp, in one round
  // instead of several. `key` names the input request in the modern era; if empty, it is numbered. If the
  // client has not declared the required capability, these functions fail with -32021 (`remote`) in the
  // modern era and with `validation` in the legacy era.
  Task<Result<ElicitResult>> elicit(std::string message, json::Raw requested_schema,
                                    std::string key = std::string()) const;
  Task<Result<ElicitResult>> elicit_url(std::string message, std::string url,
                                        std::string key = std::string()) const;
  // Requires the user to visit a URL before the handler can continue. The handler must return the error that
  // this function fails with. In revision 2025-11-25 the error is -32042: the client opens the URL and
  // repeats the call. In revision 2026-07-28 the client receives an input request, and the handler runs again
  // from its start. In a task, returns when the user has agreed to visit the URL. `id` is the key of the
  // input request and the argument of Server::notify_elicitation_complete(). Also fails if the user declines
  // or the client does not support URLs.
  Task<Result<void>> require_url(std::string message, std::string url, std::string id) const;
  // Sends sampling/createMessage with `params` and returns its result.
  Task<Result<json::Raw>> sample(json::Raw params, std::string key = std::string()) const;
  Task<Result<std::vector<Root>>> roots(std::string key = std::string()) const;

  // ---- for proxies, which forward messages unchanged ----
  // The least severe level of log messages that the client requested; nullopt if it requested none.
  std::optional<LoggingLevel> log_level() const noexcept;
  // Sends a notification related to this request.
  void notify(std::string_view method, const json::Raw& params) const;
  // Sends a request to a legacy client. Cancelled when `stop` or stop() requests it.
  Task<Result<json::Raw>> send_legacy_request(std::string method, json::Raw params,
                                              std::stop_token stop = {}) const;

 private:
  std::shared_ptr<RequestState> state_;
};

}  // namespace fairlead::mcp
