// Connection: carries JSON-RPC messages to and from one remote peer. It is the interface of all transports:
// send, receive, close, closed.
//
// A connection belongs to one loop. send() and receive() are awaited on that loop; close() and closed() are
// thread-safe and idempotent. Once this process or the remote peer has closed the connection, it stays
// closed: all pending and all later operations fail with the same error.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
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

// The request of the remote peer that a message belongs to. A transport with one stream for all messages
// ignores it; a transport with one stream per request, such as HTTP, sends the message on the stream of that
// request.
struct RelatedRequest {
  std::string_view id;               // as spelled on the wire; empty if the message belongs to no request
  bool message_is_response = false;  // the message is the response: the last message for that request
};

// A containment measure that was requested for a child process and is not in force (process/containment.hpp).
struct MissingContainment {
  std::string measure;  // "cgroup", "landlock" …
  std::string reason;
};

// The child process of a connection.
struct ChildInfo {
  int pid = 0;
  bool is_running = false;
  std::optional<int> exit_code;  // set if it has ended by exit(n)
  std::optional<int> signal;     // set if it was killed by this signal
  std::vector<MissingContainment> missing_containment{};
  bool exited_without_reading = false;  // it has ended, and it read nothing of what was sent to it
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  class Send;
  class Receive;
  class ReceiveWait;
  class DrainWait;

  explicit Connection(Loop& loop) : loop_(loop) {}
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // co_await: Result<void>. Completes when the bytes have been written to the operating system. Concurrent
  // sends never interleave. Any JSON value may be sent, but a remote Peer accepts JSON-RPC messages only.
  Send send(rpc::Rope message);
  // co_await: Result<Message>. REQUIRES: no other receive() is pending. A frame that is not a JSON-RPC
  // message is received as a message of kind malformed; its value() is the JSON value, if the frame is JSON.
  // Fails when no more messages can be received.
  Receive receive();
  // The same in two steps, for a coroutine that stores no message while it is suspended. co_await
  // wait_received() completes when receive() would; pop_received() then returns what receive() would have
  // returned.
  ReceiveWait wait_received();
  Result<rpc::Message> pop_received();
  // Queues a message without waiting, in order with send(). The queue is not bounded: the caller limits it by
  // means of backlog().
  Result<void> post(const rpc::Rope& message, RelatedRequest related_request = {});
  // Returns the number of bytes that are queued and not yet written to the operating system.
  virtual std::size_t backlog() const noexcept = 0;
  // Return how many bytes were queued since the connection was created, and how many of them were written to
  // the operating system. A transport that does not know how many were written reports all of them.
  std::uint64_t queued_position() const noexcept { return position_at_backlog(0); }
  virtual std::uint64_t written_position() const noexcept { return ~std::uint64_t{0}; }
  // co_await: Result<void>. Completes when the backlog is at most `max_backlog` bytes, or fails when the
  // connection is closed.
  DrainWait wait_drained(std::size_t max_backlog);

  // Sets the callback for a single call that fails while the connection stays open, which is possible on a
  // transport with one stream per request. `id` is the id with which the call was sent. The object that makes
  // calls sets the callback once. Called on the loop thread.
  using OnCallFailed = std::function<void(std::string_view id, Error reason)>;
  void set_on_call_failed(OnCallFailed callback) { on_call_failed_ = std::move(callback); }
  // Sets a function that handles a message in the call that delivers it, without the inbox. It returns false,
  // without an effect, if the message has to be received instead. Used while the receiver waits and the inbox
  // is empty. Null: every message is received. A
  // connection has one receiver with such a function at a time.
  using ReceiveNow = std::move_only_function<bool(rpc::Message&&)>;
  void set_receive_now(ReceiveNow function) { receive_now_ = std::move(function); }
  // Returns whether each request has a stream of its own. On other transports, a missing response may mean
  // that the remote peer does not understand the request.
  virtual bool has_stream_per_request() const noexcept { return false; }

