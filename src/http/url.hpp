// Url: where an HTTP request goes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"

namespace fairlead::http {

struct Url {
  std::string scheme;  // "http", "https", "ws", "wss"
  std::string user;    // "name:password" as written, with its escapes; empty when there is none
  std::string host;    // in lower case, without brackets
  std::uint16_t port = 0;
  std::string target = "/";  // path and query

  // Kind validation for anything else than scheme://[user@]host[:port][/path][?query][#ignored].
  static Result<Url> parse(std::string_view text);
  // A reference as it stands in an answer of this URL: absolute or relative.
  Result<Url> resolve(std::string_view reference) const;

  bool secure() const noexcept { return scheme == "https" || scheme == "wss"; }
  bool same_origin(const Url& other) const noexcept {
    return scheme == other.scheme && host == other.host && port == other.port;
  }
  std::string host_and_port() const;  // "[::1]:80": always with the port
  std::string host_field() const;     // what the Host header says: without a port that goes without saying
  std::string origin() const;         // "http://localhost:8080"
  std::string text() const;           // the whole, without the user
  std::string shown() const;          // for people: without the query too, where keys may be
};

}  // namespace fairlead::http
