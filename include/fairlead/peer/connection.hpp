// Connection: carries JSON-RPC messages between us and one other side. Send, receive, close, closed: this is
// all that anything above knows about a transport.
//
// A connection lives on one loop. send() and receive() are awaited on that loop; close() and closed() may be
// called from anywhere, at any time, as often as one likes. After close(), and after the other side went
// away, the connection is closed for good: everything still waiting and everything later fails with the same
// error.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/byte_budget.hpp"
#include "fairlead/base/bytes.hpp"
#include "fairlead/base/fifo.hpp"
#include "fairlead/base/limits.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/task.hpp"
#include "fairlead/rpc/message.hpp"
#include "fairlead/rpc/rope.hpp"

namespace fairlead {

namespace rpc {
class MessageParser;
}

// Which request of the other side a message belongs to. On a stream it makes no difference; a transport that
// carries every request by itself, as HTTP does, sends the message back where that request came from.
struct Concerning {
  std::string_view request;  // its id as spelled; empty: none of them
  bool answers = false;      // this is its answer, the last message about it
};

// A step of a child's containment that was wanted and is not in force (see process/containment.hpp).
struct MissingContainment {
  std::string step;  // "cgroup", "landlock" …
  std::string reason;
};

// The process behind a connection to a child.
struct ChildInfo {
  int pid = 0;
  bool is_running = false;
  std::optional<int> exit_code;  // once it has ended: exit(n)
  std::optional<int> signal;     // or the signal that killed it
  std::vector<MissingContainment> missing_containment{};
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  class Send;
  class Receive;
  class Drained;

  explicit Connection(Loop& loop) : loop_(loop) {}
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // co_await: Result<void>, when the bytes are with the operating system. Concurrent sends never interleave.
  // Any JSON value may be sent; a peer on the other side understands JSON-RPC messages only.
  Send send(rpc::Rope message);
  // co_await: Result<Message>. One receiver at a time. What could not be read as a JSON-RPC message arrives
  // as one of kind malformed, whose value() is the JSON value, if it is one; an error means that nothing more
  // will come.
  Receive receive();
  // Queues a message without waiting, in order with the sends. For whoever bounds its own queue by backlog().
  Result<void> post(const rpc::Rope& message, Concerning concerning = {});
  // Bytes queued and not yet with the operating system.
  virtual std::size_t backlog() const noexcept = 0;
  // Of all the bytes ever queued, how many are, and how many of them were handed to the operating system.
  // Where a transport cannot tell, everything counts as handed over.
  std::uint64_t queued_position() const noexcept { return position_at_backlog(0); }
  virtual std::uint64_t written_position() const noexcept { return ~std::uint64_t{0}; }
  // co_await: Result<void>, when the backlog is at most `bytes`.
  Drained drained(std::size_t bytes);

  // Where a transport carries every request by itself, one may fail while the connection goes on. Set once,
  // by whoever makes calls; called on the loop with the id of the call, as it was sent.
  using CallFailed = std::function<void(std::string_view id, Error reason)>;
  void when_call_fails(CallFailed told) { call_failed_ = std::move(told); }
  // Whether it is such a transport: silence then says nothing about what the other side understands.
  virtual bool carries_each_request() const noexcept { return false; }

  // Where every request has a stream of its own: closes that of the request with this id, early. The other
  // side comes back for what is still to be said about it.
  virtual void close_stream_of(std::string_view request) { static_cast<void>(request); }

  // The account of the client at the other side: what it makes us hold is charged to it. Null: it is not
  // bounded by a budget. Set before the first message is received.
  void set_account(std::shared_ptr<ByteAccount> account) { account_ = std::move(account); }
  const std::shared_ptr<ByteAccount>& account() const noexcept { return account_; }

  void close() noexcept;
  bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }

  // Ends when everything the connection owned is gone, a child process above all. Await it after close().
  virtual Task<void> settled();

  Loop& loop() const noexcept { return loop_; }
  // The other side, for logs: "tcp:127.0.0.1:4000", "child server.py (pid 12)".
  virtual std::string description() const = 0;
  // The child process this is a connection to; nullopt for other connections. Loop thread only.
  virtual std::optional<ChildInfo> child() const { return std::nullopt; }
  // `error` with what is known of the other side: of a child process its command line and last words. `code`
  // names the failure where it has no name yet (process/failure.hpp).
  virtual Error explained(Error error, std::string_view code) const {
    static_cast<void>(code);
    return error;
  }

 protected:
  // Something suspended until the stream's written position reaches `until`.
  struct Waiter {
    std::coroutine_handle<> handle;
    std::uint64_t until = 0;
    Result<void> outcome;
    bool waiting = false;
  };

