#include "driver_lines.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace bench {

namespace {

constexpr std::size_t kFirstId = 1000;  // so that all ids are about as long
constexpr std::size_t kMinReadBytes = 256u << 10;
// The id of a response is searched within this many bytes of its beginning and of its end.
constexpr std::size_t kIdSearchBytes = 64;
constexpr std::string_view kIdKey = "\"id\":";

std::string make_text(std::size_t size) {
  constexpr std::string_view kSentence =
      "The quick brown fox jumps over the lazy dog and counts 0123456789 sheep; ";
  std::string text;
  text.reserve(size + kSentence.size());
  while (text.size() < size) text += kSentence;
  text.resize(size);
  return text;
}

// The _meta that every request of the modern era must have.
constexpr std::string_view kEnvelope =
    R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":)"
    R"({"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}})";

std::string make_line(std::size_t id, std::string_view text, RequestKind kind) {
  std::string line = R"({"jsonrpc":"2.0","id":)" + std::to_string(id);
  if (kind.list) {
    line += R"(,"method":"tools/list","params":{)";
  } else {
    line += R"(,"method":"tools/call","params":{"name":"echo","arguments":{"message":")";
    line += text;
    line += "\"}";
  }
  if (kind.modern) {
    if (!kind.list) line += ',';
    line += kEnvelope;
  }
  return line += "}}\n";
}

}  // namespace

Requests::Requests(std::size_t slots, std::size_t line_bytes, RequestKind kind) {
  const std::size_t envelope = make_line(kFirstId, "", RequestKind{}).size();
  text_ = kind.list ? "tool499" : make_text(std::max(line_bytes, envelope + 1) - envelope);
  for (std::size_t i = 0; i < slots; ++i) {
    starts_.push_back(block_.size());
    block_ += make_line(kFirstId + i, text_, kind);
  }
  starts_.push_back(block_.size());
}

std::string_view Requests::lines(std::size_t first, std::size_t last) const noexcept {
  return std::string_view(block_).substr(starts_[first], starts_[last] - starts_[first]);
}

std::optional<std::size_t> Requests::slot_of(std::string_view answer) const noexcept {
  std::size_t key = answer.substr(0, kIdSearchBytes).find(kIdKey);
  if (key == std::string_view::npos) {
    const std::size_t tail = answer.size() - std::min(answer.size(), kIdSearchBytes);
    key = answer.substr(tail).rfind(kIdKey);
    if (key == std::string_view::npos) return std::nullopt;
    key += tail;
  }
  std::size_t id = 0;
  std::from_chars(answer.data() + key + kIdKey.size(), answer.data() + answer.size(), id);
  if (id < kFirstId || id - kFirstId >= slots()) return std::nullopt;
  return id - kFirstId;
}

Wire::Wire(const Child& child) : to_(child.stdin_fd), from_(child.stdout_fd), buffer_(2 * kMinReadBytes) {
  fcntl(to_, F_SETFL, fcntl(to_, F_GETFL) | O_NONBLOCK);
}

void Wire::queue(std::string_view lines) {
  if (lines.empty()) return;
  unwritten_[unwritten_[0].empty() ? 0 : 1] = lines;
}

bool Wire::flush() {
  while (!unwritten_[0].empty()) {
    iovec parts[2];
    for (int i = 0; i < 2; ++i) {
      parts[i] = iovec{const_cast<char*>(unwritten_[i].data()), unwritten_[i].size()};
    }
    const ssize_t n = writev(to_, parts, unwritten_[1].empty() ? 1 : 2);
    if (n < 0 && errno == EAGAIN) return false;
    if (n < 0) fail("cannot write to the server");
    const auto written = static_cast<std::size_t>(n);
    const std::size_t first_written = std::min(written, unwritten_[0].size());
    unwritten_[0].remove_prefix(first_written);
    unwritten_[1].remove_prefix(written - first_written);
    if (unwritten_[0].empty()) std::swap(unwritten_[0], unwritten_[1]);
  }
  return true;
}

void Wire::make_room() {
  if (begin_ == end_) begin_ = scanned_ = end_ = 0;
  if (buffer_.size() - end_ >= kMinReadBytes) return;
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  scanned_ -= begin_;
  end_ -= begin_;
  begin_ = 0;
  if (buffer_.size() - end_ < kMinReadBytes) buffer_.resize(2 * buffer_.size());
}

void Wire::read_some() {
  while (!flush()) {
    pollfd ends[2] = {{from_, POLLIN, 0}, {to_, POLLOUT, 0}};
    if (poll(ends, 2, -1) > 0 && (ends[0].revents & POLLIN)) break;
  }
  make_room();
  const ssize_t n = read(from_, buffer_.data() + end_, buffer_.size() - end_);
  if (n <= 0) fail("the server closed its output");
  end_ += static_cast<std::size_t>(n);
}

std::optional<std::string_view> Wire::next_line() {
  const char* const data = buffer_.data();
  const void* found = std::memchr(data + scanned_, '\n', end_ - scanned_);
  if (!found) {
    scanned_ = end_;
    return std::nullopt;
  }
  const auto newline = static_cast<std::size_t>(static_cast<const char*>(found) - data);
  const std::string_view line(data + begin_, newline - begin_);
  begin_ = scanned_ = newline + 1;
  return line;
}

}  // namespace bench
