// ResponseParser: parses the response to one HTTP request incrementally. It rejects everything that two
// programs could interpret differently. It accepts a missing reason phrase, and a Content-Length that is
// repeated with the same value. Does no I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/base/limits.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/http/headers.hpp"
#include "http/chunk_decoder.hpp"

namespace fairlead::http {

// Maximum number of interim responses (1xx) before the final response. Errors call it max_interim_responses.
inline constexpr int kMaxInterimResponses = 16;

// Maximum size that a Content-Length or the header of a chunk may announce. Errors call it
// max_announced_bytes. The parser does not limit the size of the whole body, because an event stream has no
// end; the reader of the body does.
inline constexpr std::uint64_t kMaxAnnouncedBytes = Limits::kMaxFrameCeiling;

struct ResponseHead {
  int status = 0;
  std::string reason;
  Headers headers;
};

class ResponseParser {
 public:
  // `no_body`: the response has no body, because the request is HEAD or CONNECT.
  explicit ResponseParser(bool no_body = false) : no_body_(no_body) {}

  // Parses `bytes`, appends the data of the body to `body`, and buffers an incomplete head. Skips interim
  // responses (1xx except 101). Fails with `parse` if the input is not HTTP or has more than
  // kMaxInterimResponses interim responses, and with `frame_too_large` if the head or the trailers have more
  // than 64 KiB, or if a size over kMaxAnnouncedBytes is announced. REQUIRES: no earlier call has failed.
  Result<void> feed(std::string_view bytes, std::string& body);
  // Called when the server has closed the connection. Completes a response whose body ends with the
  // connection. Fails with `closed` if the response is incomplete.
  Result<void> on_end_of_input();

  bool started() const noexcept { return started_; }                    // at least one byte has been fed
  bool has_head() const noexcept { return state_ != State::head; }      // the head is complete
  bool done() const noexcept { return state_ == State::done; }          // the response is complete
  const ResponseHead& head() const noexcept { return response_head_; }  // REQUIRES: has_head()
  // Returns whether the connection can be reused for another request. REQUIRES: done().
  bool keep_alive() const noexcept { return keep_alive_ && rest_.empty(); }
  // Moves the bytes after the end of the response to the caller. REQUIRES: done().
  std::string extract_rest() { return std::move(rest_); }

 private:
  enum class State : std::uint8_t { head, sized_body, chunked_body, body_until_end, done };

  // Each returns how many of `bytes` belong to the part of the response that it parses.
  Result<std::size_t> feed_head(std::string_view bytes);
  std::size_t feed_sized_body(std::string_view bytes, std::string& body);
  Result<std::size_t> feed_chunks(std::string_view bytes, std::string& body);

  Result<void> parse_head(std::string_view head);
  Result<void> parse_status_line(std::string_view line);
  // `line` is a part of `head`.
  Result<void> parse_field(std::string_view head, std::string_view line);
  Result<void> apply_known_field(std::string_view name, std::string_view value);
  Result<void> parse_content_length(std::string_view value);
  Result<void> parse_transfer_encoding(std::string_view value);
  void parse_connection(std::string_view value);
  // Checks the fields that must agree with each other, and determines how the body is delimited.
  Result<void> prepare_body();
  Result<void> skip_interim_response();

  bool no_body_;
  bool started_ = false;
  State state_ = State::head;
  int interim_count_ = 0;
  ResponseHead response_head_;
  std::string head_;         // the received part of an incomplete head
  std::size_t scanned_ = 0;  // offset in head_ of the first line without an end
  std::uint64_t body_bytes_left_ = 0;
  std::optional<ChunkDecoder> chunk_decoder_;
  std::string rest_;  // the bytes after the end of the response
  // Facts from the head.
  std::optional<std::uint64_t> content_length_;
  bool chunked_ = false;
  bool http_1_0_ = false;
  bool keep_alive_ = true;
};

}  // namespace fairlead::http
