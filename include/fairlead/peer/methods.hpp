// Methods: the handlers of the methods that a peer serves. A handler is a function that runs on the loop
// thread and must not block, a coroutine on the loop thread, or a blocking function on a worker thread.
//
// Example:
//   auto methods = std::make_shared<Methods>();
//   methods->on("add", [](const Request& request) -> Answer { return request.params(); });
//   methods->on("wait", [](Request request) -> Task<Answer> { co_return request.params(); });
//   methods->on_blocking("read", [](const Request& request) -> Answer { return request.params(); });
//
// An exception of a handler becomes an "Internal error" response without details; an Error that it returns is
// converted by rpc::to_wire().
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>

#include "fairlead/base/result.hpp"
#include "fairlead/base/string_map.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/loop/task.hpp"
#include "fairlead/rpc/codes.hpp"
#include "fairlead/rpc/message.hpp"

namespace fairlead {

class Peer;

// The outcome of a request: the result or the error to respond with.
using Answer = Result<json::Raw>;

// A request or notification from the remote peer. Cheap to copy; keeps its bytes and its peer alive.
class Request {
 public:
  Request(std::shared_ptr<Peer> peer, rpc::Message message, std::stop_token stop = {})
      : peer_(std::move(peer)), message_(std::move(message)), stop_(std::move(stop)) {}

  std::string_view method() const noexcept { return message_.method(); }
  json::Raw params() const { return message_.params(); }  // absent if the request has none
  // The same as a view, which is valid as long as the request.
  json::View params_view() const noexcept { return json::View(message_.params_text()); }
  std::string_view id() const noexcept { return message_.id(); }  // as spelled; empty for a notification
  bool is_notification() const noexcept { return message_.is(rpc::Kind::notification); }
  const rpc::Message& message() const noexcept { return message_; }

  // Returns the peer that received the request. Its call() and notify() send to the sender of the request.
  Peer& peer() const noexcept { return *peer_; }
  // Returns the token by which a coroutine or blocking handler notices that the remote peer has cancelled the
  // request or disconnected. Other handlers end before the peer reads the next message.
  const std::stop_token& stop() const noexcept { return stop_; }
  // Sends a progress notification for this request. The protocol (Dialect in peer.hpp) defines the form of
  // `value`.
  void progress(const json::Raw& value) const;

 private:
  std::shared_ptr<Peer> peer_;
  rpc::Message message_;
  std::stop_token stop_;
};

// Receives the answer to one request. Used on the loop thread of the request.
class Responder {
 public:
  virtual ~Responder() = default;
  // Sends the answer; later calls have no effect. If it is never called, the request remains in progress.
  virtual void respond(const Answer& answer) = 0;
};

class Methods {
 public:
  using PlainHandler = std::function<Answer(const Request&)>;
  using CoroutineHandler = std::function<Task<Answer>(Request)>;
  // Serves a request without a coroutine, which costs less: returns true, and responds before or after it
  // returns. Returns false, without an effect, if the coroutine must serve the request. `stop` as in
  // Request::stop().
  using DirectHandler = std::function<bool(const rpc::Message& message, const std::stop_token& stop,
                                           const std::shared_ptr<Responder>& responder)>;

  struct Handler {
    PlainHandler plain;
    CoroutineHandler coroutine;  // set instead of `plain`
    DirectHandler direct;        // may be set in addition to `coroutine`
    bool blocking = false;       // `plain` runs on a worker thread
  };

  template <class F>
  Methods& on(std::string method, F handler) {
    return set(std::move(method), make_handler(std::move(handler)));
  }
  template <class F>
  Methods& on_blocking(std::string method, F handler) {
    Handler blocking_handler = make_handler(std::move(handler));
    static_assert(!std::is_same_v<std::invoke_result_t<F&, Request>, Task<Answer>>,
                  "a blocking handler runs on a thread of its own and returns an Answer, not a Task");
    blocking_handler.blocking = true;
    return set(std::move(method), std::move(blocking_handler));
  }
  // Sets the handler of all methods that have none of their own.
  template <class F>
  Methods& fallback(F handler) {
    fallback_ = make_handler(std::move(handler));
    return *this;
  }
  // The same, with a direct handler that is tried first.
  template <class F>
  Methods& fallback(F handler, DirectHandler direct) {
    fallback(std::move(handler));
    fallback_.direct = std::move(direct);
    return *this;
  }

  // Returns nullptr if the method has no handler and there is no fallback.
  const Handler* find(std::string_view method) const noexcept;

 private:
  template <class F>
  static Handler make_handler(F handler) {
    static_assert(std::is_invocable_v<F&, Request>, "a handler takes a Request");
    using R = std::invoke_result_t<F&, Request>;
    static_assert(std::is_same_v<R, Task<Answer>> || std::is_convertible_v<R, Answer>,
                  "a handler returns Answer (that is Result<json::Raw>), json::Raw, Error, or Task<Answer>");
    Handler result;
    if constexpr (std::is_same_v<R, Task<Answer>>) {
      result.coroutine = std::move(handler);
    } else {
      result.plain = std::move(handler);
    }
    return result;
  }
  Methods& set(std::string method, Handler handler);

  StringMap<Handler> handlers_;
  Handler fallback_;
};

}  // namespace fairlead
