#include "connection/stream_writer.hpp"

#include <array>
#include <limits>
#include <utility>

namespace fairlead {

namespace {

constexpr std::size_t kMaxBytesPerFlush = 4u << 20;
constexpr std::size_t kMaxPartsPerWrite = 64;

bool is_failure(ByteStream::IoStatus state) {
  return state == ByteStream::IoStatus::ended || state == ByteStream::IoStatus::failed;
}

}  // namespace

StreamWriter::StreamWriter(Loop& loop, Owner& owner, rpc::ByteQueue& queue, ByteStream& stream,
                           std::string name, std::chrono::milliseconds write_stall)
    : loop_(loop),
      owner_(owner),
      queue_(queue),
      stream_(&stream),
      name_(std::move(name)),
      stall_timer_(loop, write_stall, [this] {
        const std::chrono::milliseconds limit = stall_timer_.limit();
        Error error(ErrorKind::timeout, name_ + " stopped reading: write_stall (" +
                                            std::to_string(limit.count()) + " ms) exceeded");
        fail(std::move(error).with([&](ErrorDetail& detail) { detail.waited = limit; }));
      }) {}

void StreamWriter::flush_soon() {
  if (flush_posted_ || !stream_ || stream_->waiting_to_write()) return;
  flush_posted_ = true;
  loop_.post([self = self()] {
    self->flush_posted_ = false;
    self->flush_as_callback();
  });
}

void StreamWriter::flush_as_callback() {
  flush();
  owner_.on_flushed();
}

void StreamWriter::flush() {
  if (!stream_ || queue_.empty() || stream_->waiting_to_write()) return;
  const std::uint64_t before = queue_.written_position();
  const ByteStream::IoResult io = write_queued(before + kMaxBytesPerFlush);
  if (is_failure(io.status)) {
    const std::shared_ptr<void> alive = owner_.lifetime();
    fail(io.error ? *io.error : Error(ErrorKind::closed, name_ + " closed its end of the stream"));
    return owner_.on_written();
  }
  if (queue_.empty()) {
    stall_timer_.on_flushed();
  } else {
    stall_timer_.on_blocked(queue_.written_position() != before);
    stream_->when_writable([self = self()] { self->flush_as_callback(); });
  }
  owner_.on_written();
}

void StreamWriter::write_remaining() {
  if (stream_ && !stream_->waiting_to_write())
    static_cast<void>(write_queued(std::numeric_limits<std::uint64_t>::max()));
}

// Writes until the written position is at least `until_position`, the queue is empty, or the stream would
// block or fails.
ByteStream::IoResult StreamWriter::write_queued(std::uint64_t until_position) {
  ByteStream::IoResult io;
  while (io.status == ByteStream::IoStatus::ok && !queue_.empty() &&
         queue_.written_position() < until_position) {
    std::array<iovec, kMaxPartsPerWrite> parts;
    const std::size_t used = queue_.fill_iovecs(parts);
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
  stall_timer_.stop();
}

}  // namespace fairlead
