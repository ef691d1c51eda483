// Serializes the head of a response of the HTTP server.
#pragma once

#include <array>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include "fairlead/http/server.hpp"

namespace fairlead::http {

// Returns the standard text for a status, such as "Not Found" for 404.
std::string_view reason_phrase(int status) noexcept;

// Formats the Date field, "Date: Tue, 15 Nov 1994 08:12:31 GMT\r\n", at most once per second.
class DateField {
 public:
  std::string_view now();

 private:
  std::time_t second_ = -1;
  std::string text_;
};

// How a response is delimited and whether the connection stays open after it. append_head() derives further
// header fields from it, in addition to the fields of the Response.
struct ResponseFraming {
  enum class Body : std::uint8_t { none, sized, chunked, until_close };
  Body body = Body::sized;
  std::size_t content_length = 0;  // for Body::sized
  bool http_1_0 = false;           // the request has HTTP version 1.0
  bool keep_alive = true;
  bool upgrade = false;     // the connection continues with another protocol
  std::string_view origin;  // the allowed origin for the CORS headers; empty: no CORS headers
};

// Returns whether a response with this status has a body, and thus a Content-Length.
constexpr bool has_content_length(int status) noexcept {
  return status >= 200 && status != 204 && status != 304;
}

// A head with the fields Date, Content-Type and Content-Length, for a connection that stays open. Most
// responses have the same head except for the length, so the text before the length is kept.
class PlainHead {
 public:
  // Returns the head up to the length. Valid until the next call. REQUIRES: has_content_length(status), and
  // `content_type` has no control characters.
  std::string_view up_to_length(int status, std::string_view content_type, std::string_view date);

  // The rest of the head: the length and the empty line.
  class Length {
   public:
    explicit Length(std::size_t body_bytes) noexcept;
    std::string_view view() const noexcept { return {text_.data(), end_}; }

   private:
    std::array<char, 24> text_;
    char* end_;
  };

 private:
  int status_ = 0;
  std::string content_type_;
  std::string date_;
  std::string text_;
};

// Appends the status line, the fields and the empty line to `out`. `date` is a complete Date field. Omits the
// fields of `response` that the server sets itself, and replaces control characters in values with spaces.
void append_head(std::string& out, const Response& response, const ResponseFraming& framing,
                 std::string_view date);

// Returns a response by which the server itself rejects a request. Its body is a JSON-RPC error without an
// id.
Response refusal_response(int status, std::string_view message);
// Returns the error message for a client whose connection exceeds max_connections.
std::string surplus_message(const ServerOptions& options);

}  // namespace fairlead::http
