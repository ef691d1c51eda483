// ChunkDecoder: takes a chunked body apart, strictly. Sans I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fairlead::http {

class ChunkDecoder {
 public:
  enum class State : std::uint8_t { more, complete, malformed, too_large, trailers_too_large };

  ChunkDecoder(std::size_t max_body_bytes, std::size_t max_trailer_bytes)
      : max_body_bytes_(max_body_bytes), max_line_bytes_(max_trailer_bytes) {}

  // Appends data to `body`; returns how many of `bytes` were taken.
  std::size_t feed(std::string_view bytes, std::string& body);
  State state() const noexcept { return state_; }
  // Bytes of memory that an incomplete line occupies.
  std::size_t line_capacity() const noexcept { return line_.capacity(); }

 private:
  enum class At : std::uint8_t { size, data, data_end, trailer };

  std::size_t take_data(std::string_view bytes, std::string& body);
  std::size_t take_line(std::string_view bytes, const std::string& body);
  void end_of_line(std::string_view line, const std::string& body);
  void size_line(std::string_view line, const std::string& body);

  std::size_t max_body_bytes_;
  std::size_t max_line_bytes_;
  State state_ = State::more;
  At at_ = At::size;
  std::size_t left_ = 0;      // of the chunk under way
  std::size_t trailers_ = 0;  // bytes of trailers so far
  std::string line_;          // the beginning of a line whose end has not come yet
};

}  // namespace fairlead::http
