#include "http/response_parser.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "http/syntax.hpp"

namespace fairlead::http {

namespace {

constexpr std::size_t kMaxHeadBytes = 64u << 10;
constexpr std::string_view kStart = "HTTP/1.";
constexpr std::size_t kUsualResponseFields = 8;

Error invalid_response(std::string_view why) {
  return Error(ErrorKind::parse, "invalid HTTP response: " + std::string(why));
}

Error head_too_large() {
  return Error(ErrorKind::frame_too_large, "the head of the response is over 64 KiB");
}

Error announced_too_much() {
  return Error(ErrorKind::frame_too_large,
               "the response announces a body or a chunk of more than max_announced_bytes (" +
                   std::to_string(kMaxAnnouncedBytes) + ")");
}

}  // namespace

Result<void> ResponseParser::feed(std::string_view bytes, std::string& body) {
  if (!bytes.empty()) started_ = true;
  while (!bytes.empty() && !done()) {
    Result<std::size_t> consumed = bytes.size();
    switch (state_) {
      case State::head: consumed = feed_head(bytes); break;
      case State::sized_body: consumed = feed_sized_body(bytes, body); break;
      case State::chunked_body: consumed = feed_chunks(bytes, body); break;
      case State::body_until_end: body += bytes; break;
      case State::done: break;
    }
    if (!consumed) return consumed.error();
    bytes.remove_prefix(*consumed);
  }
  rest_ += bytes;
  return {};
}

Result<void> ResponseParser::on_end_of_input() {
  if (state_ == State::body_until_end) state_ = State::done;
  if (done()) return {};
  return Error(ErrorKind::closed, has_head() ? "the connection ended before the end of the response"
                                             : "the connection ended before the response");
}

// ---- head ------------------------------------------------------------------------------------------------

// Searches for the end of the head, line by line, and parses the head when it is complete. Searches each byte
// only once, even if the head arrives in many pieces. The start is checked at once, because a server of
// another protocol may send a greeting and wait.
Result<std::size_t> ResponseParser::feed_head(std::string_view bytes) {
  const std::size_t buffered = head_.size();
  if (buffered > 0) head_ += bytes;
  const std::string_view input = buffered > 0 ? std::string_view(head_) : bytes;
  if (scanned_ == 0 && !input.starts_with(kStart.substr(0, input.size())))
    return invalid_response("it does not start with HTTP/1.0 or HTTP/1.1");
  std::size_t line = scanned_;
  while (true) {
    const std::size_t newline = input.find('\n', std::max(line, buffered));
    if (std::min(newline, input.size()) >= kMaxHeadBytes) return head_too_large();
    if (newline == std::string_view::npos) break;
    if (newline == line || input[newline - 1] != '\r')
      return invalid_response("a line does not end with CR LF");
    const bool empty = newline == line + 1;
    line = newline + 1;
    if (!empty) continue;
    const Result<void> parsed = parse_head(input.substr(0, line));
    if (!parsed) return parsed.error();
    head_.clear();
    scanned_ = 0;
    return line - buffered;
  }
  scanned_ = line;
  if (buffered == 0) head_ = bytes;
  return bytes.size();
}

// `head` consists of complete lines, each ending with CR LF; the last one is empty.
Result<void> ResponseParser::parse_head(std::string_view head) {
  const std::string_view whole = head;
  const auto next_line = [&head] {
    const std::size_t newline = head.find('\n');
    const std::string_view line = head.substr(0, newline - 1);
    head.remove_prefix(newline + 1);
    return line;
  };
  const Result<void> status = parse_status_line(next_line());
  if (!status) return status;
  response_head_.headers.assign_text(whole, kUsualResponseFields);
  for (std::string_view line = next_line(); !line.empty(); line = next_line()) {
    const Result<void> field = parse_field(whole, line);
    if (!field) return field;
  }
  const int code = response_head_.status;
  return code / 100 == 1 && code != 101 ? skip_interim_response() : prepare_body();
}

// `HTTP/1.1 200 OK`. Some servers omit the reason phrase and the space before it.
Result<void> ResponseParser::parse_status_line(std::string_view line) {
  constexpr std::size_t kStatusAt = 9;
  constexpr std::size_t kReasonAt = kStatusAt + 4;
  if (!line.starts_with("HTTP/1.1 ") && !line.starts_with("HTTP/1.0 "))
    return invalid_response("it does not start with HTTP/1.0 or HTTP/1.1");
  http_1_0_ = line[7] == '0';
  keep_alive_ = !http_1_0_;
  const char* const digits = line.data() + kStatusAt;
  const char* const digits_end = line.data() + std::min(line.size(), kReasonAt - 1);
  const auto [end, problem] = std::from_chars(digits, digits_end, response_head_.status);
  const bool valid = problem == std::errc() && end == digits + 3 && *digits != '0' && *digits != '-';
  if (!valid || (line.size() >= kReasonAt && line[kReasonAt - 1] != ' '))
    return invalid_response("the status is not a number of three digits");
  const std::string_view reason = line.size() > kReasonAt ? line.substr(kReasonAt) : std::string_view();
  if (!is_field_value(reason)) return invalid_response("the reason phrase has control characters");
  response_head_.reason = reason;
  return {};
}

Result<void> ResponseParser::parse_field(std::string_view head, std::string_view line) {
  const std::optional<FieldLine> field = split_field_line(line);
  if (!field) return invalid_response("a header line is not `Name: value`");
  if (!is_field_value(field->value)) return invalid_response("the value of a header has control characters");
  const Result<void> applied = apply_known_field(field->name, field->value);
  if (applied) response_head_.headers.add_parsed(head, field->name, field->value);
  return applied;
}

// Interprets the fields that determine where the response ends and whether the connection stays open after
// it.
Result<void> ResponseParser::apply_known_field(std::string_view name, std::string_view value) {
  switch (name.size()) {
    case 10:
      if (equals_ignore_case(name, "connection")) parse_connection(value);
      return {};
    case 14: return equals_ignore_case(name, "content-length") ? parse_content_length(value) : Result<void>();
    case 17:
      return equals_ignore_case(name, "transfer-encoding") ? parse_transfer_encoding(value) : Result<void>();
    default: return {};
  }
}

// A repeated Content-Length with the same value is accepted (RFC 9112, section 6.3).
Result<void> ResponseParser::parse_content_length(std::string_view value) {
  const bool digits = std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
  if (value.empty() || !digits) return invalid_response("Content-Length is not a number");
  std::uint64_t length = 0;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), length);
  if (problem != std::errc() || length > kMaxAnnouncedBytes) return announced_too_much();
  if (content_length_.value_or(length) != length)
    return invalid_response("it has two values of Content-Length");
  content_length_ = length;
  return {};
}

