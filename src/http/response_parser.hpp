// ResponseParser: parses the response to one HTTP request incrementally. It wraps the parser of Boost.Beast.
// Does no I/O.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "fairlead/base/limits.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/http/headers.hpp"

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
  explicit ResponseParser(bool no_body = false);
  ~ResponseParser();

  // Parses `bytes`, appends the data of the body to `body`, and buffers bytes that cannot be parsed yet.
  // Skips interim responses (1xx except 101). Fails with `parse` if the input is not HTTP or has more than
  // kMaxInterimResponses interim responses, and with `frame_too_large` if the head has more than 64 KiB or
  // announces a size over kMaxAnnouncedBytes.
  Result<void> feed(std::string_view bytes, std::string& body);
  // Called when the server has closed the connection. Completes a response whose body ends with the
  // connection. Fails with `closed` if the response is incomplete.
  Result<void> on_end_of_input();

  bool started() const noexcept;   // whether at least one byte has been fed
  bool has_head() const noexcept;  // whether the head is complete
  const ResponseHead& head() const noexcept;
  ResponseHead extract_head();
  bool done() const noexcept;  // whether the response is complete
  // Returns whether the connection can be reused for another request. REQUIRES: done().
  bool keep_alive() const noexcept;
  // Moves the bytes after the end of the response to the caller. REQUIRES: done().
  std::string extract_rest();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fairlead::http
