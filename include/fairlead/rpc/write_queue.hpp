// WriteQueue: what is to be written to a byte stream, in frames, ready for gathered writes. Small frames are
// laid side by side in one buffer; large parts are shared. Sans I/O: the caller writes parts() and reports
// how far it got.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <deque>
#include <span>
#include <string>

#include "fairlead/base/bytes.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/rpc/framing.hpp"
#include "fairlead/rpc/rope.hpp"

namespace fairlead::rpc {

class WriteQueue {
 public:
  explicit WriteQueue(Framing framing) : framing_(framing) {}

  // Frames and queues a message. Fails (kind serialize) only when the framing cannot carry it.
  Result<void> push(const Rope& message);

  bool empty() const noexcept { return pushed_ == written_; }
  std::size_t bytes() const noexcept { return pushed_ - written_; }
  // Positions in the stream since its beginning. A message pushed when pushed() became P is with the
  // operating system once written() has reached P.
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

  void put(std::string_view bytes);
  void put_shared(const Bytes& bytes);

  Framing framing_;
  std::deque<Segment> segments_;
  std::size_t front_done_ = 0;  // of the first segment
  std::uint64_t pushed_ = 0;
  std::uint64_t written_ = 0;
};

}  // namespace fairlead::rpc
