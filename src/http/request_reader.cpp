#include "http/request_reader.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/reset_string.hpp"
#include "http/syntax.hpp"

namespace fairlead::http {

namespace {

constexpr std::size_t kUsualFields = 12;
constexpr std::size_t kKeptHead = 4u << 10;    // memory of a head that is used for the next one
constexpr std::size_t kEagerBody = 64u << 10;  // a body grows with what has come, not with what was announced

bool is_target(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

// What is left of `text` behind `prefix`, whose letters are lower case.
std::optional<std::string_view> behind(std::string_view text, std::string_view prefix) noexcept {
  if (text.size() < prefix.size() || !same_name(text.substr(0, prefix.size()), prefix)) return std::nullopt;
  return text.substr(prefix.size());
}

}  // namespace

std::size_t RequestReader::feed(std::string_view bytes) {
  const std::size_t head = feed_until_body(bytes);
  return state_ == State::body ? head + feed_body(bytes.substr(head)) : head;
}

std::size_t RequestReader::feed_until_body(std::string_view bytes) {
  if (state_ == State::idle && !bytes.empty()) begin();
  return state_ == State::head ? feed_head(bytes) : 0;
}

void RequestReader::begin() {
  state_ = State::head;
  head_.clear();
  scanned_ = 0;
  request_ = Request();
  authority_.clear();
  body_.clear();
  body_size_ = 0;
  chunks_.reset();
  length_.reset();
  hosts_ = 0;
  chunked_ = absolute_ = http_1_0_ = wants_continue_ = false;
  keep_alive_ = true;
}

bool RequestReader::refuse(int status, std::string message) {
  state_ = State::refused;
  refusal_ = Refusal{status, std::move(message)};
  reset_string(head_);
  reset_string(body_);
  return false;
}

// ---- the head --------------------------------------------------------------------------------------------

// Looks for the end of the head, line by line, and only then at what it says. Each byte is looked at once, in
// however many pieces it comes.
std::size_t RequestReader::feed_head(std::string_view bytes) {
  const bool in_pieces = !head_.empty();
  const std::size_t had = head_.size();
  if (in_pieces) head_ += bytes;
  const std::string_view seen = in_pieces ? std::string_view(head_) : bytes;
  std::size_t line = scanned_;
  while (true) {
    const std::size_t newline = seen.find('\n', std::max(line, had));
    if (std::min(newline, seen.size()) >= max_header_bytes_) {
      refuse(431,
             "the head of the request is over max_header_bytes (" + std::to_string(max_header_bytes_) + ")");
      return bytes.size();
    }
    if (newline == std::string_view::npos) break;
    if (newline == line || seen[newline - 1] != '\r') {
      refuse(400, "a line of the head does not end with CR LF");
      return bytes.size();
    }
    const bool empty = newline == line + 1;
    const bool first = line == 0;
    line = newline + 1;
    if (!empty || first) continue;  // an empty line before a request is forgiven, once
    const std::string head(in_pieces ? std::move(head_) : std::string());
    const std::string_view whole = in_pieces ? std::string_view(head).substr(0, line) : seen.substr(0, line);
    head_ = std::string();
    if (parse_head(whole)) state_ = State::body;
    return line - had;
  }
  scanned_ = line;
  if (!in_pieces) head_ = bytes;
  return bytes.size();
}

// `head` is whole lines, each of which ends with CR LF; the last one is empty.
bool RequestReader::parse_head(std::string_view head) {
  const auto next_line = [&head] {
    const std::size_t newline = head.find('\n');
    const std::string_view line = head.substr(0, newline - 1);
    head.remove_prefix(newline + 1);
    return line;
  };
  if (head.starts_with("\r\n")) head.remove_prefix(2);
  request_.headers.reserve(kUsualFields, head.size());
  if (!parse_request_line(next_line())) return false;
  for (std::string_view line = next_line(); !line.empty(); line = next_line()) {
    if (!parse_field(line)) return false;
  }
  return check_fields();
}

bool RequestReader::parse_request_line(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return refuse(400, "not a request line");
  const std::string_view method = line.substr(0, first);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(method)) return refuse(400, "not a request line");
  if (version == "HTTP/1.0") {
    http_1_0_ = true;
    keep_alive_ = false;
  } else if (version != "HTTP/1.1") {
    const bool other = version.size() == 8 && version.starts_with("HTTP/");
    return refuse(other ? 505 : 400, "this server speaks HTTP/1.1");
  }
  request_.method = method;
  return parse_target(method, line.substr(first + 1, last - first - 1));
}

bool RequestReader::parse_target(std::string_view method, std::string_view target) {
  if (!is_target(target)) return refuse(400, "the target of the request has characters it may not have");
  std::optional<std::string_view> rest = behind(target, "http://");
  if (!rest) rest = behind(target, "https://");
  if (rest) {
    absolute_ = true;
    const std::size_t path = rest->find_first_of("/?");
    authority_ = rest->substr(0, path);
    target = path == std::string_view::npos ? "/" : rest->substr(path);
  }
  if (!target.starts_with('/') && !(method == "OPTIONS" && target == "*")) {
    return refuse(400, "the target of the request is not a path");
  }
  request_.target = target;
  return true;
}

bool RequestReader::parse_field(std::string_view line) {
  const std::size_t colon = line.find(':');
  // A folded line begins with a blank, which is no token either.
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    return refuse(400, "a line of the head is not `Name: value`");
  }
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = without_blanks(line.substr(colon + 1));
  if (!is_field_value(value)) return refuse(400, "a field has control characters in its value");
  if (!known_field(name, value)) return false;
  request_.headers.add(name, value);
  return true;
}

