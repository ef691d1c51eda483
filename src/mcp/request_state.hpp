// RequestState: the state of one request while its handler runs, and ClientLink, which sends messages to the
// client of the request. Private to the layer.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "fairlead/base/principal.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/posted_bytes.hpp"
#include "fairlead/loop/task.hpp"
#include "fairlead/mcp/types.hpp"
#include "fairlead/protocol/call_facts.hpp"
#include "fairlead/protocol/revision.hpp"
#include "mcp/task_store.hpp"

namespace fairlead::mcp {

// Sends messages to the client that sent a request.
class ClientLink {
 public:
  virtual ~ClientLink() = default;
  virtual Loop& loop() noexcept = 0;
  // Limits the bytes that other threads post to loop() for this client.
  virtual const PostedBytes& posted_bytes() const noexcept = 0;
  // `related_request` is the id of the request that the notification belongs to (see RelatedRequest), or
  // empty.
  virtual void notify(std::string_view method, const json::Raw& params, std::string_view related_request) = 0;
  // Sends a request to the client. Legacy era only. When stop is requested, fails with `cancelled` and
  // notifies the client of the cancellation.
  virtual Task<Result<json::Raw>> request(std::string method, json::Raw params, std::string related_request,
                                          std::stop_token stop) = 0;
  // Closes the HTTP stream that carries the messages related to a request. The client reconnects to receive
  // the remaining messages. Does nothing on transports without such streams.
  virtual void close_stream(std::string_view related_request) { static_cast<void>(related_request); }
  // Returns the principal of the client; never null.
  virtual const PrincipalPtr& principal() const noexcept = 0;
  // Returns the key that all requests of one connection share; empty if each request is independent.
  virtual std::string_view session() const noexcept { return {}; }
};

struct ServerState;

struct RequestState {
  struct InputRequest {
    std::string key;
    std::string method;
    json::Raw params;
  };

  explicit RequestState(std::string_view request_id = {}) : id(request_id) {}

  Revision revision = kNewestLegacyRevision;
  std::shared_ptr<ClientLink> link;
  std::string id;  // the id of the request, verbatim JSON
  json::Raw client_capabilities;
  json::Raw client_info;
  json::Raw meta;
  std::shared_ptr<const CallFacts> facts;  // facts of the request; null if this state belongs to no request
  std::optional<LoggingLevel> log_level;   // least severe level of log messages to send; nullopt: send none
  std::stop_token stop;

  // Modern era: the input responses received so far, by key; the number of input requests that the handler
  // has made; the input requests that have no response yet.
  std::map<std::string, json::Raw> input_responses;
  unsigned input_request_count = 0;
  std::vector<InputRequest> open_input_requests;
  // Set by run_handler(). Called when the handler has suspended itself: because it needs an input response,
  // or until the request has become a task. Called on the loop thread, not from within the handler.
  std::function<void()> on_suspend;

  // Tasks (server_tasks.cpp): whether this request may become a task; the task that it has become; the
  // handler, while it is suspended until the request has become a task.
  bool may_become_task = false;
  std::shared_ptr<TaskStore> task_store;
  TaskPtr task;
  std::coroutine_handle<> suspended_handler;
  std::shared_ptr<ServerState> server;
};

// Ends the round of a request: a handler that awaits this is never resumed. Wakes run_handler(), which
// destroys the handler.
class EndRoundAwaiter {
 public:
  explicit EndRoundAwaiter(std::shared_ptr<RequestState> state) : state_(std::move(state)) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<>) const {
    // Posted, since on_suspend() leads to the destruction of the handler's frame, in which this code runs. Of
    // several concurrent input requests (loop/all.hpp) the first one posts; the others have been added to the
    // list by the time the callback runs.
    if (state_->open_input_requests.size() > 1) return;
    state_->link->loop().post([state = state_] { state->on_suspend(); });
  }
  void await_resume() const noexcept {}

 private:
  std::shared_ptr<RequestState> state_;
};

// Suspends the handler until the response that contains the task has been made; then run_task() resumes the
// handler.
class BecomeTaskAwaiter {
 public:
  explicit BecomeTaskAwaiter(std::shared_ptr<RequestState> state) : state_(std::move(state)) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handler) const {
    state_->suspended_handler = handler;
    state_->link->loop().post([state = state_] { state->on_suspend(); });
  }
  void await_resume() const noexcept {}

 private:
  std::shared_ptr<RequestState> state_;
};

}  // namespace fairlead::mcp
