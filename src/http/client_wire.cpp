#include "http/client_wire.hpp"

#include <algorithm>
#include <array>

#include "connection/sockets.hpp"
#include "connection/stream_pump.hpp"

namespace fairlead::http {

void Interrupt::raise() {
  if (std::exchange(raised_, true)) return;
  loop_.post([self = shared_from_this()] { self->wake(); });
}

void Interrupt::wake() {
  woken_ = true;
  if (waiting_) waiting_->resume();
}

void Interrupt::Wait::await_suspend(std::coroutine_handle<> handle) {
  handle_ = handle;
  on_->waiting_ = this;
  if (until_ == Clock::time_point::max()) return;
  timer_.emplace(on_->loop_);
  timer_->arm(until_, [this] { resume(); });
}

void Interrupt::Wait::resume() {
  on_->waiting_ = nullptr;
  timer_.reset();
  handle_.resume();
}

Task<bool> Interrupt::sleep(Clock::duration delay) {
  const auto self = shared_from_this();
  const Clock::time_point until = Clock::now() + delay;
  while (!raised_ && Clock::now() < until) {
    prepare();
    const bool woken = co_await wait(until);
    static_cast<void>(woken);
  }
  co_return !raised_;
}

Task<void> Interrupt::yield() {
  const auto self = shared_from_this();
  prepare();
  loop_.post([self] { self->wake(); });
  const Clock::time_point for_ever = Clock::time_point::max();
  const bool woken = co_await wait(for_ever);
  static_cast<void>(woken);
}

Wire::Wire(Loop& loop, std::unique_ptr<ByteStream> stream)
    : loop_(loop),
      stream_(std::move(stream)),
      writer_(loop, *this, queue_, *stream_, stream_->remote(), std::chrono::milliseconds(0)) {}

Task<Result<void>> Wire::write(std::string head, const std::vector<Bytes>& body,
                               std::shared_ptr<Interrupt> interrupt, std::chrono::milliseconds stall) {
  queue_.put(std::string_view(head));
  for (const Bytes& part : body) queue_.put(part);
  writer_.set_write_stall(stall);
  writer_.flush();
  writing_ = interrupt;
  while (!queue_.empty() && !output_error_) {
    interrupt->prepare();
    const Clock::time_point for_ever = Clock::time_point::max();
    const bool woken = co_await interrupt->wait(for_ever);
    static_cast<void>(woken);
    if (!interrupt->raised()) continue;
    writer_.stop();
    co_return interrupt->error();
  }
  writing_ = nullptr;
  if (output_error_) co_return *output_error_;
  co_return Result<void>();
}

// What is woken may destroy the wire, and the writer has not finished with it.
void Wire::on_output_failed(Error reason) {
  output_error_ = reason.kind() == ErrorKind::timeout
                      ? Error::timeout("sending to " + writer_.name(), writer_.write_stall())
                      : std::move(reason);
  if (writing_) loop_.post([interrupt = writing_] { interrupt->wake(); });
}

void Wire::on_flushed() {
  if (writing_) writing_->wake();
}

std::unique_ptr<ByteStream> Wire::release() {
  writer_.stop();
  return std::exchange(stream_, std::make_unique<Closed>());
}

Task<Result<void>> Wire::read(ResponseParser& parser, std::string& body, std::shared_ptr<Interrupt> interrupt,
                              Clock::time_point until) {
  while (true) {
    if (interrupt->raised()) co_return interrupt->error();
    if (reads_ >= StreamPump::kReadsPerTurn || bytes_ >= StreamPump::kBytesPerTurn) {
      Task<void> yielding = interrupt->yield();
      co_await yielding;
      reads_ = 0;
      bytes_ = 0;
      if (Clock::now() >= until && !interrupt->raised()) co_return late();
      continue;
    }
    const std::span<char> scratch = loop_.scratch();
    ByteStream::Io io = stream_->read(scratch.first(std::min(scratch.size(), StreamPump::kBytesPerTurn)));
    ++reads_;
    if (io.state == ByteStream::State::ok) {
      bytes_ += io.bytes;
      const std::string_view got(loop_.scratch().data(), io.bytes);
      Result<void> fed = parser.feed(got, body);
      if (io.bytes == loop_.scratch().size()) loop_.grow_scratch();
      co_return fed;
    }
    if (io.state == ByteStream::State::ended) {
      Result<void> ended = parser.at_end();
      co_return ended;
    }
    if (io.state == ByteStream::State::failed) co_return *io.error;
    interrupt->prepare();
    stream_->when_readable([interrupt] { interrupt->wake(); });
    const bool in_time = co_await interrupt->wait(until);
    reads_ = 0;
    bytes_ = 0;
    if (!in_time && !interrupt->raised()) co_return late();
  }
}

Error Wire::late() const {
  return Error(ErrorKind::timeout, stream_->remote() + " did not answer in time");
}

void Wire::watch(std::function<void()> gone) {
  watched_ = true;
  stream_->when_readable([this, gone = std::move(gone)] {
    if (!watched_) return;
    // TLS has messages of its own, of which nothing is to be seen here.
    std::array<char, 1> byte;
    if (stream_->read(byte).state == ByteStream::State::again) return watch(gone);
    const std::function<void()> tell = gone;
    tell();
  });
}

Task<Result<UniqueFd>> dial(Loop& loop, std::string host, std::uint16_t port, std::string name,
                            std::chrono::milliseconds timeout) {
  std::vector<SocketAddress> addresses;
  if (host == "localhost") {
    // Both, whatever the resolver thinks of it: servers listen on one or the other.
    for (const char* const loopback : {"127.0.0.1", "::1"}) {
      if (Result<SocketAddress> address = numeric_address(loopback, port)) addresses.push_back(*address);
    }
  } else {
    Task<Result<std::vector<SocketAddress>>> resolving = resolve(loop, host, port, timeout);
    Result<std::vector<SocketAddress>> resolved = co_await resolving;
    if (!resolved) {
      Error unknown = resolved.error();
      co_return std::move(unknown).with([](ErrorDetail& detail) { detail.unsent = true; });
    }
    addresses = std::move(*resolved);
  }
  std::optional<Error> first;
  for (const SocketAddress& address : addresses) {
    Task<Result<UniqueFd>> connecting = connect_socket(loop, address, name, timeout);
    Result<UniqueFd> socket = co_await connecting;
    if (socket) {
      set_no_delay(socket->get());
      co_return std::move(*socket);
    }
    if (!first) first = socket.error();
  }
  if (!first) first = Error(ErrorKind::connection_failed, host + " has no address");
  co_return std::move(*first).with([](ErrorDetail& detail) { detail.unsent = true; });
}

}  // namespace fairlead::http
