// Uri: the address of a connection or a listener.
//
//   stdio:               the stdin and stdout of this process
//   stdio:CMD ARG ARG    a child process, started without a shell; white space separates the words, %20 is a
//                        space inside a word
//   tcp:HOST:PORT
//   unix:/PATH
//   http://…  https://…  ws://…  wss://…
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
  std::vector<std::string> argv;  // stdio: command and arguments; empty: this process's stdio
  std::string host;               // tcp
  std::uint16_t port = 0;         // tcp
  std::string path;               // unix
  std::string text;               // the text that was parsed

  // Fails with `validation` if `text` has none of the forms above.
  static Result<Uri> parse(std::string_view text);
};

// Decodes %XX. Fails with `validation` if a % is not followed by two hexadecimal digits, and for %00.
Result<std::string> percent_decode(std::string_view text);
// Encodes white space and %, so that the word can be part of a stdio: address.
std::string percent_encode_word(std::string_view word);

}  // namespace fairlead
