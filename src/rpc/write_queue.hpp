// ByteQueue: what is to be written to a byte stream, ready for gathered writes. Small pieces are laid side by
// side in one buffer; large ones are shared. Sans I/O: the caller writes parts() and reports how far it got.
// WriteQueue: the same for messages, in frames.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>

#include "fairlead/base/bytes.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/rpc/framing.hpp"
#include "fairlead/rpc/rope.hpp"

namespace fairlead::rpc {

class ByteQueue {
 public:
  // Copies.
  void put(std::string_view bytes);
  // Copies what is short and shares what is long.
  void put(const Bytes& bytes);

  bool empty() const noexcept { return pushed_ == written_; }
  std::size_t bytes() const noexcept { return pushed_ - written_; }
  // Positions in the stream since its beginning. What was put when pushed() became P is with the operating
  // system once written() has reached P.
  std::uint64_t pushed() const noexcept { return pushed_; }
  std::uint64_t written() const noexcept { return written_; }

  // Fills `out` with what comes next and returns how many entries it used.
  std::size_t parts(std::span<iovec> out) const noexcept;
  void advance(std::size_t written);

 private:
  struct Segment {
    std::string copied;
    Bytes shared;  // instead of `copied`
    std::string_view view() const noexcept {
      return shared.empty() ? std::string_view(copied) : shared.view();
    }
  };

  std::deque<Segment> segments_;
  std::size_t front_done_ = 0;  // of the first segment
  std::uint64_t pushed_ = 0;
  std::uint64_t written_ = 0;
};

class WriteQueue : public ByteQueue {
 public:
  explicit WriteQueue(Framing framing) : framing_(framing) {}

  // Frames and queues a message. Fails (kind serialize) only when the framing cannot carry it.
  Result<void> push(const Rope& message);

 private:
  Framing framing_;
};

}  // namespace fairlead::rpc
