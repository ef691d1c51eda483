// Methods: what a peer serves. A handler has one of two shapes, and may block in a third way:
//
//   methods.on("add", [](const Request& r) -> Answer { … });             runs on the loop, must not block
//   methods.on("slow", [](Request r) -> Task<Answer> { … co_await … });  a coroutine on the loop
//   methods.on_blocking("disk", [](const Request& r) -> Answer { … });   runs on a thread of the pool
//
// What a handler throws becomes a bare "Internal error"; what it returns as an Error goes through
// rpc::to_wire().
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

using Answer = Result<json::Raw>;

// A request (or notification) the other side sent. Cheap to copy; keeps its bytes and its peer alive.
class Request {
 public:
  Request(std::shared_ptr<Peer> peer, rpc::Message message, std::stop_token stop = {})
      : peer_(std::move(peer)), message_(std::move(message)), stop_(std::move(stop)) {}

  std::string_view method() const noexcept { return message_.method(); }
  json::Raw params() const { return message_.params(); }  // absent when there were none
  json::View args() const noexcept { return json::View(message_.params_text()); }
  std::string_view id() const noexcept { return message_.id(); }  // as spelled; empty for a notification
  bool is_notification() const noexcept { return message_.is(rpc::Kind::notification); }
  const rpc::Message& message() const noexcept { return message_; }

  // Who asked: call it back, notify it.
  Peer& peer() const noexcept { return *peer_; }
  // Set when the other side cancels the request or goes away. Coroutine and blocking handlers only.
  const std::stop_token& stop() const noexcept { return stop_; }
  // Tells the other side how far this request has got; `value` as the peer's dialect has it.
  void progress(const json::Raw& value) const;

 private:
  std::shared_ptr<Peer> peer_;
  rpc::Message message_;
  std::stop_token stop_;
};

class Methods {
 public:
  using Plain = std::function<Answer(const Request&)>;
  using Coroutine = std::function<Task<Answer>(Request)>;

  struct Handler {
    Plain plain;
    Coroutine coroutine;  // instead of `plain`
    bool blocking = false;
  };

  template <class F>
  Methods& on(std::string method, F handler) {
    return set(std::move(method), shaped(std::move(handler)));
  }
  template <class F>
  Methods& on_blocking(std::string method, F handler) {
    Handler shaped_handler = shaped(std::move(handler));
    static_assert(!std::is_same_v<std::invoke_result_t<F&, Request>, Task<Answer>>,
                  "a blocking handler runs on a thread of its own and returns an Answer, not a Task");
    shaped_handler.blocking = true;
    return set(std::move(method), std::move(shaped_handler));
  }
  // For every method that has no handler of its own.
  template <class F>
  Methods& otherwise(F handler) {
    fallback_ = shaped(std::move(handler));
    return *this;
  }

  // nullptr when nobody serves it.
  const Handler* find(std::string_view method) const noexcept;

 private:
  template <class F>
  static Handler shaped(F handler) {
    static_assert(std::is_invocable_v<F&, Request>, "a handler takes a Request");
    using R = std::invoke_result_t<F&, Request>;
    static_assert(std::is_same_v<R, Task<Answer>> || std::is_convertible_v<R, Answer>,
                  "a handler returns Answer (that is Result<json::Raw>), json::Raw, Error, or Task<Answer>");
    Handler made;
    if constexpr (std::is_same_v<R, Task<Answer>>) {
      made.coroutine = std::move(handler);
    } else {
      made.plain = std::move(handler);
    }
    return made;
  }
  Methods& set(std::string method, Handler handler);

  StringMap<Handler> handlers_;
  Handler fallback_;
};

}  // namespace fairlead