Result<void> ResponseParser::parse_transfer_encoding(std::string_view value) {
  if (http_1_0_) return invalid_response("Transfer-Encoding is not allowed in HTTP/1.0");
  if (chunked_ || !equals_ignore_case(value, "chunked"))
    return invalid_response("unsupported Transfer-Encoding; only chunked is supported");
  chunked_ = true;
  return {};
}

void ResponseParser::parse_connection(std::string_view value) {
  for_each_list_element(value, [this](std::string_view option) {
    if (equals_ignore_case(option, "close")) keep_alive_ = false;
    if (http_1_0_ && equals_ignore_case(option, "keep-alive")) keep_alive_ = true;
  });
}

Result<void> ResponseParser::prepare_body() {
  if (chunked_ && content_length_)
    return invalid_response("it has both Content-Length and Transfer-Encoding");
  const int status = response_head_.status;
  if (no_body_ || status == 101 || status == 204 || status == 304) {
    state_ = State::done;
  } else if (chunked_) {
    chunk_decoder_.emplace(kMaxAnnouncedBytes, kMaxHeadBytes, ChunkDecoder::SizeLimit::per_chunk);
    state_ = State::chunked_body;
  } else if (content_length_) {
    body_bytes_left_ = *content_length_;
    state_ = body_bytes_left_ == 0 ? State::done : State::sized_body;
  } else {
    keep_alive_ = false;
    state_ = State::body_until_end;
  }
  return {};
}

Result<void> ResponseParser::skip_interim_response() {
  if (++interim_count_ > kMaxInterimResponses)
    return Error(ErrorKind::parse, "more than max_interim_responses (" +
                                       std::to_string(kMaxInterimResponses) +
                                       ") interim (1xx) responses arrived before the final response");
  response_head_ = ResponseHead();
  content_length_.reset();
  chunked_ = false;
  return {};
}

// ---- body ------------------------------------------------------------------------------------------------

std::size_t ResponseParser::feed_sized_body(std::string_view bytes, std::string& body) {
  const std::string_view data = bytes.substr(0, body_bytes_left_);
  body += data;
  body_bytes_left_ -= data.size();
  if (body_bytes_left_ == 0) state_ = State::done;
  return data.size();
}

Result<std::size_t> ResponseParser::feed_chunks(std::string_view bytes, std::string& body) {
  const std::size_t consumed = chunk_decoder_->feed(bytes, body);
  switch (chunk_decoder_->state()) {
    case ChunkDecoder::State::incomplete: break;
    case ChunkDecoder::State::complete: state_ = State::done; break;
    case ChunkDecoder::State::malformed: return invalid_response("the chunks of the body are malformed");
    case ChunkDecoder::State::body_too_large: return announced_too_much();
    case ChunkDecoder::State::trailers_too_large:
      return Error(ErrorKind::frame_too_large, "the trailers of the response are over 64 KiB");
  }
  return consumed;
}

}  // namespace fairlead::http
