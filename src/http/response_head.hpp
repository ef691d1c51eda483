// The head of an answer as it goes over the wire.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include "fairlead/http/server.hpp"

namespace fairlead::http {

std::string_view reason_phrase(int status) noexcept;

// "Date: Tue, 15 Nov 1994 08:12:31 GMT\r\n", made once a second.
class DateField {
 public:
  std::string_view now();

 private:
  std::time_t second_ = -1;
  std::string text_;
};

struct HeadFraming {
  enum class Body : std::uint8_t { none, sized, chunked, until_close };
  Body body = Body::sized;
  std::size_t size = 0;  // sized
  bool http_1_0 = false;
  bool keep_alive = true;
  bool upgrade = false;
  std::string_view origin;  // of a page that may see the answer; empty: none
};

// Appends status line, fields and the empty line. Fields that are the server's own business are left out of
// what the handler gave; control characters in values become blanks.
void write_head(std::string& out, const Response& response, const HeadFraming& framing,
                std::string_view date);

// A refusal by the server itself: an error object without an id.
Response refusal_response(int status, std::string_view message);
// What a client is told that is one too many.
std::string surplus_message(const ServerOptions& options);

}  // namespace fairlead::http