  // Closes the stream of the request with the id `request` before its response is sent; the client reconnects
  // to receive the remaining messages of the request. Does nothing if requests have no streams of their own.
  virtual void close_request_stream(std::string_view request) { static_cast<void>(request); }

  // The account to which memory used on behalf of the remote client is charged. Null if the client's memory
  // is not limited. REQUIRES: set_account() is called before the first message is received.
  void set_account(std::shared_ptr<ByteAccount> account) { account_ = std::move(account); }
  const std::shared_ptr<ByteAccount>& account() const noexcept { return account_; }

  // Closes the connection at once: queued messages may be lost. Thread-safe and idempotent.
  void close() noexcept;
  bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }

  // Completes when all resources of the connection are released; in particular, its child process has ended.
  // REQUIRES: close() was called.
  virtual Task<void> wait_closed();

  Loop& loop() const noexcept { return loop_; }
  // Returns the name of the remote peer for logs: "tcp:127.0.0.1:4000", "child server.py (pid 12)".
  virtual std::string description() const = 0;
  // Returns the child process at the remote end; nullopt for other connections. Loop thread only.
  virtual std::optional<ChildInfo> child() const { return std::nullopt; }
  // Returns `error` with context about the remote peer added: for a child process its command line and lines
  // of its stdout and stderr. `failure_code` is for an error that has no failure code yet
  // (process/failure.hpp).
  virtual Error with_error_context(Error error, std::string_view failure_code) const {
    static_cast<void>(failure_code);
    return error;
  }

 protected:
  // A coroutine that is suspended until written_position() is at least `until`.
  struct WriteWaiter {
    std::coroutine_handle<> handle;
    std::uint64_t until = 0;
    Result<void> outcome;
    bool waiting = false;
  };

  // ---- for implementations ----
  // Queues a message. On success, sets waiter->until (if `waiter` is not null) to the written position at
  // which the message is completely written.
  virtual Result<void> enqueue(const rpc::Rope& message, WriteWaiter* waiter,
                               RelatedRequest related_request) = 0;
  // Returns the written position at which at most `bytes` of the bytes queued now are left.
  virtual std::uint64_t position_at_backlog(std::size_t bytes) const noexcept = 0;
  // Starts or resumes reading. Called when the inbox (messages delivered and not yet received) is empty and a
  // receiver waits.
  virtual void request_input() = 0;
  // Releases the resources of the connection. Called once, on the loop thread, when the connection is closed.
  virtual void release() = 0;

  // Adds a message to the inbox.
  void deliver(const rpc::Message& message) { inbox_.emplace(message, nullptr); }
  void deliver(rpc::Message&& message) { inbox_.emplace(std::move(message), nullptr); }
  // Has the message handled within this call, and returns true, if the receiver waits and supports that.
  // Otherwise returns false and leaves the message unchanged; it can be delivered then. REQUIRES: the caller
  // keeps the connection alive, because handling the message may destroy objects that the receiver owns.
  bool deliver_now(rpc::Message&& message) {
    return receive_now_ && receiver_waiting() && receive_now_(std::move(message));
  }
  // Delivers the message of a frame. A large frame is parsed in steps, one turn each. Messages are received
  // in the order in which they are delivered.
  void deliver_frame(Bytes frame, const Limits& limits);
  bool inbox_empty() const noexcept { return inbox_.empty(); }
  // Frees the memory that an empty inbox keeps for the next message. For connections that are idle most of
  // the time.
  void release_empty_inbox() noexcept {
    if (inbox_.empty()) inbox_ = Fifo<InboxEntry>();
  }
  // Returns whether the receiver waits for input. Returns false while the receiver waits for a large frame to
  // be parsed: the implementation must not read then.
  bool receiver_waiting() const noexcept { return receiver_ && inbox_.empty(); }
  // Resumes the receiver if it waits and a message or the end of input is available. This may destroy objects
  // that the receiver owns.
  void wake_receiver();
  // Ends the input: nothing more will be delivered. Sending is not affected.
  void end_input(Error reason);
  // Closes the connection because of `reason`. Messages that were delivered before can still be received,
  // unless this process has called close().
  void fail(Error reason);
  // Fails the call with this id because of `reason`. The connection stays open.
  void fail_call(std::string_view id, Error reason) {
    if (on_call_failed_) on_call_failed_(id, std::move(reason));
  }
  // Resumes the coroutines that wait for a written position of at most `position`. Called when the written
  // position has reached `position`.
  void notify_written(std::uint64_t position);
  // Fails the send() whose message ends at exactly `position`. The connection stays open.
  void notify_unsent(std::uint64_t position, const Error& reason);
  // Returns why the connection is closed; null while it is open.
  const Error* close_reason() const noexcept { return close_reason_.get(); }

 private:
  struct InboxEntry {
    rpc::Message message;
    std::shared_ptr<rpc::MessageParser> parser;  // null when `message` is complete
  };
  // Removes and returns the first message of the inbox. REQUIRES: the inbox is not empty.
  Result<rpc::Message> pop_message();
  // Returns whether a receiver can be resumed at once, with a message or with the reason why the input ended.
  bool can_receive() const noexcept {
    return inbox_.empty() ? input_end_reason_ != nullptr : !inbox_.front().parser;
  }
  void schedule_parse_step();
  void parse_step();
  void add_waiter(WriteWaiter& waiter);
  void remove_waiter(WriteWaiter& waiter) noexcept;

  Loop& loop_;
  std::atomic<bool> closed_ = false;
  std::unique_ptr<const Error> close_reason_;      // set when closed
  std::unique_ptr<const Error> input_end_reason_;  // set when nothing more will be delivered
  Fifo<InboxEntry> inbox_;
  bool parse_posted_ = false;  // a parse_step() is posted to the loop
  std::coroutine_handle<> receiver_;
  OnCallFailed on_call_failed_;
  ReceiveNow receive_now_;
  std::shared_ptr<ByteAccount> account_;
  Fifo<WriteWaiter*> waiters_;  // in no particular order of `until`
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
  WriteWaiter waiter_;
};

