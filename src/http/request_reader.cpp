#include "http/request_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>

#include "base/reset_string.hpp"
#include "http/syntax.hpp"

namespace fairlead::http {

namespace {

constexpr std::size_t kTypicalFieldCount = 10;
constexpr std::size_t kMaxKnownLineEnds = 32;          // lines that are not searched for their ends again
constexpr std::size_t kMaxReusedHeadBytes = 4u << 10;  // memory that is kept for the head of the next request
constexpr std::size_t kMaxRepeatedLengthDigits =
    18;  // of a Content-Length that fits into 64 bits in any case
// Memory that is reserved for a body at once. More is allocated as bytes arrive, because a client could
// announce a large body and send nothing.
constexpr std::size_t kMaxBodyReserveBytes = 64u << 10;

bool is_target(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

// Returns `text` without `prefix`; nullopt if `text` does not start with `prefix`. Ignores case.
std::optional<std::string_view> strip_prefix(std::string_view text, std::string_view prefix) noexcept {
  if (text.size() < prefix.size() || !equals_ignore_case(text.substr(0, prefix.size()), prefix))
    return std::nullopt;
  return text.substr(prefix.size());
}

}  // namespace

std::size_t RequestReader::feed(std::string_view bytes) {
  const std::size_t head = feed_until_body(bytes);
  return state_ == State::body ? head + feed_body(bytes.substr(head)) : head;
}

std::size_t RequestReader::feed_until_body(std::string_view bytes) {
  if (state_ == State::idle && !bytes.empty()) {
    if (const std::size_t repeated = repeat_head(bytes); repeated > 0) return repeated;
    begin_request();
  }
  return state_ == State::head ? feed_head(bytes) : 0;
}

std::size_t RequestReader::repeat_head(std::string_view bytes) {
  if (!keeps_head_) return 0;
  const std::string_view head = request_->headers.text();
  if (bytes.size() < head.size()) return 0;
  const std::size_t rest_at = content_length_at_ + content_length_digits_;
  const bool same = std::memcmp(bytes.data(), head.data(), content_length_at_) == 0 &&
                    std::memcmp(bytes.data() + rest_at, head.data() + rest_at, head.size() - rest_at) == 0;
  if (!same) return 0;
  std::size_t length = 0;
  const std::string_view digits = bytes.substr(content_length_at_, content_length_digits_);
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return 0;
    length = length * 10 + static_cast<std::size_t>(digit - '0');
  }
  if (length > max_body_bytes_) return 0;
  if (length != expected_body_bytes_) {
    request_->headers.overwrite_text(content_length_at_, digits);
    content_length_ = expected_body_bytes_ = length;
  }
  keeps_head_ = false;
  state_ = State::body;
  return head.size();
}

void RequestReader::begin_request() {
  state_ = State::head;
  head_.clear();
  scanned_ = 0;
  ++head_number_;
  keeps_head_ = false;
  Request& request = head();
  request.method.clear();
  request.target.clear();
  request.body = Bytes();
  request.attachment = nullptr;
  authority_.clear();
  body_.clear();
  expected_body_bytes_ = 0;
  chunk_decoder_.reset();
  content_length_.reset();
  content_length_at_ = content_length_digits_ = 0;
  host_count_ = 0;
  chunked_ = absolute_target_ = http_1_0_ = expects_continue_ = continue_sent_ = false;
  keep_alive_ = true;
}

bool RequestReader::reject(int status, std::string message) {
  state_ = State::refused;
  refusal_ = Refusal{status, std::move(message)};
  reset_string(head_);
  detail::release_buffer(body_);
  return false;
}

// ---- head ------------------------------------------------------------------------------------------------

// Searches for the end of the head, line by line, and parses the head when it is complete. Searches each byte
// only once, even if the head arrives in many pieces.
std::size_t RequestReader::feed_head(std::string_view bytes) {
  const bool in_pieces = !head_.empty();
  const std::size_t buffered = head_.size();
  if (in_pieces) head_ += bytes;
  const std::string_view input = in_pieces ? std::string_view(head_) : bytes;
  std::array<std::size_t, kMaxKnownLineEnds>
      line_ends;  // of the first lines, if the head arrives in one piece
  std::size_t line_count = 0;
  std::size_t line = scanned_;
  while (true) {
    const std::size_t newline = input.find('\n', std::max(line, buffered));
    if (std::min(newline, input.size()) >= max_header_bytes_) {
      reject(431, "the request head is over max_header_bytes (" + std::to_string(max_header_bytes_) + ")");
      return bytes.size();
    }
    if (newline == std::string_view::npos) break;
    if (newline == line || input[newline - 1] != '\r') {
      reject(400, "a header line does not end with CR LF");
      return bytes.size();
    }
    const bool empty = newline == line + 1;
    const bool first = line == 0;
    line = newline + 1;
    if (!in_pieces && line_count < line_ends.size()) line_ends[line_count++] = newline;
    if (!empty || first) continue;  // one empty line before a request is allowed
    const std::string head(in_pieces ? std::move(head_) : std::string());
    const std::string_view complete =
        in_pieces ? std::string_view(head).substr(0, line) : input.substr(0, line);
    head_ = std::string();
    if (parse_head(complete, std::span(line_ends).first(line_count))) state_ = State::body;
    return line - buffered;
  }
  scanned_ = line;
  if (!in_pieces) head_ = bytes;
  return bytes.size();
}

// `head` consists of complete lines, each ending with CR LF; the last one is empty. `line_ends` has the
// positions of the LFs of the first lines, as far as they are known.
bool RequestReader::parse_head(std::string_view head, std::span<const std::size_t> line_ends) {
  std::size_t begin = 0;
  const auto next_line = [&] {
    const std::size_t end = line_ends.empty() ? head.find('\n', begin) : line_ends.front();
    if (!line_ends.empty()) line_ends = line_ends.subspan(1);
    const std::string_view line = head.substr(begin, end - 1 - begin);
    begin = end + 1;
    return line;
  };
  if (head.starts_with("\r\n")) next_line();
  // All lines but the request line and the empty line are fields.
  const std::size_t fields = line_ends.size() > 2 ? line_ends.size() - 2 : kTypicalFieldCount;
  request_->headers.assign_text(head, fields);
  if (!parse_request_line(next_line())) return false;
  for (std::string_view line = next_line(); !line.empty(); line = next_line()) {
    if (!parse_field(head, line)) return false;
  }
  return check_fields_and_prepare_body();
}

bool RequestReader::parse_request_line(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return reject(400, "malformed request line");
  const std::string_view method = line.substr(0, first);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(method)) return reject(400, "malformed request line");
  if (version == "HTTP/1.0") {
    http_1_0_ = true;
    keep_alive_ = false;
  } else if (version != "HTTP/1.1") {
    const bool other = version.size() == 8 && version.starts_with("HTTP/");
    return reject(other ? 505 : 400, "unsupported HTTP version; this server supports HTTP/1.1");
  }
  request_->method = method;
  return parse_target(method, line.substr(first + 1, last - first - 1));
}

