#include "rpc/decoders.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>
#include <utility>

#include "base/lower_case.hpp"
#include "fairlead/rpc/codes.hpp"
#include "rpc/truncated_frame.hpp"

namespace fairlead::rpc {

namespace {

using Step = Decoder::Step;
using Status = Decoder::Status;

Step incomplete(std::size_t consumed = 0, std::size_t bytes_needed = 0) {
  return Step{.status = Status::incomplete,
              .consumed = consumed,
              .frame = {},
              .bytes_needed = bytes_needed,
              .error = {}};
}

Step frame(std::string_view bytes, std::size_t consumed) {
  return Step{.status = Status::frame, .consumed = consumed, .frame = bytes, .bytes_needed = 0, .error = {}};
}

Step failed(Status status, std::size_t consumed, ErrorKind kind, std::string message) {
  return Step{.status = status,
              .consumed = consumed,
              .frame = {},
              .bytes_needed = 0,
              .error = Error(kind, std::move(message))};
}

Step too_large(std::size_t consumed, const std::string& size, std::size_t max,
               std::string_view excerpt = {}) {
  Step step = failed(Status::rejected, consumed, ErrorKind::frame_too_large,
                     "a frame of " + size + " bytes is over max_frame_bytes (" + std::to_string(max) + ")");
  step.frame = excerpt;
  return step;
}

Step ended_inside_frame(std::string_view rest) {
  return failed(Status::broken, rest.size(), ErrorKind::closed, "the stream ended in the middle of a frame");
}

// Returns the step of a decoder that no longer knows where the next frame begins. With the policy `resync`,
// the connection responds to the remote peer with the error, as for any rejected frame.
Step sync_lost(FramingErrorPolicy policy, std::string_view input, std::size_t consumed, ErrorKind kind,
               std::string message) {
  if (policy == FramingErrorPolicy::close)
    return failed(Status::broken, input.size(), kind, std::move(message));
  Step step = failed(Status::rejected, consumed, kind, std::move(message));
  step.error = std::move(*step.error).with([](ErrorDetail& detail) { detail.rpc_code = kParseError; });
  return step;
}

std::string_view without_cr(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

// ---- line ------------------------------------------------------------------------------------------------

Step LineDecoder::next(std::string_view input) {
  std::size_t consumed = 0;  // bytes of the lines handled so far, including the line that is returned
  while (true) {
    const std::string_view rest = input.substr(consumed);
    const void* found =
        scanned_ < rest.size() ? std::memchr(rest.data() + scanned_, '\n', rest.size() - scanned_) : nullptr;
    if (!found) {
      scanned_ = rest.size();
      if (skipping_ || without_cr(rest).size() > max_frame_bytes_) {
        Step step = skip_line(rest);
        step.consumed += consumed;
        return step;
      }
      return incomplete(consumed);
    }
    const auto length = static_cast<std::size_t>(static_cast<const char*>(found) - rest.data());
    scanned_ = 0;
    consumed += length + 1;
    if (std::exchange(skipping_, false)) {
      if (excerpt_.empty()) continue;
      keep_tail(rest.substr(0, length));
      return reject_skipped(consumed);
    }
    std::string_view line = without_cr(rest.substr(0, length));
    const std::size_t size = line.size();
    line = strip_byte_order_mark(line);
    if (size > max_frame_bytes_) return too_large(consumed, std::to_string(size), max_frame_bytes_, line);
    if (!is_blank(line)) return frame(line, consumed);
  }
}

// Removes the byte order mark with which programs on some platforms begin their output. It would make the
// first message malformed.
std::string_view LineDecoder::strip_byte_order_mark(std::string_view line) {
  if (std::exchange(at_first_line_, false) && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
  return line;
}

// Drops an oversized line as it arrives and reports it once. Usually reports it when it exceeds the limit. If
// the line is a message whose id is not in its beginning, reports it at its end, where the id may be.
Step LineDecoder::skip_line(std::string_view input) {
  scanned_ = 0;
  if (skipping_) {
    if (!excerpt_.empty()) keep_tail(input);
    return incomplete(input.size());
  }
  skipping_ = true;
  const std::string_view head = strip_byte_order_mark(input).substr(0, kKeptHeadBytes);
  const TruncatedFrame frame_start = read_truncated_frame(head);
  if (!frame_start.is_message || !frame_start.id.empty() || head.size() < kKeptHeadBytes)
    return too_large(input.size(), "more than " + std::to_string(max_frame_bytes_), max_frame_bytes_, head);
  excerpt_ = head;
  keep_tail(input);
  return incomplete(input.size());
}

void LineDecoder::keep_tail(std::string_view input) {
  excerpt_ += input.substr(input.size() - std::min(input.size(), kKeptTailBytes));
  if (excerpt_.size() > kKeptHeadBytes + kKeptTailBytes)
    excerpt_.erase(kKeptHeadBytes, excerpt_.size() - kKeptHeadBytes - kKeptTailBytes);
}

Step LineDecoder::reject_skipped(std::size_t consumed) {
  reported_ = without_cr(std::exchange(excerpt_, {}));
  return too_large(consumed, "more than " + std::to_string(max_frame_bytes_), max_frame_bytes_, reported_);
}

Step LineDecoder::finish(std::string_view rest) {
  if (skipping_ && excerpt_.empty()) return incomplete(rest.size());
  if (skipping_) {
    keep_tail(rest);
    return reject_skipped(rest.size());
  }
  const std::string_view line = strip_byte_order_mark(without_cr(rest));
  return is_blank(line) ? incomplete(rest.size()) : frame(line, rest.size());
}

// ---- length ----------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kLengthPrefixBytes = 4;

std::size_t parse_big_endian(std::string_view bytes) {
  std::size_t value = 0;
  for (std::size_t i = 0; i < kLengthPrefixBytes; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// Returns whether a length prefix is text: the sender uses another framing. Text read as a length is a number
// near two billion, and waiting for that many bytes would look like a hang.
bool is_text(std::string_view bytes) {
  return std::ranges::all_of(
      bytes, [](char c) { return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\r' || c == '\t'; });
}

}  // namespace

Step LengthDecoder::lose_sync(std::string_view input, std::size_t consumed, ErrorKind kind,
                              std::string message) {
  resyncing_ = policy_ == FramingErrorPolicy::resync;
  skipping_ = false;
  return sync_lost(policy_, input, consumed, kind, std::move(message));
}

// Skips to the next newline, because frames end with a newline. A newline inside a payload is mistaken for
// the end of a frame.
Step LengthDecoder::resync(std::string_view input) {
  const std::size_t newline = input.find('\n');
  if (newline == std::string_view::npos) return incomplete(input.size());
  resyncing_ = false;
  Step step = next(input.substr(newline + 1));
  step.consumed += newline + 1;
  return step;
}

Step LengthDecoder::next(std::string_view input) {
  if (resyncing_) return resync(input);
  if (skipping_) return skip_payload(input);
  if (input.size() < kLengthPrefixBytes) return incomplete(0, kLengthPrefixBytes - input.size());
  const std::size_t length = parse_big_endian(input);
  if (length > max_frame_bytes_) return reject_length(input, length);
  const std::size_t whole = kLengthPrefixBytes + length + 1;
  if (input.size() < whole) return incomplete(0, whole - input.size());
  if (input[whole - 1] != '\n') {
    return lose_sync(input, whole - 1, ErrorKind::parse,
                     "a frame of " + std::to_string(length) +
                         " bytes is not followed by a newline: its length cannot be true");
  }
  return frame(input.substr(kLengthPrefixBytes, length), whole);
}

Step LengthDecoder::reject_length(std::string_view input, std::size_t length) {
  if (is_text(input.substr(0, kLengthPrefixBytes))) {
    return lose_sync(input, 0, ErrorKind::parse,
                     "the length prefix is text (\"" + std::string(input.substr(0, kLengthPrefixBytes)) +
                         "\"): the sender seems to use line or header framing");
  }
  if (length > Limits::kMaxFrameCeiling) {
    return lose_sync(input, kLengthPrefixBytes, ErrorKind::frame_too_large,
                     "a length prefix of " + std::to_string(length) +
                         " bytes cannot be true: no frame may exceed " +
                         std::to_string(Limits::kMaxFrameCeiling));
  }
  skipping_ = true;
  bytes_to_skip_ = length;
  return too_large(kLengthPrefixBytes, std::to_string(length), max_frame_bytes_);
}

// Skips the payload of a rejected frame. The newline after it confirms that the length was correct; without
// the newline, the position of the next frame is unknown.
Step LengthDecoder::skip_payload(std::string_view input) {
  const std::size_t payload = std::min(bytes_to_skip_, input.size());
  bytes_to_skip_ -= payload;
  if (payload == input.size()) return incomplete(payload);
  if (input[payload] != '\n') {
    return lose_sync(input, payload, ErrorKind::parse,
                     "a skipped frame is not followed by a newline: its length cannot be true");
  }
  skipping_ = false;
  Step step = next(input.substr(payload + 1));
  step.consumed += payload + 1;
  return step;
}

Step LengthDecoder::finish(std::string_view rest) {
  if (resyncing_) return incomplete(rest.size());
  return rest.empty() && !skipping_ ? incomplete() : ended_inside_frame(rest);
}

// ---- header ----------------------------------------------------------------------------------------------

namespace {

bool equals_ignore_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower_letter, lower_letter);
}

constexpr std::string_view kLengthHeader = "content-length:";

std::size_t find_length_header(std::string_view input) {
  const auto found = std::ranges::search(input, kLengthHeader, {}, lower_letter).begin();
  return found == input.end() ? std::string_view::npos : static_cast<std::size_t>(found - input.begin());
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Accepts digits only: two readers could interpret a sign, a unit or a second value differently.
std::optional<std::size_t> parse_length(std::string_view text) {
  std::size_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Header {
  std::optional<std::size_t> length;
  std::string problem;
};

Header parse_header(std::string_view block) {
  Header parsed;
  while (!block.empty()) {
    const std::size_t end = std::min(block.find('\n'), block.size());
    const std::string_view line = block.substr(0, end);
    block.remove_prefix(std::min(end + 1, block.size()));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
      parsed.problem = "a header line has no colon";
    } else if (equals_ignore_case(line.substr(0, colon), "content-length")) {
      if (parsed.length) parsed.problem = "Content-Length is given twice";
      parsed.length = parse_length(trimmed(line.substr(colon + 1)));
      if (!parsed.length) parsed.problem = "Content-Length is not a plain number";
    }
    if (!parsed.problem.empty()) return parsed;
  }
  if (!parsed.length) parsed.problem = "Content-Length is missing";
  return parsed;
}

// The size of a header block, without and with the empty line at its end.
struct HeaderSize {
  std::size_t without_empty_line;
  std::size_t total;
};

std::optional<HeaderSize> find_header_end(std::string_view input, std::size_t from) {
  for (std::size_t at = input.find('\n', from); at != std::string_view::npos; at = input.find('\n', at + 1)) {
    if (input.substr(at + 1).starts_with("\r\n")) return HeaderSize{at + 1, at + 3};
    if (input.substr(at + 1).starts_with("\n")) return HeaderSize{at + 1, at + 2};
  }
  return std::nullopt;
}

}  // namespace

Step HeaderDecoder::lose_sync(std::string_view input, std::size_t consumed, ErrorKind kind,
                              std::string message) {
  resyncing_ = policy_ == FramingErrorPolicy::resync;
  scanned_ = 0;
  return sync_lost(policy_, input, consumed, kind, std::move(message));
}

Step HeaderDecoder::resync(std::string_view input) {
  const std::size_t head = find_length_header(input);
  if (head == std::string_view::npos) {
    // The end of the input may be the beginning of the header name.
    const std::size_t keep = std::min(input.size(), kLengthHeader.size() - 1);
    return incomplete(input.size() - keep);
  }
  resyncing_ = false;
  Step step = next(input.substr(head));
  step.consumed += head;
  return step;
}

Step HeaderDecoder::next(std::string_view input) {
  if (resyncing_) return resync(input);
  if (bytes_to_skip_ > 0) {
    const std::size_t skipped = std::min(bytes_to_skip_, input.size());
    bytes_to_skip_ -= skipped;
    if (skipped == input.size()) return incomplete(skipped);
    Step step = next(input.substr(skipped));
    step.consumed += skipped;
    return step;
  }
  if (!length_) return read_header(input);
  if (input.size() < *length_) return incomplete(0, *length_ - input.size());
  const std::size_t length = *length_;
  length_.reset();
  return frame(input.substr(0, length), length);
}

Step HeaderDecoder::read_header(std::string_view input) {
  if (input.starts_with('{') || input.starts_with('[')) {
    return lose_sync(input, 0, ErrorKind::parse,
                     "JSON where a header was expected: the sender seems to use line framing");
  }
  const std::optional<HeaderSize> end = find_header_end(input, scanned_);
  if ((end ? end->total : input.size()) > max_header_bytes_) {
    return lose_sync(
        input, max_header_bytes_, ErrorKind::frame_too_large,
        "the head of a frame is over max_header_bytes (" + std::to_string(max_header_bytes_) + ")");
  }
  if (!end) {
    // The empty line may be incomplete, so the next search starts shortly before the end.
    scanned_ = input.size() > 2 ? input.size() - 2 : 0;
    return incomplete();
  }
  scanned_ = 0;
  const Header header = parse_header(input.substr(0, end->without_empty_line));
  if (!header.problem.empty()) return lose_sync(input, end->total, ErrorKind::parse, header.problem);
  if (*header.length > Limits::kMaxFrameCeiling) {
    return lose_sync(input, end->total, ErrorKind::frame_too_large,
                     "a Content-Length of " + std::to_string(*header.length) +
                         " cannot be true: no frame may exceed " + std::to_string(Limits::kMaxFrameCeiling));
  }
  if (*header.length > max_frame_bytes_) {
    bytes_to_skip_ = *header.length;
    return too_large(end->total, std::to_string(*header.length), max_frame_bytes_);
  }
  length_ = header.length;
  Step step = next(input.substr(end->total));
  step.consumed += end->total;
  return step;
}

Step HeaderDecoder::finish(std::string_view rest) {
  if (resyncing_) return incomplete(rest.size());
  return rest.empty() && !length_ && bytes_to_skip_ == 0 ? incomplete() : ended_inside_frame(rest);
}

}  // namespace fairlead::rpc
