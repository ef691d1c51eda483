#include "rpc/decoders.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>
#include <utility>

#include "fairlead/rpc/codes.hpp"
#include "rpc/cut_frame.hpp"

namespace fairlead::rpc {

namespace {

using Step = Decoder::Step;
using What = Decoder::What;

Step more(std::size_t consumed = 0, std::size_t want = 0) {
  return Step{.what = What::more, .consumed = consumed, .frame = {}, .want = want, .error = {}};
}

Step frame(std::string_view bytes, std::size_t consumed) {
  return Step{.what = What::frame, .consumed = consumed, .frame = bytes, .want = 0, .error = {}};
}

Step failed(What what, std::size_t consumed, ErrorKind kind, std::string message) {
  return Step{
      .what = what, .consumed = consumed, .frame = {}, .want = 0, .error = Error(kind, std::move(message))};
}

Step too_large(std::size_t consumed, const std::string& size, std::size_t max, std::string_view kept = {}) {
  Step step = failed(What::skipped, consumed, ErrorKind::frame_too_large,
                     "a frame of " + size + " bytes is over max_frame_bytes (" + std::to_string(max) + ")");
  step.frame = kept;
  return step;
}

Step ended_inside(std::string_view rest) {
  return failed(What::broken, rest.size(), ErrorKind::closed, "the stream ended in the middle of a frame");
}

// The decoder no longer knows where frames begin. With `resync` the error goes to the sender only, as the
// problem of a skipped frame.
Step track_lost(FramingErrorPolicy policy, std::string_view input, std::size_t consumed, ErrorKind kind,
                std::string message) {
  if (policy == FramingErrorPolicy::close)
    return failed(What::broken, input.size(), kind, std::move(message));
  Step step = failed(What::skipped, consumed, kind, std::move(message));
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
  std::size_t done = 0;  // blank lines are passed over
  while (true) {
    const std::string_view rest = input.substr(done);
    const void* found =
        looked_ < rest.size() ? std::memchr(rest.data() + looked_, '\n', rest.size() - looked_) : nullptr;
    if (!found) {
      looked_ = rest.size();
      if (discarding_ || without_cr(rest).size() > max_) {
        Step step = discard(rest);
        step.consumed += done;
        return step;
      }
      return more(done);
    }
    const auto length = static_cast<std::size_t>(static_cast<const char*>(found) - rest.data());
    looked_ = 0;
    done += length + 1;
    if (std::exchange(discarding_, false)) {
      if (kept_.empty()) continue;
      keep_end(rest.substr(0, length));
      return refuse_kept(done);
    }
    std::string_view line = without_cr(rest.substr(0, length));
    const std::size_t size = line.size();
    line = without_mark(line);
    if (size > max_) return too_large(done, std::to_string(size), max_, line);
    if (!is_blank(line)) return frame(line, done);
  }
}

// Programs of some platforms begin their output with a byte order mark. Without this, their first message,
// and only that, would be lost.
std::string_view LineDecoder::without_mark(std::string_view line) {
  if (std::exchange(first_, false) && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
  return line;
}

// A line over the limit is reported once, and dropped as it comes: when it crosses the limit, or, where it is
// a message and does not begin with its id, at its end.
Step LineDecoder::discard(std::string_view input) {
  looked_ = 0;
  if (discarding_) {
    if (!kept_.empty()) keep_end(input);
    return more(input.size());
  }
  discarding_ = true;
  const std::string_view head = without_mark(input).substr(0, kCutHead);
  const CutFrame cut = read_cut_frame(head);
  if (!cut.is_message || !cut.id.empty() || head.size() < kCutHead)
    return too_large(input.size(), "more than " + std::to_string(max_), max_, head);
  kept_ = head;
  keep_end(input);
  return more(input.size());
}

void LineDecoder::keep_end(std::string_view input) {
  kept_ += input.substr(input.size() - std::min(input.size(), kCutTail));
  if (kept_.size() > kCutHead + kCutTail) kept_.erase(kCutHead, kept_.size() - kCutHead - kCutTail);
}

Step LineDecoder::refuse_kept(std::size_t consumed) {
  told_ = without_cr(std::exchange(kept_, {}));
  return too_large(consumed, "more than " + std::to_string(max_), max_, told_);
}

Step LineDecoder::at_end(std::string_view rest) {
  if (discarding_ && kept_.empty()) return more(rest.size());
  if (discarding_) {
    keep_end(rest);
    return refuse_kept(rest.size());
  }
  const std::string_view line = without_mark(without_cr(rest));
  return is_blank(line) ? more(rest.size()) : frame(line, rest.size());
}

// ---- length ----------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kPrefix = 4;

std::size_t big_endian(std::string_view bytes) {
  std::size_t value = 0;
  for (std::size_t i = 0; i < kPrefix; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// The start of a line or of a header read as a length gives a number near two billion. Waiting for that many
// bytes would look like a hang, so it is recognised.
bool is_text(std::string_view bytes) {
  return std::ranges::all_of(
      bytes, [](char c) { return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\r' || c == '\t'; });
}

}  // namespace

Step LengthDecoder::lose_track(std::string_view input, std::size_t consumed, ErrorKind kind,
                               std::string message) {
  resyncing_ = policy_ == FramingErrorPolicy::resync;
  skipping_ = false;
  return track_lost(policy_, input, consumed, kind, std::move(message));
}

// Frames end with a newline, so the next one begins a frame, unless it is part of a payload.
Step LengthDecoder::resync(std::string_view input) {
  const std::size_t newline = input.find('\n');
  if (newline == std::string_view::npos) return more(input.size());
  resyncing_ = false;
  Step step = next(input.substr(newline + 1));
  step.consumed += newline + 1;
  return step;
}

Step LengthDecoder::next(std::string_view input) {
  if (resyncing_) return resync(input);
  if (skipping_) return skip(input);
  if (input.size() < kPrefix) return more(0, kPrefix - input.size());
  const std::size_t length = big_endian(input);
  if (length > max_) return refuse(input, length);
  const std::size_t whole = kPrefix + length + 1;
  if (input.size() < whole) return more(0, whole - input.size());
  if (input[whole - 1] != '\n') {
    return lose_track(input, whole - 1, ErrorKind::parse,
                      "a frame of " + std::to_string(length) +
                          " bytes is not followed by a newline: its length cannot be true");
  }
  return frame(input.substr(kPrefix, length), whole);
}

Step LengthDecoder::refuse(std::string_view input, std::size_t length) {
  if (is_text(input.substr(0, kPrefix))) {
    return lose_track(input, 0, ErrorKind::parse,
                      "the length prefix is text (\"" + std::string(input.substr(0, kPrefix)) +
                          "\"): the other side seems to use line or header framing");
  }
  if (length > Limits::kMaxFrameCeiling) {
    return lose_track(input, kPrefix, ErrorKind::frame_too_large,
                      "a length prefix of " + std::to_string(length) +
                          " bytes cannot be true: no frame may exceed " +
                          std::to_string(Limits::kMaxFrameCeiling));
  }
  skipping_ = true;
  to_skip_ = length;
  return too_large(kPrefix, std::to_string(length), max_);
}

// The newline behind a skipped payload proves that its length was honest; without it nothing that follows
// can be trusted.
Step LengthDecoder::skip(std::string_view input) {
  const std::size_t payload = std::min(to_skip_, input.size());
  to_skip_ -= payload;
  if (payload == input.size()) return more(payload);
  if (input[payload] != '\n') {
    return lose_track(input, payload, ErrorKind::parse,
                      "a skipped frame is not followed by a newline: its length cannot be true");
  }
  skipping_ = false;
  Step step = next(input.substr(payload + 1));
  step.consumed += payload + 1;
  return step;
}

Step LengthDecoder::at_end(std::string_view rest) {
  if (resyncing_) return more(rest.size());
  return rest.empty() && !skipping_ ? more() : ended_inside(rest);
}

// ---- header ----------------------------------------------------------------------------------------------

namespace {

bool same_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

constexpr std::string_view kLengthHeader = "content-length:";

std::size_t find_length_header(std::string_view input) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; };
  const auto found = std::ranges::search(input, kLengthHeader, {}, lower).begin();
  return found == input.end() ? std::string_view::npos : static_cast<std::size_t>(found - input.begin());
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Digits and nothing else: a sign, a unit or a second value means that two readers could disagree.
std::optional<std::size_t> parse_length(std::string_view text) {
  std::size_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Head {
  std::optional<std::size_t> length;
  std::string problem;
};

Head parse_head(std::string_view head) {
  Head parsed;
  while (!head.empty()) {
    const std::size_t end = std::min(head.find('\n'), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 1, head.size()));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
      parsed.problem = "a header line has no colon";
    } else if (same_ignoring_case(line.substr(0, colon), "content-length")) {
      if (parsed.length) parsed.problem = "Content-Length is given twice";
      parsed.length = parse_length(trimmed(line.substr(colon + 1)));
      if (!parsed.length) parsed.problem = "Content-Length is not a plain number";
    }
    if (!parsed.problem.empty()) return parsed;
  }
  if (!parsed.length) parsed.problem = "Content-Length is missing";
  return parsed;
}

// Where the empty line that ends a head begins, and how long head and empty line are together.
struct HeadEnd {
  std::size_t head;
  std::size_t whole;
};

std::optional<HeadEnd> find_head_end(std::string_view input, std::size_t from) {
  for (std::size_t at = input.find('\n', from); at != std::string_view::npos; at = input.find('\n', at + 1)) {
    if (input.substr(at + 1).starts_with("\r\n")) return HeadEnd{at + 1, at + 3};
    if (input.substr(at + 1).starts_with("\n")) return HeadEnd{at + 1, at + 2};
  }
  return std::nullopt;
}

}  // namespace

Step HeaderDecoder::lose_track(std::string_view input, std::size_t consumed, ErrorKind kind,
                               std::string message) {
  resyncing_ = policy_ == FramingErrorPolicy::resync;
  looked_ = 0;
  return track_lost(policy_, input, consumed, kind, std::move(message));
}

Step HeaderDecoder::resync(std::string_view input) {
  const std::size_t head = find_length_header(input);
  if (head == std::string_view::npos) {
    const std::size_t keep = std::min(input.size(), kLengthHeader.size() - 1);  // it may be cut anywhere
    return more(input.size() - keep);
  }
  resyncing_ = false;
  Step step = next(input.substr(head));
  step.consumed += head;
  return step;
}

Step HeaderDecoder::next(std::string_view input) {
  if (resyncing_) return resync(input);
  if (to_skip_ > 0) {
    const std::size_t skipped = std::min(to_skip_, input.size());
    to_skip_ -= skipped;
    if (skipped == input.size()) return more(skipped);
    Step step = next(input.substr(skipped));
    step.consumed += skipped;
    return step;
  }
  if (!length_) return read_head(input);
  if (input.size() < *length_) return more(0, *length_ - input.size());
  const std::size_t length = *length_;
  length_.reset();
  return frame(input.substr(0, length), length);
}

Step HeaderDecoder::read_head(std::string_view input) {
  if (input.starts_with('{') || input.starts_with('[')) {
    return lose_track(input, 0, ErrorKind::parse,
                      "JSON where a header was expected: the other side seems to use line framing");
  }
  const std::optional<HeadEnd> end = find_head_end(input, looked_);
  if ((end ? end->whole : input.size()) > max_head_) {
    return lose_track(input, max_head_, ErrorKind::frame_too_large,
                      "the head of a frame is over max_header_bytes (" + std::to_string(max_head_) + ")");
  }
  if (!end) {
    // The empty line may be cut anywhere, so look again from a little before the end.
    looked_ = input.size() > 2 ? input.size() - 2 : 0;
    return more();
  }
  looked_ = 0;
  const Head head = parse_head(input.substr(0, end->head));
  if (!head.problem.empty()) return lose_track(input, end->whole, ErrorKind::parse, head.problem);
  if (*head.length > Limits::kMaxFrameCeiling) {
    return lose_track(input, end->whole, ErrorKind::frame_too_large,
                      "a Content-Length of " + std::to_string(*head.length) +
                          " cannot be true: no frame may exceed " + std::to_string(Limits::kMaxFrameCeiling));
  }
  if (*head.length > max_) {
    to_skip_ = *head.length;
    return too_large(end->whole, std::to_string(*head.length), max_);
  }
  length_ = head.length;
  Step step = next(input.substr(end->whole));
  step.consumed += end->whole;
  return step;
}

Step HeaderDecoder::at_end(std::string_view rest) {
  if (resyncing_) return more(rest.size());
  return rest.empty() && !length_ && to_skip_ == 0 ? more() : ended_inside(rest);
}

}  // namespace fairlead::rpc