class Connection::ReceiveWait {
 public:
  explicit ReceiveWait(Connection& connection) : connection_(connection) {}
  ReceiveWait(const ReceiveWait&) = delete;
  ~ReceiveWait();

  bool await_ready() const noexcept { return connection_.can_receive(); }
  void await_suspend(std::coroutine_handle<> handle);
  void await_resume() noexcept { suspended_ = false; }

 protected:
  Connection& connection_;
  bool suspended_ = false;
};

class Connection::Receive : public ReceiveWait {
 public:
  using ReceiveWait::ReceiveWait;
  Result<rpc::Message> await_resume() {
    suspended_ = false;
    return connection_.pop_received();
  }
};

class Connection::DrainWait {
 public:
  DrainWait(Connection& connection, std::size_t max_backlog)
      : connection_(connection), max_backlog_(max_backlog) {}
  DrainWait(const DrainWait&) = delete;
  ~DrainWait() { connection_.remove_waiter(waiter_); }

  bool await_ready() const noexcept { return connection_.closed() || connection_.backlog() <= max_backlog_; }
  void await_suspend(std::coroutine_handle<> handle);
  Result<void> await_resume();

 private:
  Connection& connection_;
  std::size_t max_backlog_;
  WriteWaiter waiter_;
};

inline Connection::Send Connection::send(rpc::Rope message) {
  return Send(*this, std::move(message));
}
inline Connection::Receive Connection::receive() {
  return Receive(*this);
}
inline Connection::ReceiveWait Connection::wait_received() {
  return ReceiveWait(*this);
}
inline Connection::DrainWait Connection::wait_drained(std::size_t max_backlog) {
  return DrainWait(*this, max_backlog);
}

}  // namespace fairlead
