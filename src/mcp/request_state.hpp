// What a server keeps for one request while its handler runs. Private to the layer.
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

// The way back to the client a request came from.
class ClientLink {
 public:
  virtual ~ClientLink() = default;
  virtual Loop& loop() noexcept = 0;
  // Limits what is posted to loop() from elsewhere.
  virtual const PostedBytes& posted() const noexcept = 0;
  // `about` is the id of the request it is said for, see Concerning; empty when it is for none.
  virtual void notify(std::string_view method, const json::Raw& params, std::string_view about) = 0;
  // Legacy era only. Given up, and cancelled at the client, when `stop` says so.
  virtual Task<Result<json::Raw>> request(std::string method, json::Raw params, std::string about,
                                          std::stop_token stop) = 0;
  // Lets go of the stream on which the messages about a request go; the client comes back for the rest. Does
  // nothing where a connection carries them all.
  virtual void close_stream(std::string_view about) { static_cast<void>(about); }
  // Who asks; never null.
  virtual const PrincipalPtr& principal() const noexcept = 0;
  // What it has in common with the other requests of its connection; empty: nothing.
  virtual std::string_view session() const noexcept { return {}; }
};

struct ServerState;

struct RequestState {
  struct Question {
    std::string key;
    std::string method;
    json::Raw params;
  };

  Revision revision = kNewestLegacy;
  std::shared_ptr<ClientLink> link;
  std::string id;  // of the request, as spelled
  json::Raw client_capabilities;
  json::Raw client_info;
  json::Raw meta;
  std::shared_ptr<const CallFacts> facts;  // of the request; null outside of one
  std::optional<LoggingLevel> log_level;   // least that is sent; nothing is sent without it
  std::stop_token stop;

  // Modern era: answers given so far, and the question that was asked without one.
  std::map<std::string, json::Raw> answers;
  unsigned asked = 0;
  std::vector<Question> open;
  std::function<void()> on_question;  // called on the loop, outside of the handler

  // Tasks (server_tasks.cpp). Whether this request may become one; the one it has become; and the handler,
  // while it waits for that.
  bool may_become_task = false;
  std::shared_ptr<TaskStore> tasks;
  TaskPtr task;
  std::coroutine_handle<> becoming;
  std::shared_ptr<ServerState> server;
};

// Ends the handler that awaits it: control goes back to whoever runs the handler, which destroys it.
class AwaitAnswerFromNextRound {
 public:
  explicit AwaitAnswerFromNextRound(std::shared_ptr<RequestState> state) : state_(std::move(state)) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<>) const {
    // Posted: the handler's frame is destroyed in there, and we are still inside it. And of several questions
    // asked side by side (loop/all.hpp) the first ends the round; by then the others stand beside it.
    if (state_->open.size() > 1) return;
    state_->link->loop().post([state = state_] { state->on_question(); });
  }
  void await_resume() const noexcept {}

 private:
  std::shared_ptr<RequestState> state_;
};

// Hands the handler over to whoever keeps it as a task, which resumes it when the request has been answered.
class AwaitBecomingTask {
 public:
  explicit AwaitBecomingTask(std::shared_ptr<RequestState> state) : state_(std::move(state)) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handler) const {
    state_->becoming = handler;
    state_->link->loop().post([state = state_] { state->on_question(); });
  }
  void await_resume() const noexcept {}

 private:
  std::shared_ptr<RequestState> state_;
};

}  // namespace fairlead::mcp
