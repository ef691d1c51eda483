// HttpClientConnection: a connection of the HTTP client to a server. It carries one exchange after the other.
// CancellableWaiter: suspends the coroutine of an exchange until the coroutine is woken, cancelled or timed
// out.
#pragma once

#include <coroutine>
#include <functional>
#include <memory>
#include <optional>
#include <span>
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
  // Handles the input of a connection, instead of a coroutine that waits for it.
  class InputHandler {
   public:
    // Called when input can be read, or when the connection has ended. May destroy the connection.
    virtual void on_readable() = 0;

   protected:
    ~InputHandler() = default;
  };

  HttpClientConnection(Loop& loop, std::unique_ptr<ByteStream> stream);
  ~HttpClientConnection() override { stream_->close(); }
  HttpClientConnection(const HttpClientConnection&) = delete;

  // Returns the buffer for the head of the next request. It keeps its memory from one request to the next.
  std::string& head_buffer() noexcept { return head_buffer_; }
  // Writes head_buffer() and `body`, as much as possible without waiting; a small request in one system call.
  // await_written() waits for the rest. From then on, the write fails if the server reads nothing for
  // `stall`. REQUIRES: the previous request is written.
  void start_write(std::span<const Bytes> body, std::chrono::milliseconds stall);
  // Returns whether the write is in progress. If not, write_error() is its outcome.
  bool writing() const noexcept { return !queue_.empty() && !output_error_; }
  const std::optional<Error>& write_error() const noexcept { return output_error_; }
  // Waits for the end of the write, see writing(). The write fails with `timeout` if the server reads nothing
  // for the time passed to start_write(), with the errors of the socket, and with `cancelled` if `waiter` is
  // cancelled.
  Task<void> await_written(std::shared_ptr<CancellableWaiter> waiter);

  // Registers `waiter` to be woken when input arrives, if a read would certainly return nothing now. Returns
  // whether it did so.
  bool wake_on_input(const std::shared_ptr<CancellableWaiter>& waiter);
  // Reads once, and passes the input to `parser`, which appends to `body`. Returns nullopt if nothing can be
  // read now. At the end of the input it returns the result of parser.on_end_of_input(). Fails with the
  // errors of the socket and of the parser.
  std::optional<Result<void>> read_available(ResponseParser& parser, std::string& body);
  // Waits until something can be read, and returns the result of read_available(). Fails with `timeout` after
  // `deadline`, and with `cancelled` if `waiter` is cancelled. After as many consecutive reads or bytes as
  // StreamPump handles per turn it yields to the loop, so that a server that sends without pause cannot
  // starve the loop.
  Task<Result<void>> read(ResponseParser& parser, std::string& body,
                          std::shared_ptr<CancellableWaiter> waiter, Clock::time_point deadline);

  // Sets the handler of the input of a connection that was idle until now; null removes it. The handler
  // returns to waiting with wait_for_input(). REQUIRES: stop_watching() was called.
  void set_input_handler(InputHandler* handler) noexcept { input_handler_ = handler; }
  void wait_for_input();
  // Reads once. Returns the input, which is valid until the current callback returns; an empty string if the
  // connection has ended or failed, as the next read will report again; nullopt if nothing can be read now.
  std::optional<std::string_view> read_once();

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
  // Identifies the group of idle connections that this one returns to. Set and interpreted by HttpClient.
  void* idle_group = nullptr;

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

  void write_now(std::string_view request);
  Error timeout_error() const;
  Error closed_error() const;
  void on_readable();
  void check_idle_time();
  void call_on_unusable();

  Loop& loop_;
  std::unique_ptr<ByteStream> stream_;
  std::string head_buffer_;
  rpc::ByteQueue queue_;  // what start_write() could not write at once
  StreamWriter writer_;
  // Woken when the write in progress is complete or has failed; null if no write is in progress.
  std::shared_ptr<CancellableWaiter> write_waiter_;
  std::optional<Error> output_error_;
  // Armed while the connection is idle, and possibly longer: it is not cancelled when the connection is
  // reused, because that would happen for every request.
  Timer idle_timer_;
  Clock::duration idle_timeout_{};
  Clock::time_point idle_since_{};
  Loop::Callback on_unusable_;  // empty: the connection is not watched
  InputHandler* input_handler_ = nullptr;
  int reads_since_yield_ = 0;  // consecutive reads since read() last yielded to the loop or waited for input
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
