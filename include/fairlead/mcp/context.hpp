// Context: what a handler knows about the request it serves, and how it talks to the client meanwhile. The
// same in both eras; a handler need not know which one it is in.
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

// Whether something concerns a client; see Context::session() and principal().
using Concerns = std::function<bool(std::string_view session, const Principal& principal)>;

class Context {
 public:
  explicit Context(std::shared_ptr<RequestState> state) : state_(std::move(state)) {}

  Revision revision() const noexcept;
  // As the client declared them: for the session in the legacy era, with this request in the modern one.
  json::View client_capabilities() const noexcept;
  // The settings of an extension the client declared; absent when it did not.
  json::View client_extension(std::string_view id) const;
  json::View client_info() const noexcept;
  // The request's `_meta`; absent when it had none.
  json::View meta() const noexcept;
  // The client, as authentication established it; never null.
  const PrincipalPtr& principal() const noexcept;
  // The principal's user; empty: none.
  std::string_view user() const noexcept;
  // The connection or HTTP session it came on: the same for all requests on it, and no other's. Empty where
  // every request stands for itself.
  std::string_view session() const noexcept;
  // Set when the client cancels the request or goes away.
  const std::stop_token& stop() const noexcept;
  // The loop that the client's connection lives on: what speaks to the client is called there.
  Loop& loop() const noexcept;
  // Limits what other threads post to loop() for this client, to max_backlog_bytes.
  const PostedBytes& posted() const noexcept;

  // Sent only if the client asked for progress. `progress` must grow from call to call.
  void progress(double progress, std::optional<double> total = std::nullopt,
                std::string_view message = {}) const;
  // Sent only if the client wants messages of this level.
  void log(LoggingLevel level, const json::Raw& data, std::string_view logger = {}) const;

  // co_await: true when the time has passed, false as soon as the request is cancelled.
  Task<bool> sleep(std::chrono::milliseconds time) const;

  // Goes on as a task, from a coroutine tool with TaskSupport::optional: the request is answered with the
  // task and the handler runs on. stop() is another one from then on, questions wait for their answers
  // instead of ending the round, and status() tells how far it is. False when it cannot be one, because the
  // client does not know tasks or there are too many; the handler then goes on as it was. True when it is one
  // already.
  Task<bool> become_task() const;
  bool is_task() const noexcept;
  // What a task is doing, for people; nothing outside of one.
  void status(std::string_view message) const;

  // For work that takes long, over HTTP: lets the client hang up meanwhile and come back for what is sent
  // from now on, the answer above all. Clients before 2025-11-25 and after it do not know how; for them, and
  // on other connections, it does nothing.
  void close_stream() const;

  // Asking back, from coroutine handlers. A legacy client is sent a request. A modern client gets an
  // input-required result and repeats its request with the answer: the handler then runs again FROM ITS
  // START, and each question that has been answered returns at once. So ask before you act, and ask the same
  // questions in the same order. Those that do not depend on each other can be asked together, with all() of
  // loop/all.hpp, which is one round instead of several. `key` names the question in the modern era; left
  // empty, questions are numbered. Errors: when the client has not declared what is needed, -32021 (kind
  // remote) in the modern era and kind validation in the legacy one.
  Task<Result<ElicitResult>> elicit(std::string message, json::Raw requested_schema,
                                    std::string key = std::string()) const;
  Task<Result<ElicitResult>> elicit_url(std::string message, std::string url,
                                        std::string key = std::string()) const;
  // For what cannot go on before the user has been to a URL: return the error it yields. In 2025-11-25 that
  // is -32042, upon which the client goes there and calls again; in 2026-07-28 the client is asked, and the
  // handler runs again from its start. In a task it returns when the user has agreed to go there. `id` is the
  // question's key, and what Server::elicitation_complete() takes. Errors otherwise: the user said no, or the
  // client cannot.
  Task<Result<void>> require_url(std::string message, std::string url, std::string id) const;
  // `params` and result as sampling/createMessage has them.
  Task<Result<json::Raw>> sample(json::Raw params, std::string key = std::string()) const;
  Task<Result<std::vector<Root>>> roots(std::string key = std::string()) const;

  // For those who pass on what others say. The least severe log messages the client wants, if it wants any;
  // a notification about this request, as it is; a request to a legacy client, as it is, given up when
  // `stop` or the client's own request is.
  std::optional<LoggingLevel> log_level() const noexcept;
  void notify(std::string_view method, const json::Raw& params) const;
  Task<Result<json::Raw>> ask_legacy(std::string method, json::Raw params, std::stop_token stop = {}) const;

 private:
  std::shared_ptr<RequestState> state_;
};

}  // namespace fairlead::mcp
