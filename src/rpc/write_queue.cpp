#include "rpc/write_queue.hpp"

#include <algorithm>
#include <cstring>

#include "fairlead/json/scanner.hpp"

namespace fairlead::rpc {

namespace {

constexpr std::size_t kCopyBelow = 4u << 10;      // shorter parts are copied
constexpr std::size_t kSegmentBytes = 64u << 10;  // a buffer of copied parts grows to about this

// A lone \r ends a line too for many a reader (Python, Node).
bool has_line_break(const Rope& message) {
  bool found = false;
  message.each([&](const Bytes& part) {
    found =
        found || std::memchr(part.data(), '\n', part.size()) || std::memchr(part.data(), '\r', part.size());
  });
  return found;
}

}  // namespace

Result<void> WriteQueue::push(const Rope& message) {
  if (framing_ == Framing::line && !message.one_line() && has_line_break(message)) {
    return push(Rope(Bytes::adopt(json::one_line(message.joined().view())), true));
  }
  const std::size_t size = message.size();
  if (size > largest_payload(framing_)) {
    return Error(ErrorKind::serialize, "a message of " + std::to_string(size) +
                                           " bytes does not fit into a " + std::string(to_string(framing_)) +
                                           " frame");
  }
  const FrameMarks marks = frame_marks(framing_, size);
  put(marks.before());
  message.each([&](const Bytes& part) { put(part); });
  put(marks.suffix);
  return {};
}

void ByteQueue::put(std::string_view bytes) {
  if (bytes.empty()) return;
  pushed_ += bytes.size();
  if (segments_.empty() || !segments_.back().shared.empty() ||
      segments_.back().copied.size() >= kSegmentBytes) {
    segments_.emplace_back();
  }
  segments_.back().copied += bytes;
}

void ByteQueue::put(const Bytes& bytes) {
  if (bytes.size() < kCopyBelow) return put(bytes.view());
  pushed_ += bytes.size();
  segments_.push_back(Segment{.copied = {}, .shared = bytes});
}

std::size_t ByteQueue::parts(std::span<iovec> out) const noexcept {
  std::size_t used = 0;
  std::size_t skip = front_done_;
  for (const Segment& segment : segments_) {
    if (used == out.size()) break;
    const std::string_view rest = segment.view().substr(skip);
    skip = 0;
    if (rest.empty()) continue;  // the buffer kept for the next parts
    out[used++] = iovec{const_cast<char*>(rest.data()), rest.size()};
  }
  return used;
}

void ByteQueue::advance(std::size_t written) {
  written_ += written;
  front_done_ += written;
  while (!segments_.empty() && front_done_ >= segments_.front().view().size()) {
    front_done_ -= segments_.front().view().size();
    // The last buffer of copied parts is kept for the next ones while it is small, so that request and
    // answer in turn do not allocate, and an idle connection holds next to nothing.
    if (segments_.size() == 1 && segments_.front().shared.empty() &&
        segments_.front().copied.capacity() <= kCopyBelow) {
      segments_.front().copied.clear();
      return;
    }
    segments_.pop_front();
  }
}

}  // namespace fairlead::rpc