  // ---- for implementations ----
  // Queues a message; on success sets waiter->until, when there is one, to the position at which it is sent.
  virtual Result<void> enqueue(const rpc::Rope& message, Waiter* waiter, Concerning concerning) = 0;
  // The written position at which no more than `bytes` of what is queued now are left.
  virtual std::uint64_t position_at_backlog(std::size_t bytes) const noexcept = 0;
  // The inbox is empty and a receiver waits: start or go on reading.
  virtual void want_input() = 0;
  // The connection has just become closed: release what it holds. Called once, on the loop.
  virtual void release() = 0;

  void deliver(rpc::Message message) { inbox_.push(Arrival{std::move(message), nullptr}); }
  // Delivers the message of a frame. A large frame is parsed in steps, a turn of the loop each; what is
  // delivered after it is received after it.
  void deliver_frame(Bytes frame, const Limits& limits);
  bool inbox_empty() const noexcept { return inbox_.empty(); }
  // Whether the receiver waits for input. False while it waits for a frame that is being parsed: an
  // implementation reads nothing then.
  bool receiver_waiting() const noexcept { return receiver_ && inbox_.empty(); }
  // Resumes the receiver, if it waits and has something to get. May destroy what the receiver owns.
  void wake_receiver();
  // Nothing more will be delivered; sending goes on.
  void end_input(Error reason);
  // Closed, for `reason`. What was delivered before can still be received, unless it was we who closed.
  void fail(Error reason);
  // The request we sent under `id` will not be answered, for `reason`; the connection goes on.
  void fail_call(std::string_view id, Error reason) {
    if (call_failed_) call_failed_(id, std::move(reason));
  }
  // The stream's written position has reached `position`.
  void notify_written(std::uint64_t position);
  // The message that ends at exactly `position` could not be sent; the connection goes on.
  void notify_unsent(std::uint64_t position, const Error& reason);
  const std::optional<Error>& reason() const noexcept { return reason_; }

 private:
  struct Arrival {
    rpc::Message message;
    std::shared_ptr<rpc::MessageParser> parser;  // until the message is parsed
  };
  // Whether a receiver gets something at once: a message, or the reason why there are no more.
  bool can_receive() const noexcept {
    return inbox_.empty() ? input_end_.has_value() : !inbox_.front().parser;
  }
  void parse_soon();
  void parse_step();
  void add_waiter(Waiter& waiter);
  void remove_waiter(Waiter& waiter) noexcept;

  Loop& loop_;
  std::atomic<bool> closed_ = false;
  std::optional<Error> reason_;     // why closed
  std::optional<Error> input_end_;  // why nothing more is delivered
  Fifo<Arrival> inbox_;
  bool parse_posted_ = false;
  std::coroutine_handle<> receiver_;
  CallFailed call_failed_;
  std::shared_ptr<ByteAccount> account_;
  std::deque<Waiter*> waiters_;  // in no particular order of `until`
};

class Connection::Send {
 public:
  Send(Connection& connection, rpc::Rope message) : connection_(connection), message_(std::move(message)) {}
  Send(const Send&) = delete;
  ~Send() { connection_.remove_waiter(waiter_); }

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> handle);
  Result<void> await_resume() { return std::move(waiter_.outcome); }

 private:
  Connection& connection_;
  rpc::Rope message_;
  Waiter waiter_;
};

class Connection::Receive {
 public:
  explicit Receive(Connection& connection) : connection_(connection) {}
  Receive(const Receive&) = delete;
  ~Receive();

  bool await_ready() const noexcept { return connection_.can_receive(); }
  void await_suspend(std::coroutine_handle<> handle);
  Result<rpc::Message> await_resume();

 private:
  Result<rpc::Message> take_first();

  Connection& connection_;
  bool suspended_ = false;
};

class Connection::Drained {
 public:
  Drained(Connection& connection, std::size_t bytes) : connection_(connection), bytes_(bytes) {}
  Drained(const Drained&) = delete;
  ~Drained() { connection_.remove_waiter(waiter_); }

  bool await_ready() const noexcept { return connection_.closed() || connection_.backlog() <= bytes_; }
  void await_suspend(std::coroutine_handle<> handle);
  Result<void> await_resume();

 private:
  Connection& connection_;
  std::size_t bytes_;
  Waiter waiter_;
};

inline Connection::Send Connection::send(rpc::Rope message) {
  return Send(*this, std::move(message));
}
inline Connection::Receive Connection::receive() {
  return Receive(*this);
}
inline Connection::Drained Connection::drained(std::size_t bytes) {
  return Drained(*this, bytes);
}

}  // namespace fairlead