// The fields that say where a request ends and what becomes of the connection.
bool RequestReader::known_field(std::string_view name, std::string_view value) {
  switch (name.size()) {
    case 4:
      if (same_name(name, "host")) {
        ++hosts_;
        if (!absolute_) authority_ = value;
      }
      return true;
    case 6:
      if (!same_name(name, "expect") || http_1_0_) return true;
      if (!same_name(value, "100-continue")) return refuse(417, "only 100-continue can be expected");
      wants_continue_ = true;
      return true;
    case 10:
      if (same_name(name, "connection")) take_connection(value);
      return true;
    case 14: return !same_name(name, "content-length") || take_length(value);
    case 16:
      if (!same_name(name, "content-encoding") || value.empty() || same_name(value, "identity")) return true;
      return refuse(415, "bodies are taken as they are, without a Content-Encoding");
    case 17: return !same_name(name, "transfer-encoding") || take_coding(value);
    default: return true;
  }
}

bool RequestReader::take_length(std::string_view value) {
  if (length_) return refuse(400, "more than one Content-Length");
  std::size_t length = 0;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), length);
  const bool digits = !value.empty() && end == value.data() + value.size();
  if (digits && problem == std::errc::result_out_of_range) {
    length = std::numeric_limits<std::size_t>::max();
  } else if (!digits || problem != std::errc()) {
    return refuse(400, "Content-Length is not a number");
  }
  length_ = length;
  return true;
}

bool RequestReader::take_coding(std::string_view value) {
  if (chunked_) return refuse(400, "more than one Transfer-Encoding");
  if (http_1_0_) return refuse(400, "HTTP/1.0 has no Transfer-Encoding");
  if (!same_name(value, "chunked")) return refuse(501, "the only Transfer-Encoding here is chunked");
  chunked_ = true;
  return true;
}

void RequestReader::take_connection(std::string_view value) {
  each_list_element(value, [this](std::string_view option) {
    if (same_name(option, "close")) keep_alive_ = false;
    if (http_1_0_ && same_name(option, "keep-alive")) keep_alive_ = true;
  });
}

bool RequestReader::check_fields() {
  if (hosts_ > 1 || (hosts_ == 0 && !http_1_0_)) return refuse(400, "there must be one Host");
  if (chunked_ && length_) return refuse(400, "both Content-Length and Transfer-Encoding");
  if (length_.value_or(0) > max_body_bytes_) {
    return refuse(413, "the body is over max_body_bytes (" + std::to_string(max_body_bytes_) + ")");
  }
  if (chunked_) chunks_.emplace(max_body_bytes_, max_header_bytes_);
  body_size_ = length_.value_or(0);
  return true;
}

// ---- the body --------------------------------------------------------------------------------------------

std::size_t RequestReader::feed_body(std::string_view bytes) {
  if (chunks_) return feed_chunks(bytes);
  const std::string_view here = bytes.substr(0, body_size_ - body_.size());
  if (here.size() == body_size_) {  // whole, and not in pieces: the usual case
    if (!here.empty()) request_.body = Bytes::copy_of(here);
    state_ = State::complete;
    return here.size();
  }
  if (body_.empty()) body_.reserve(std::min(body_size_, kEagerBody));
  body_ += here;
  if (body_.size() == body_size_) state_ = State::complete;
  return here.size();
}

std::size_t RequestReader::feed_chunks(std::string_view bytes) {
  const std::size_t done = chunks_->feed(bytes, body_);
  switch (chunks_->state()) {
    case ChunkDecoder::State::more: break;
    case ChunkDecoder::State::complete: state_ = State::complete; break;
    case ChunkDecoder::State::malformed: refuse(400, "the chunks of the body are malformed"); break;
    case ChunkDecoder::State::too_large:
      refuse(413, "the body is over max_body_bytes (" + std::to_string(max_body_bytes_) + ")");
      break;
    case ChunkDecoder::State::trailers_too_large:
      refuse(431, "the trailers are over max_header_bytes (" + std::to_string(max_header_bytes_) + ")");
      break;
  }
  return done;
}

void RequestReader::lend(std::string memory) {
  if (memory.capacity() <= body_.capacity()) return;
  memory += body_;
  body_ = std::move(memory);
}

void RequestReader::take(Request& into) {
  if (!body_.empty()) request_.body = Bytes::adopt(std::exchange(body_, std::string()));
  // Where `into` has memory of an earlier request, the two are exchanged.
  into = std::move(request_);
  if (head_capacity() > kKeptHead) release();
  state_ = State::idle;
}

void RequestReader::release() {
  const Request freed(std::move(request_));
  reset_string(head_);
  reset_string(body_);
  reset_string(authority_);
  chunks_.reset();
}

}  // namespace fairlead::http
