// ChunkDecoder: decodes the chunked transfer coding of a body. It rejects everything that deviates from RFC
// 9112. Does no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fairlead::http {

class ChunkDecoder {
 public:
  enum class State : std::uint8_t { incomplete, complete, malformed, body_too_large, trailers_too_large };

  // What max_body_bytes limits: the size of the whole body, or that of each chunk, for a body without an end.
  enum class SizeLimit : std::uint8_t { whole_body, per_chunk };

  ChunkDecoder(std::size_t max_body_bytes, std::size_t max_trailer_bytes,
               SizeLimit limit = SizeLimit::whole_body)
      : max_body_bytes_(max_body_bytes), max_trailer_bytes_(max_trailer_bytes), limit_(limit) {}

  // Decodes `bytes` and appends the data of the chunks to `body`. Returns how many bytes of `bytes` belong to
  // the chunked body; the rest follows it.
  std::size_t feed(std::string_view bytes, std::string& body);
  State state() const noexcept { return state_; }
  // Returns the size in bytes of the memory that is allocated for an incomplete line.
  std::size_t line_capacity() const noexcept { return line_.capacity(); }

 private:
  // What the next input byte belongs to: the line with the size of a chunk, the data of the chunk, the line
  // end after the data, or the trailers after the last chunk.
  enum class Position : std::uint8_t { size, data, data_end, trailer };

  std::size_t decode_data(std::string_view bytes, std::string& body);
  std::size_t decode_line(std::string_view bytes, const std::string& body);
  void process_line(std::string_view line, const std::string& body);
  void process_size_line(std::string_view line, const std::string& body);

  std::size_t max_body_bytes_;
  std::size_t max_trailer_bytes_;
  SizeLimit limit_;
  State state_ = State::incomplete;
  Position position_ = Position::size;
  std::size_t chunk_bytes_left_ = 0;  // data of the current chunk that has not arrived
  std::size_t trailer_bytes_ = 0;     // size of the trailers received so far
  std::string line_;                  // the received part of an incomplete line
};

}  // namespace fairlead::http
