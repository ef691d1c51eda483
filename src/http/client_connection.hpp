// HttpClientConnection: a connection of the HTTP client to a server. It carries one exchange after the other.
// CancellableWaiter: suspends the coroutine of an exchange until the coroutine is woken, cancelled or timed
// out.
#pragma once

#include <coroutine>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "connection/stream_writer.hpp"
#include "fairlead/base/bytes.hpp"
#include "fairlead/loop/timer.hpp"
#include "http/byte_stream.hpp"
#include "http/response_parser.hpp"

namespace fairlead::http {

// An exchange uses one CancellableWaiter for all its waits, so that other code can cancel the exchange at any
// time. At most one coroutine waits on a CancellableWaiter at a time. Not thread-safe: it is used on the loop
// thread.
class CancellableWaiter : public std::enable_shared_from_this<CancellableWaiter> {
 public:
  class Wait;

  explicit CancellableWaiter(Loop& loop) : loop_(loop) {}

  // Cancels the exchange: the present wait and all later waits end at once. The waiting coroutine is resumed
  // in a later callback of the loop, not within this call.
  void cancel();
  bool cancelled() const noexcept { return cancelled_; }
  Error cancelled_error() const { return Error(ErrorKind::cancelled, "the HTTP exchange was cancelled"); }

  // Makes earlier calls of wake() ineffective. Call it before wake() is registered as a callback, so that the
  // next wait does not end because of an earlier event.
  void clear_wake() noexcept { woken_ = false; }
  // Resumes the waiting coroutine. If none waits, the next wait returns at once.
  void wake();
  // Returns an awaitable. Its result is true if the waiter was woken or cancelled, and false if `deadline`
  // passed before that.
  Wait wait(Clock::time_point deadline);
  // Returns true after `delay`. If the waiter is cancelled, returns false at once.
  Task<bool> sleep(Clock::duration delay);
  // Lets the loop run the callbacks that are queued at the time of the call, and returns after them.
  Task<void> yield();

 private:
  Loop& loop_;
  Wait* current_wait_ = nullptr;
  bool woken_ = false;
  bool cancelled_ = false;
};

class CancellableWaiter::Wait {
 public:
  Wait(std::shared_ptr<CancellableWaiter> owner, Clock::time_point deadline)
      : owner_(std::move(owner)), deadline_(deadline) {}
  Wait(const Wait&) = delete;
  ~Wait() {
    if (owner_->current_wait_ == this) owner_->current_wait_ = nullptr;
  }

  bool await_ready() const noexcept { return owner_->woken_ || owner_->cancelled_; }
  void await_suspend(std::coroutine_handle<> handle);
  bool await_resume() const noexcept { return owner_->woken_ || owner_->cancelled_; }

 private:
  friend class CancellableWaiter;
  void resume();

  std::shared_ptr<CancellableWaiter> owner_;
  Clock::time_point deadline_;
  std::optional<Timer> timer_;
  std::coroutine_handle<> handle_;
};

inline CancellableWaiter::Wait CancellableWaiter::wait(Clock::time_point deadline) {
  return Wait(shared_from_this(), deadline);
}

class HttpClientConnection final : private StreamWriter::Owner {
 public:
  HttpClientConnection(Loop& loop, std::unique_ptr<ByteStream> stream);
  ~HttpClientConnection() override { stream_->close(); }
  HttpClientConnection(const HttpClientConnection&) = delete;

  // Writes a request. Fails with `timeout` if the server reads nothing for `stall`, with `cancelled` if
  // `waiter` is cancelled, and with the errors of the socket. REQUIRES: `body` outlives the task.
  Task<Result<void>> write(std::string head, const std::vector<Bytes>& body,
                           std::shared_ptr<CancellableWaiter> waiter, std::chrono::milliseconds stall);
  // Waits for input, reads once, and passes the input to `parser`, which appends to `body`. At the end of the
  // input it returns the result of parser.on_end_of_input(). Fails with `timeout` after `deadline`, with
  // `cancelled` if `waiter` is cancelled, and with the errors of the socket and of the parser. After as many
  // consecutive reads or bytes as StreamPump handles per turn it yields to the loop, so that a server that
  // sends without pause cannot starve the loop.
  Task<Result<void>> read(ResponseParser& parser, std::string& body,
                          std::shared_ptr<CancellableWaiter> waiter, Clock::time_point deadline);

  // Called for an idle connection. Calls `on_unusable` once, after `idle_timeout` or when the connection
  // becomes unusable: the server has closed it, or has sent data although no request is in progress.
  // `on_unusable` may destroy the connection.
  void watch_while_idle(Clock::duration idle_timeout, Loop::Callback on_unusable);
  // Ends watch_while_idle(): `on_unusable` is no longer called. Call it before the connection is reused.
  void stop_watching();
  void close() { stream_->close(); }
  // Transfers the stream to the caller, which continues with another protocol.
  std::unique_ptr<ByteStream> release();

  bool used = false;     // whether the connection has carried an exchange
  bool reusable = true;  // whether the connection can carry another exchange

 private:
  // Replaces the stream after release().
  class ClosedStream final : public ByteStream {
    IoResult read(std::span<char>) override { return IoResult{IoStatus::ended, 0, nullptr}; }
    IoResult write(std::span<const iovec>) override { return IoResult{IoStatus::ended, 0, nullptr}; }
    void when_readable(Descriptor::ReadyCallback) override {}
    void when_writable(Descriptor::ReadyCallback) override {}
    bool waiting_to_read() const noexcept override { return false; }
    bool waiting_to_write() const noexcept override { return false; }
    void shutdown_output() override {}
    void close() override {}
    std::string remote_name() const override { return {}; }
  };

  // StreamWriter::Owner. lifetime() is null, because the writer need not keep the connection alive: the
  // destructor closes the stream.
  std::shared_ptr<void> lifetime() override { return nullptr; }
  void on_written() override {}
  void on_output_failed(Error reason) override;
  void on_flushed() override;

  Error timeout_error() const;
  void wait_for_end_of_idle_connection();
  void call_on_unusable();

  Loop& loop_;
  std::unique_ptr<ByteStream> stream_;
  rpc::ByteQueue queue_;
  StreamWriter writer_;
  // Woken when the write in progress is complete or has failed; null if no write is in progress.
  std::shared_ptr<CancellableWaiter> write_waiter_;
  std::optional<Error> output_error_;
  Timer idle_timer_;
  Loop::Callback on_unusable_;  // empty: the connection is not watched
  int reads_since_yield_ = 0;   // consecutive reads since read() last yielded to the loop or waited for input
  std::size_t bytes_since_yield_ = 0;
};

// The addresses that dial() may connect to.
enum class AddressScope : std::uint8_t {
  any,
  public_only,  // see ClientOptions::public_addresses_only
};

// Resolves `host` and connects to its addresses in turn until one accepts. `name` is the name of the server
// in errors. `timeout` limits the lookup and each connection attempt. Fails with `connection_failed` or
// `timeout`.
Task<Result<UniqueFd>> dial(Loop& loop, std::string host, std::uint16_t port, std::string name,
                            std::chrono::milliseconds timeout, AddressScope scope = AddressScope::any);

}  // namespace fairlead::http
