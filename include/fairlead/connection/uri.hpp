// Uri: where a connection goes to, or where a listener listens.
//
//   stdio:               our own stdin and stdout
//   stdio:CMD ARG ARG    a child process; white space separates, %20 stands for a space inside a word, no
//   shell tcp:HOST:PORT        unix:/PATH http://… https://… ws://… wss://…
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/result.hpp"

namespace fairlead {

struct Uri {
  enum class Scheme : std::uint8_t { stdio, tcp, unix_socket, http, https, ws, wss };

  Scheme scheme = Scheme::stdio;
  std::vector<std::string> words;  // stdio: command and arguments; empty for our own streams
  std::string host;                // tcp
  std::uint16_t port = 0;          // tcp
  std::string path;                // unix
  std::string text;                // as it was written

  // Kind validation when it is not one of the forms above.
  static Result<Uri> parse(std::string_view text);
};

// Decodes %XX. Kind validation for a % that is not followed by two hexadecimal digits.
Result<std::string> percent_decode(std::string_view text);
// Encodes white space and %, so that the word survives in a stdio: address.
std::string percent_encode_word(std::string_view word);

}  // namespace fairlead
