#include "rpc/write_queue.hpp"

#include <algorithm>
#include <cstring>

#include "fairlead/json/scanner.hpp"

namespace fairlead::rpc {

namespace {

constexpr std::size_t kMinSharedPartBytes = 4u << 10;  // smaller parts are copied
constexpr std::size_t kSegmentBytes = 64u << 10;       // approximate maximum size of a buffer of copied parts

// Also returns true for a lone \r, which many readers (Python, Node) treat as the end of a line.
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
  if (framing_ == Framing::line && !message.is_one_line() && has_line_break(message)) {
    return push(Rope(Bytes::adopt(json::to_one_line(message.joined().view())), true));
  }
  const std::size_t size = message.size();
  if (size > max_payload_bytes(framing_)) {
    return Error(ErrorKind::serialize, "a message of " + std::to_string(size) +
                                           " bytes does not fit into a " + std::string(to_string(framing_)) +
                                           " frame");
  }
  const FrameDelimiters delimiters = frame_delimiters(framing_, size);
  put(delimiters.prefix());
  message.each([&](const Bytes& part) { put(part); });
  put(delimiters.suffix);
  return {};
}

void ByteQueue::put(std::string_view bytes) {
  if (bytes.empty()) return;
  queued_position_ += bytes.size();
  if (segments_.empty() || !segments_.back().shared.empty() ||
      segments_.back().copied.size() >= kSegmentBytes) {
    segments_.push(Segment());
  }
  segments_.back().copied += bytes;
}

void ByteQueue::put(const Bytes& bytes) {
  if (bytes.size() < kMinSharedPartBytes) return put(bytes.view());
  queued_position_ += bytes.size();
  segments_.push(Segment{.copied = {}, .shared = bytes});
}

std::size_t ByteQueue::fill_iovecs(std::span<iovec> out) const noexcept {
  std::size_t used = 0;
  std::size_t offset = front_written_;
  for (const Segment& segment : segments_) {
    if (used == out.size()) break;
    const std::string_view rest = segment.view().substr(offset);
    offset = 0;
    if (rest.empty()) continue;  // an empty buffer that advance() kept for reuse
    out[used++] = iovec{const_cast<char*>(rest.data()), rest.size()};
  }
  return used;
}

void ByteQueue::advance(std::size_t written) {
  written_position_ += written;
  front_written_ += written;
  while (!segments_.empty() && front_written_ >= segments_.front().view().size()) {
    front_written_ -= segments_.front().view().size();
    // The last buffer of copied parts is kept if it is small, so that alternating requests and responses do
    // not allocate, and an idle connection uses little memory.
    if (segments_.size() == 1 && segments_.front().shared.empty() &&
        segments_.front().copied.capacity() <= kMinSharedPartBytes) {
      segments_.front().copied.clear();
      return;
    }
    const Segment written_segment = std::move(segments_.front());  // Fifo may destroy the element later
    segments_.pop();
  }
}

}  // namespace fairlead::rpc