bool RequestReader::parse_target(std::string_view method, std::string_view target) {
  if (!is_target(target)) return reject(400, "the request target has invalid characters");
  std::optional<std::string_view> rest = strip_prefix(target, "http://");
  if (!rest) rest = strip_prefix(target, "https://");
  if (rest) {
    absolute_target_ = true;
    const std::size_t path = rest->find_first_of("/?");
    authority_ = rest->substr(0, path);
    target = path == std::string_view::npos ? "/" : rest->substr(path);
  }
  if (!target.starts_with('/') && !(method == "OPTIONS" && target == "*")) {
    return reject(400, "the request target is not a path");
  }
  request_->target = target;
  return true;
}

bool RequestReader::parse_field(std::string_view head, std::string_view line) {
  const std::optional<FieldLine> field = split_field_line(line);
  if (!field) return reject(400, "a header line is not `Name: value`");
  if (!is_field_value(field->value)) return reject(400, "the value of a header has control characters");
  if (!apply_known_field(head, field->name, field->value)) return false;
  request_->headers.add_parsed(head, field->name, field->value);
  return true;
}

// Interprets the fields that determine where the request ends and whether the connection stays open after it.
// Returns false if the request is rejected.
bool RequestReader::apply_known_field(std::string_view head, std::string_view name, std::string_view value) {
  switch (name.size()) {
    case 4:
      if (equals_ignore_case(name, "host")) {
        ++host_count_;
        if (!absolute_target_) authority_ = value;
      }
      return true;
    case 6:
      if (!equals_ignore_case(name, "expect") || http_1_0_) return true;
      if (!equals_ignore_case(value, "100-continue"))
        return reject(417, "unsupported Expect; only 100-continue is supported");
      expects_continue_ = true;
      return true;
    case 10:
      if (equals_ignore_case(name, "connection")) parse_connection(value);
      return true;
    case 14: return !equals_ignore_case(name, "content-length") || parse_content_length(head, value);
    case 16:
      if (!equals_ignore_case(name, "content-encoding") || value.empty() ||
          equals_ignore_case(value, "identity"))
        return true;
      return reject(415, "Content-Encoding is not supported; send the body unencoded");
    case 17: return !equals_ignore_case(name, "transfer-encoding") || parse_transfer_encoding(value);
    default: return true;
  }
}

