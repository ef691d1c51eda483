// ByteQueue: bytes to be written to a stream with writev(). Small pieces are copied into one buffer; large
// ones are shared. Does no I/O: the caller writes the buffers of fill_iovecs() and reports with advance() how
// many bytes were written. WriteQueue: a ByteQueue of framed messages.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "fairlead/base/bytes.hpp"
#include "fairlead/base/fifo.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/rpc/framing.hpp"
#include "fairlead/rpc/rope.hpp"

namespace fairlead::rpc {

class ByteQueue {
 public:
  // Appends a copy of `bytes`.
  void put(std::string_view bytes);
  // Appends `bytes`: small buffers are copied, large ones are shared.
  void put(const Bytes& bytes);

  bool empty() const noexcept { return queued_position_ == written_position_; }
  std::size_t unwritten_bytes() const noexcept { return queued_position_ - written_position_; }
  // Return how many bytes were queued, and how many of them were written, since the queue was created. If
  // queued_position() is P after a put(), the bytes of that put() are written when written_position() >= P.
  std::uint64_t queued_position() const noexcept { return queued_position_; }
  std::uint64_t written_position() const noexcept { return written_position_; }

  // Fills `out` with the next bytes to write. Returns the number of entries used.
  std::size_t fill_iovecs(std::span<iovec> out) const noexcept;
  // Removes the first `written` bytes.
  void advance(std::size_t written);
  // Frees the buffer that an empty queue keeps for the next bytes. Does nothing if the queue is not empty.
  void release_spare_memory() noexcept {
    if (!empty()) return;
    segments_ = Fifo<Segment>();
    front_written_ = 0;
  }

 private:
  struct Segment {
    std::string copied;
    Bytes shared;  // instead of `copied`
    std::string_view view() const noexcept {
      return shared.empty() ? std::string_view(copied) : shared.view();
    }
  };

  Fifo<Segment> segments_;
  std::size_t front_written_ = 0;  // bytes of the first segment that are already written
  std::uint64_t queued_position_ = 0;
  std::uint64_t written_position_ = 0;
};

class WriteQueue : public ByteQueue {
 public:
  explicit WriteQueue(Framing framing) : framing_(framing) {}

  // Frames and queues a message. Line framing replaces raw line breaks. Fails with `serialize` if the message
  // is too large for the framing.
  Result<void> push(const Rope& message);

 private:
  Framing framing_;
};

}  // namespace fairlead::rpc
