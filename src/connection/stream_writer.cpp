#include "connection/stream_writer.hpp"

#include <array>
#include <limits>
#include <utility>

namespace fairlead {

namespace {

constexpr std::size_t kBytesPerFlush = 4u << 20;
constexpr std::size_t kPartsPerWrite = 64;  // of one gathered write

bool is_failure(ByteStream::State state) {
  return state == ByteStream::State::ended || state == ByteStream::State::failed;
}

}  // namespace

StreamWriter::StreamWriter(Loop& loop, Owner& owner, rpc::ByteQueue& queue, ByteStream& stream,
                           std::string name, std::chrono::milliseconds write_stall)
    : loop_(loop),
      owner_(owner),
      queue_(queue),
      stream_(&stream),
      name_(std::move(name)),
      stall_(loop, write_stall, [this] {
        fail(Error::timeout(name_ + " has not read anything: write_stall; what was sent", stall_.limit()));
      }) {}

void StreamWriter::flush_soon() {
  if (flush_posted_ || !stream_ || stream_->waiting_to_write()) return;
  flush_posted_ = true;
  loop_.post([self = self()] {
    self->flush_posted_ = false;
    self->flush_by_loop();
  });
}

void StreamWriter::flush_by_loop() {
  flush();
  owner_.on_flushed();
}

void StreamWriter::flush() {
  if (!stream_ || queue_.empty() || stream_->waiting_to_write()) return;
  const std::uint64_t before = queue_.written();
  const ByteStream::Io io = write_queued(before + kBytesPerFlush);
  if (is_failure(io.state)) {
    const std::shared_ptr<void> alive = owner_.lifetime();
    fail(io.error ? *io.error : Error(ErrorKind::closed, name_ + " no longer reads what it is sent"));
    return owner_.on_written();
  }
  if (queue_.empty()) {
    stall_.flushed();
  } else {
    stall_.blocked(queue_.written() != before);
    stream_->when_writable([self = self()] { self->flush_by_loop(); });
  }
  owner_.on_written();
}

void StreamWriter::write_rest() {
  if (stream_ && !stream_->waiting_to_write())
    static_cast<void>(write_queued(std::numeric_limits<std::uint64_t>::max()));
}

// Writes until `until` is written, nothing is left, or the stream takes nothing.
ByteStream::Io StreamWriter::write_queued(std::uint64_t until) {
  ByteStream::Io io;
  while (io.state == ByteStream::State::ok && !queue_.empty() && queue_.written() < until) {
    std::array<iovec, kPartsPerWrite> parts;
    const std::size_t used = queue_.parts(parts);
    io = stream_->write(std::span(parts).first(used));
    queue_.advance(io.bytes);
  }
  return io;
}

void StreamWriter::fail(Error reason) {
  stop();
  owner_.on_output_failed(std::move(reason));
}

void StreamWriter::stop() noexcept {
  stream_ = nullptr;
  stall_.stop();
}

}  // namespace fairlead
