#include "http/chunk_decoder.hpp"

#include <algorithm>
#include <charconv>

#include "http/syntax.hpp"

namespace fairlead::http {

namespace {

constexpr std::size_t kSizeDigits = 16;  // of a chunk's size; more cannot be meant
constexpr std::size_t kSizeLine = 1024;  // with its extensions, which nobody uses

}  // namespace

std::size_t ChunkDecoder::feed(std::string_view bytes, std::string& body) {
  std::size_t done = 0;
  while (state_ == State::more && done < bytes.size()) {
    const std::string_view rest = bytes.substr(done);
    done += at_ == At::data ? take_data(rest, body) : take_line(rest, body);
  }
  return done;
}

std::size_t ChunkDecoder::take_data(std::string_view bytes, std::string& body) {
  const std::size_t n = std::min(left_, bytes.size());
  body.append(bytes.substr(0, n));
  left_ -= n;
  if (left_ == 0) at_ = At::data_end;
  return n;
}

std::size_t ChunkDecoder::take_line(std::string_view bytes, const std::string& body) {
  const std::size_t newline = bytes.find('\n');
  const std::string_view piece = bytes.substr(0, newline);
  const std::size_t limit = at_ == At::trailer ? max_line_bytes_ : kSizeLine;
  if (line_.size() + piece.size() > limit) {
    state_ = at_ == At::trailer ? State::trailers_too_large : State::malformed;
    return bytes.size();
  }
  if (newline == std::string_view::npos) {
    line_ += piece;
    return bytes.size();
  }
  if (line_.empty()) {
    end_of_line(piece, body);
  } else {
    line_ += piece;
    end_of_line(line_, body);
    line_.clear();
  }
  return newline + 1;
}

// `line` ends where its newline was.
void ChunkDecoder::end_of_line(std::string_view line, const std::string& body) {
  if (!line.ends_with('\r')) {
    state_ = State::malformed;
    return;
  }
  line.remove_suffix(1);
  switch (at_) {
    case At::size: return size_line(line, body);
    case At::data_end:
      at_ = At::size;
      if (!line.empty()) state_ = State::malformed;
      return;
    case At::trailer: {
      if (line.empty()) {
        state_ = State::complete;
        return;
      }
      // Trailers are looked at and forgotten: nothing in MCP comes in one.
      trailers_ += line.size() + 2;
      const std::size_t colon = line.find(':');
      if (trailers_ > max_line_bytes_) {
        state_ = State::trailers_too_large;
      } else if (colon == std::string_view::npos || !is_token(line.substr(0, colon)) ||
                 !is_field_value(line.substr(colon + 1))) {
        state_ = State::malformed;
      }
      return;
    }
    case At::data: return;
  }
}

void ChunkDecoder::size_line(std::string_view line, const std::string& body) {
  std::size_t size = 0;
  const auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), size, 16);
  const auto digits = static_cast<std::size_t>(end - line.data());
  const std::string_view extension = line.substr(digits);
  if (problem == std::errc::result_out_of_range && digits > 0) {
    state_ = State::too_large;
  } else if (problem != std::errc() || digits > kSizeDigits || !is_field_value(extension) ||
             (!extension.empty() && extension.front() != ';')) {
    state_ = State::malformed;
  } else if (size > max_body_bytes_ - body.size()) {
    state_ = State::too_large;
  } else {
    left_ = size;
    at_ = size == 0 ? At::trailer : At::data;
  }
}

}  // namespace fairlead::http
