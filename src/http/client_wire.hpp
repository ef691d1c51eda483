// Wire: one socket to a server, which carries one HTTP request and its answer after the other. And what it
// waits with.
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
#include "http/client_response.hpp"

namespace fairlead::http {

// Interrupt: everything one exchange waits for, it waits for here, so that it can be given up from outside.
// One waits at a time.
class Interrupt : public std::enable_shared_from_this<Interrupt> {
 public:
  class Wait;

  explicit Interrupt(Loop& loop) : loop_(loop) {}

  // From now on nothing is waited for any more. Whoever waits is woken by the loop, not from within.
  void raise();
  bool raised() const noexcept { return raised_; }
  Error error() const { return Error(ErrorKind::cancelled, "the exchange was given up"); }

  // Before something is asked to call wake(): forgets earlier calls.
  void prepare() noexcept { woken_ = false; }
  void wake();
  // co_await: whether it was woken, or raised, before `until`.
  Wait wait(Clock::time_point until);
  // co_await: false when it was raised meanwhile.
  Task<bool> sleep(Clock::duration delay);
  // co_await: resumes after the callbacks that wait for the loop now.
  Task<void> yield();

 private:
  Loop& loop_;
  Wait* waiting_ = nullptr;
  bool woken_ = false;
  bool raised_ = false;
};

class Interrupt::Wait {
 public:
  Wait(std::shared_ptr<Interrupt> on, Clock::time_point until) : on_(std::move(on)), until_(until) {}
  Wait(const Wait&) = delete;
  ~Wait() {
    if (on_->waiting_ == this) on_->waiting_ = nullptr;
  }

  bool await_ready() const noexcept { return on_->woken_ || on_->raised_; }
  void await_suspend(std::coroutine_handle<> handle);
  bool await_resume() const noexcept { return on_->woken_ || on_->raised_; }

 private:
  friend class Interrupt;
  void resume();

  std::shared_ptr<Interrupt> on_;
  Clock::time_point until_;
  std::optional<Timer> timer_;
  std::coroutine_handle<> handle_;
};

inline Interrupt::Wait Interrupt::wait(Clock::time_point until) {
  return Wait(shared_from_this(), until);
}

class Wire final : private StreamWriter::Owner {
 public:
  Wire(Loop& loop, std::unique_ptr<ByteStream> stream);
  ~Wire() override { stream_->close(); }
  Wire(const Wire&) = delete;

  // Writes a request; `stall` is how long the other side may take nothing. `body` outlives the task.
  Task<Result<void>> write(std::string head, const std::vector<Bytes>& body,
                           std::shared_ptr<Interrupt> interrupt, std::chrono::milliseconds stall);
  // Reads once, waiting where it must, and feeds what came to `parser`, at whose end it fails. Suspends after
  // as many reads or bytes in a row as StreamPump has in a turn, so that a server that sends without pause
  // cannot starve the loop.
  Task<Result<void>> read(ResponseParser& parser, std::string& body, std::shared_ptr<Interrupt> interrupt,
                          Clock::time_point until);

  // Between two exchanges: calls `gone` once, when the other side hangs up or says what nobody asked for.
  void watch(std::function<void()> gone);
  // It is used again: what comes is an answer.
  void unwatch() noexcept { watched_ = false; }
  void close() { stream_->close(); }
  // The stream itself, for what speaks another protocol from here on.
  std::unique_ptr<ByteStream> release();

  bool used = false;     // it has carried an exchange before
  bool reusable = true;  // and may carry another

 private:
  // What is left when the stream has been taken out.
  class Closed final : public ByteStream {
    Io read(std::span<char>) override { return Io{State::ended, 0, nullptr}; }
    Io write(std::span<const iovec>) override { return Io{State::ended, 0, nullptr}; }
    void when_readable(Descriptor::Ready) override {}
    void when_writable(Descriptor::Ready) override {}
    bool waiting_to_read() const noexcept override { return false; }
    bool waiting_to_write() const noexcept override { return false; }
    void shut_output() override {}
    void close() override {}
    std::string remote() const override { return {}; }
  };

  // StreamWriter::Owner. Nothing holds a wire while it writes: it closes the stream before it is destroyed.
  std::shared_ptr<void> lifetime() override { return nullptr; }
  void on_written() override {}
  void on_output_failed(Error reason) override;
  void on_flushed() override;

  Error late() const;

  Loop& loop_;
  std::unique_ptr<ByteStream> stream_;
  rpc::ByteQueue queue_;
  StreamWriter writer_;
  std::shared_ptr<Interrupt> writing_;  // woken when a write goes on
  std::optional<Error> output_error_;
  bool watched_ = false;
  int reads_ = 0;  // since the loop last had its turn
  std::size_t bytes_ = 0;
};

// Connects to a host, whose addresses are tried in turn. Kind connection_failed, or timeout.
Task<Result<UniqueFd>> dial(Loop& loop, std::string host, std::uint16_t port, std::string name,
                            std::chrono::milliseconds timeout);

}  // namespace fairlead::http
