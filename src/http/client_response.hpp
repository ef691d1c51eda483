// ResponseParser: reads the answer to one HTTP request. Does no I/O: bytes go in as they come; head and body
// come out. The parser itself is Beast's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "fairlead/base/limits.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/http/headers.hpp"

namespace fairlead::http {

// Interim answers (1xx) before one response.
inline constexpr int kMaxInterimResponses = 16;

// The size that a Content-Length or the head of a chunk may announce (max_announced_bytes). How much of a
// body is read is limited by the reader: an event stream has no end.
inline constexpr std::uint64_t kMaxAnnouncedBytes = Limits::kMaxFrameCeiling;

struct ResponseHead {
  int status = 0;
  std::string reason;
  Headers headers;
};

class ResponseParser {
 public:
  // `no_body`: the answer to HEAD or CONNECT.
  explicit ResponseParser(bool no_body = false);
  ~ResponseParser();

  // Takes what can be read of `bytes` and keeps what cannot be yet. Body bytes are appended to `body`.
  // Interim answers (1xx but 101) are passed over, kMaxInterimResponses of them. Kind parse when it is not
  // HTTP, frame_too_large for a head over 64 KiB and for a size over kMaxAnnouncedBytes.
  Result<void> feed(std::string_view bytes, std::string& body);
  // No more will come: the end of a body that nothing else ends, or an error of kind closed.
  Result<void> at_end();

  bool started() const noexcept;  // anything has come at all
  bool has_head() const noexcept;
  const ResponseHead& head() const noexcept;
  ResponseHead take_head();
  bool done() const noexcept;
  // Whether another request may follow on this connection. REQUIRES: done().
  bool keep_alive() const noexcept;
  // What came behind the end of the answer. REQUIRES: done().
  std::string take_rest();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fairlead::http
