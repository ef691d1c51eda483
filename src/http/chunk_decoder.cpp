#include "http/chunk_decoder.hpp"

#include <algorithm>
#include <charconv>

#include "http/syntax.hpp"

namespace fairlead::http {

namespace {

constexpr std::size_t kMaxSizeDigits = 16;       // hexadecimal digits of the size of a chunk
constexpr std::size_t kMaxSizeLineBytes = 1024;  // size of the line before a chunk, with chunk extensions

}  // namespace

std::size_t ChunkDecoder::feed(std::string_view bytes, std::string& body) {
  std::size_t consumed = 0;
  while (state_ == State::incomplete && consumed < bytes.size()) {
    const std::string_view rest = bytes.substr(consumed);
    consumed += position_ == Position::data ? decode_data(rest, body) : decode_line(rest, body);
  }
  return consumed;
}

std::size_t ChunkDecoder::decode_data(std::string_view bytes, std::string& body) {
  const std::size_t n = std::min(chunk_bytes_left_, bytes.size());
  body.append(bytes.substr(0, n));
  chunk_bytes_left_ -= n;
  if (chunk_bytes_left_ == 0) position_ = Position::data_end;
  return n;
}

std::size_t ChunkDecoder::decode_line(std::string_view bytes, const std::string& body) {
  const std::size_t newline = bytes.find('\n');
  const std::string_view piece = bytes.substr(0, newline);
  const std::size_t limit = position_ == Position::trailer ? max_trailer_bytes_ : kMaxSizeLineBytes;
  if (line_.size() + piece.size() > limit) {
    state_ = position_ == Position::trailer ? State::trailers_too_large : State::malformed;
    return bytes.size();
  }
  if (newline == std::string_view::npos) {
    line_ += piece;
    return bytes.size();
  }
  if (line_.empty()) {
    process_line(piece, body);
  } else {
    line_ += piece;
    process_line(line_, body);
    line_.clear();
  }
  return newline + 1;
}

// Processes one complete line. `line` includes the CR but not the LF.
void ChunkDecoder::process_line(std::string_view line, const std::string& body) {
  if (!line.ends_with('\r')) {
    state_ = State::malformed;
    return;
  }
  line.remove_suffix(1);
  switch (position_) {
    case Position::size: return process_size_line(line, body);
    case Position::data_end:
      position_ = Position::size;
      if (!line.empty()) state_ = State::malformed;
      return;
    case Position::trailer: {
      if (line.empty()) {
        state_ = State::complete;
        return;
      }
      // The syntax of trailers is checked. Their contents are discarded, because MCP does not use them.
      trailer_bytes_ += line.size() + 2;
      const std::size_t colon = line.find(':');
      if (trailer_bytes_ > max_trailer_bytes_) {
        state_ = State::trailers_too_large;
      } else if (colon == std::string_view::npos || !is_token(line.substr(0, colon)) ||
                 !is_field_value(line.substr(colon + 1))) {
        state_ = State::malformed;
      }
      return;
    }
    case Position::data: return;
  }
}

void ChunkDecoder::process_size_line(std::string_view line, const std::string& body) {
  std::size_t size = 0;
  const auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), size, 16);
  const auto digits = static_cast<std::size_t>(end - line.data());
  const std::string_view extension = line.substr(digits);
  if (problem == std::errc::result_out_of_range && digits > 0) {
    state_ = State::body_too_large;
  } else if (problem != std::errc() || digits > kMaxSizeDigits || !is_field_value(extension) ||
             (!extension.empty() && extension.front() != ';')) {
    state_ = State::malformed;
  } else if (size > max_body_bytes_ - (limit_ == SizeLimit::whole_body ? body.size() : 0)) {
    state_ = State::body_too_large;
  } else {
    chunk_bytes_left_ = size;
    position_ = size == 0 ? Position::trailer : Position::data;
  }
}

}  // namespace fairlead::http
