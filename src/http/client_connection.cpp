#include "http/client_connection.hpp"

#include <algorithm>
#include <array>

#include "base/ip_address.hpp"
#include "base/reset_string.hpp"
#include "connection/sockets.hpp"
#include "connection/stream_pump.hpp"

namespace fairlead::http {

namespace {

// A request of at most this size is copied into one buffer and written with one system call.
constexpr std::size_t kMaxCopiedBytes = 8u << 10;

}  // namespace

void CancellableWaiter::cancel() {
  if (std::exchange(cancelled_, true)) return;
  loop_.post([self = shared_from_this()] { self->wake(); });
}

void CancellableWaiter::wake() {
  woken_ = true;
  if (current_wait_) current_wait_->resume();
}

void CancellableWaiter::Wait::await_suspend(std::coroutine_handle<> handle) {
  handle_ = handle;
  owner_->current_wait_ = this;
  if (deadline_ == Clock::time_point::max()) return;
  timer_.emplace(owner_->loop_);
  timer_->arm(deadline_, [this] { resume(); });
}

void CancellableWaiter::Wait::resume() {
  owner_->current_wait_ = nullptr;
  timer_.reset();
  handle_.resume();
}

Task<bool> CancellableWaiter::sleep(Clock::duration delay) {
  const auto self = shared_from_this();
  const Clock::time_point deadline = Clock::now() + delay;
  while (!cancelled_ && Clock::now() < deadline) {
    clear_wake();
    static_cast<void>(co_await wait(deadline));
  }
  co_return !cancelled_;
}

Task<void> CancellableWaiter::yield() {
  const auto self = shared_from_this();
  clear_wake();
  loop_.post([self] { self->wake(); });
  const Clock::time_point no_deadline = Clock::time_point::max();
  static_cast<void>(co_await wait(no_deadline));
}

HttpClientConnection::HttpClientConnection(Loop& loop, std::unique_ptr<ByteStream> stream)
    : loop_(loop),
      stream_(std::move(stream)),
      writer_(loop, *this, queue_, *stream_, stream_->remote_name(), std::chrono::milliseconds(0)),
      idle_timer_(loop) {}

void HttpClientConnection::start_write(std::span<const Bytes> body, std::chrono::milliseconds stall) {
  std::size_t size = head_buffer_.size();
  for (const Bytes& part : body) size += part.size();
  writer_.set_write_stall(stall);
  if (size <= kMaxCopiedBytes) {
    for (const Bytes& part : body) head_buffer_ += part.view();
    write_now(head_buffer_);
  } else {
    queue_.put(std::string_view(head_buffer_));
    for (const Bytes& part : body) queue_.put(part);
    writer_.flush();
  }
  head_buffer_.clear();
  if (head_buffer_.capacity() > kMaxCopiedBytes) reset_string(head_buffer_);
}

// Does what StreamWriter does, without the queue.
void HttpClientConnection::write_now(std::string_view request) {
  const iovec part{const_cast<char*>(request.data()), request.size()};
  const ByteStream::IoResult io = stream_->write(std::span(&part, 1));
  if (io.status == ByteStream::IoStatus::failed || io.status == ByteStream::IoStatus::ended) {
    writer_.stop();
    output_error_ = io.error ? *io.error : closed_error();
  } else if (io.bytes < request.size()) {
    queue_.put(request.substr(io.bytes));
    writer_.flush();
  }
}

Task<void> HttpClientConnection::await_written(std::shared_ptr<CancellableWaiter> waiter) {
  write_waiter_ = waiter;
  while (writing()) {
    waiter->clear_wake();
    const Clock::time_point no_deadline = Clock::time_point::max();
    static_cast<void>(co_await waiter->wait(no_deadline));
    if (!waiter->cancelled()) continue;
    writer_.stop();
    output_error_ = waiter->cancelled_error();
  }
  write_waiter_ = nullptr;
}

// The coroutine is woken in a later callback: it may destroy the connection, which the writer still uses
// after this call.
void HttpClientConnection::on_output_failed(Error reason) {
  output_error_ = reason.kind() == ErrorKind::timeout
                      ? Error::timeout("sending to " + writer_.name(), writer_.write_stall())
                      : std::move(reason);
  if (write_waiter_) loop_.post([waiter = write_waiter_] { waiter->wake(); });
}

void HttpClientConnection::on_flushed() {
  if (write_waiter_) write_waiter_->wake();
}

std::unique_ptr<ByteStream> HttpClientConnection::release() {
  writer_.stop();
  if (stream_->waiting_to_read()) stream_->when_readable(nullptr);
  return std::exchange(stream_, std::make_unique<ClosedStream>());
}

bool HttpClientConnection::wake_on_input(const std::shared_ptr<CancellableWaiter>& waiter) {
  if (!stream_->input_is_drained()) return false;
  reads_since_yield_ = 0;
  bytes_since_yield_ = 0;
  waiter->clear_wake();
  stream_->when_readable([waiter] { waiter->wake(); });
  return true;
}

std::optional<Result<void>> HttpClientConnection::read_available(ResponseParser& parser, std::string& body) {
  const std::span<char> scratch = loop_.scratch_buffer();
  const ByteStream::IoResult io =
      stream_->read(scratch.first(std::min(scratch.size(), StreamPump::kBytesPerTurn)));
  ++reads_since_yield_;
  switch (io.status) {
    case ByteStream::IoStatus::again: return std::nullopt;
    case ByteStream::IoStatus::ended: return parser.on_end_of_input();
    case ByteStream::IoStatus::failed: return *io.error;
    case ByteStream::IoStatus::ok: break;
  }
  bytes_since_yield_ += io.bytes;
  Result<void> fed = parser.feed(std::string_view(scratch.data(), io.bytes), body);
  if (io.bytes == scratch.size()) loop_.grow_scratch_buffer();
  return fed;
}

Task<Result<void>> HttpClientConnection::read(ResponseParser& parser, std::string& body,
                                              std::shared_ptr<CancellableWaiter> waiter,
                                              Clock::time_point deadline) {
  while (true) {
    if (waiter->cancelled()) co_return waiter->cancelled_error();
    if (reads_since_yield_ >= StreamPump::kReadsPerTurn || bytes_since_yield_ >= StreamPump::kBytesPerTurn) {
      co_await waiter->yield();
      reads_since_yield_ = 0;
      bytes_since_yield_ = 0;
      if (Clock::now() >= deadline && !waiter->cancelled()) co_return timeout_error();
      continue;
    }
    std::optional<Result<void>> read_result = read_available(parser, body);
    if (read_result) co_return std::move(*read_result);
    waiter->clear_wake();
    stream_->when_readable([waiter] { waiter->wake(); });
    const bool in_time = co_await waiter->wait(deadline);
    reads_since_yield_ = 0;
    bytes_since_yield_ = 0;
    if (!in_time && !waiter->cancelled()) co_return timeout_error();
  }
}

Error HttpClientConnection::closed_error() const {
  return Error(ErrorKind::closed, writer_.name() + " closed its end of the stream");
}

Error HttpClientConnection::timeout_error() const {
  return Error(ErrorKind::timeout, stream_->remote_name() + " did not respond in time");
}

void HttpClientConnection::watch_while_idle(Clock::duration idle_timeout, Loop::Callback on_unusable) {
  on_unusable_ = std::move(on_unusable);
  idle_timeout_ = idle_timeout;
  idle_since_ = Clock::now();
  if (!idle_timer_.armed()) idle_timer_.arm(idle_since_ + idle_timeout, [this] { check_idle_time(); });
  wait_for_input();
}

void HttpClientConnection::check_idle_time() {
  if (!on_unusable_) return;  // in use; watch_while_idle() arms the timer again
  const Clock::time_point end = idle_since_ + idle_timeout_;
  if (Clock::now() >= end) return call_on_unusable();
  idle_timer_.arm(end, [this] { check_idle_time(); });
}

void HttpClientConnection::stop_watching() {
  on_unusable_ = nullptr;
}

void HttpClientConnection::wait_for_input() {
  stream_->when_readable([this] { on_readable(); });
}

void HttpClientConnection::on_readable() {
  if (input_handler_) return input_handler_->on_readable();
  if (!on_unusable_) return;
  // The socket is also readable after a TLS record without application data, such as a session ticket.
  std::array<char, 1> byte;
  if (stream_->read(byte).status == ByteStream::IoStatus::again) return wait_for_input();
  call_on_unusable();
}

std::optional<std::string_view> HttpClientConnection::read_once() {
  const std::span<char> scratch = loop_.scratch_buffer();
  const ByteStream::IoResult io =
      stream_->read(scratch.first(std::min(scratch.size(), StreamPump::kBytesPerTurn)));
  if (io.status == ByteStream::IoStatus::again) return std::nullopt;
  return std::string_view(scratch.data(), io.bytes);
}

void HttpClientConnection::call_on_unusable() {
  Loop::Callback callback = std::exchange(on_unusable_, nullptr);
  idle_timer_.cancel();
  callback();
}

namespace {

// Both loopback addresses, whatever the resolver returns for localhost: a server may listen on only one of
// them.
std::vector<SocketAddress> loopback_addresses(std::uint16_t port) {
  std::vector<SocketAddress> addresses;
  for (const char* const loopback : {"127.0.0.1", "::1"}) {
    if (Result<SocketAddress> address = numeric_address(loopback, port)) addresses.push_back(*address);
  }
  return addresses;
}

Task<Result<std::vector<SocketAddress>>> addresses_of(Loop& loop, std::string host, std::uint16_t port,
                                                      std::chrono::milliseconds timeout) {
  if (host == "localhost") co_return loopback_addresses(port);
  Result<std::vector<SocketAddress>> resolved = co_await resolve(loop, std::move(host), port, timeout);
  co_return resolved;
}

Error private_address_error(const std::string& name) {
  return Error(ErrorKind::connection_failed, "cannot connect to " + name +
                                                 ": it has an address of this machine or of a private "
                                                 "network, which this server may not connect to");
}

}  // namespace

Task<Result<UniqueFd>> dial(Loop& loop, std::string host, std::uint16_t port, std::string name,
                            std::chrono::milliseconds timeout, AddressScope scope) {
  const Result<std::vector<SocketAddress>> addresses = co_await addresses_of(loop, host, port, timeout);
  if (!addresses) {
    Error lookup_error = addresses.error();
    co_return std::move(lookup_error).with([](ErrorDetail& detail) { detail.unsent = true; });
  }
  std::optional<Error> first_error;
  for (const SocketAddress& address : *addresses) {
    if (scope == AddressScope::public_only && !is_public_address(*address.get())) {
      if (!first_error) first_error = private_address_error(name);
      continue;
    }
    Result<UniqueFd> socket = co_await connect_socket(loop, address, name, timeout);
    if (socket) {
      set_no_delay(socket->get());
      co_return std::move(*socket);
    }
    if (!first_error) first_error = socket.error();
  }
  if (!first_error) first_error = Error(ErrorKind::connection_failed, host + " has no address");
  co_return std::move(*first_error).with([](ErrorDetail& detail) { detail.unsent = true; });
}

}  // namespace fairlead::http