bool RequestReader::parse_content_length(std::string_view head, std::string_view value) {
  if (content_length_) return reject(400, "more than one Content-Length");
  std::size_t length = 0;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), length);
  const bool digits = !value.empty() && end == value.data() + value.size();
  if (digits && problem == std::errc::result_out_of_range) {
    length = std::numeric_limits<std::size_t>::max();
  } else if (!digits || problem != std::errc()) {
    return reject(400, "Content-Length is not a number");
  }
  content_length_ = length;
  content_length_at_ = static_cast<std::size_t>(value.data() - head.data());
  content_length_digits_ = value.size();
  return true;
}

bool RequestReader::parse_transfer_encoding(std::string_view value) {
  if (chunked_) return reject(400, "more than one Transfer-Encoding");
  if (http_1_0_) return reject(400, "Transfer-Encoding is not allowed in HTTP/1.0");
  if (!equals_ignore_case(value, "chunked"))
    return reject(501, "unsupported Transfer-Encoding; only chunked is supported");
  chunked_ = true;
  return true;
}

void RequestReader::parse_connection(std::string_view value) {
  for_each_list_element(value, [this](std::string_view option) {
    if (equals_ignore_case(option, "close")) keep_alive_ = false;
    if (http_1_0_ && equals_ignore_case(option, "keep-alive")) keep_alive_ = true;
  });
}

bool RequestReader::check_fields_and_prepare_body() {
  if (host_count_ > 1 || (host_count_ == 0 && !http_1_0_))
    return reject(400, "the request must have exactly one Host header");
  if (chunked_ && content_length_)
    return reject(400, "the request has both Content-Length and Transfer-Encoding");
  if (content_length_.value_or(0) > max_body_bytes_) {
    return reject(413, "the body is over max_body_bytes (" + std::to_string(max_body_bytes_) + ")");
  }
  if (chunked_) chunk_decoder_ = std::make_unique<ChunkDecoder>(max_body_bytes_, max_header_bytes_);
  expected_body_bytes_ = content_length_.value_or(0);
  return true;
}

// ---- body ------------------------------------------------------------------------------------------------

std::size_t RequestReader::feed_body(std::string_view bytes) {
  if (chunk_decoder_) return feed_chunks(bytes);
  const std::string_view available = bytes.substr(0, expected_body_bytes_ - body_.size());
  if (available.size() == expected_body_bytes_) {  // the common case: the whole body is available
    if (!available.empty()) request_->body = Bytes::copy_of(available);
    state_ = State::complete;
    return available.size();
  }
  if (body_.empty()) detail::reserve_buffer(body_, std::min(expected_body_bytes_, kMaxBodyReserveBytes));
  body_ += available;
  if (body_.size() == expected_body_bytes_) state_ = State::complete;
  return available.size();
}

std::size_t RequestReader::feed_chunks(std::string_view bytes) {
  const std::size_t consumed = chunk_decoder_->feed(bytes, body_);
  switch (chunk_decoder_->state()) {
    case ChunkDecoder::State::incomplete: break;
    case ChunkDecoder::State::complete: state_ = State::complete; break;
    case ChunkDecoder::State::malformed: reject(400, "the chunks of the body are malformed"); break;
    case ChunkDecoder::State::body_too_large:
      reject(413, "the body is over max_body_bytes (" + std::to_string(max_body_bytes_) + ")");
      break;
    case ChunkDecoder::State::trailers_too_large:
      reject(431, "the trailers are over max_header_bytes (" + std::to_string(max_header_bytes_) + ")");
      break;
  }
  return consumed;
}

std::unique_ptr<Request> RequestReader::extract_request() {
  if (!body_.empty()) request_->body = Bytes::adopt(std::exchange(body_, std::string()));
  std::unique_ptr<Request> request = std::move(request_);
  if (head_capacity() > kMaxReusedHeadBytes) release_memory();
  state_ = State::idle;
  return request;
}

void RequestReader::reclaim_head(std::unique_ptr<Request> request, std::uint64_t head_number) noexcept {
  const bool current = state_ == State::idle && !request_ && head_number == head_number_;
  const bool repeatable =
      !chunked_ && !expects_continue_ && !http_1_0_ && content_length_digits_ <= kMaxRepeatedLengthDigits;
  if (!current || !repeatable || capacity_of_head(*request) > kMaxReusedHeadBytes) return;
  request->body = Bytes();
  request->principal = nullptr;
  request_ = std::move(request);
  keeps_head_ = true;
}

void RequestReader::release_memory() {
  release_spare_memory();
  ++head_number_;  // reclaim_head() must not keep the head, because the facts about it are freed
  reset_string(head_);
  detail::release_buffer(body_);
  reset_string(authority_);
  chunk_decoder_.reset();
}

}  // namespace fairlead::http
