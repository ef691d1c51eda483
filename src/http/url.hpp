// Url: a parsed URL of scheme http, https, ws or wss.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"

namespace fairlead::http {

struct Url {
  std::string scheme;     // "http", "https", "ws", "wss"
  std::string user_info;  // "name:password", percent-encoded as in the URL; empty if absent
  std::string host;       // in lower case, without brackets
  std::uint16_t port = 0;
  std::string target = "/";  // path and query

  // Parses scheme://[user_info@]host[:port][/path][?query][#ignored]. Fails with `validation` for anything
  // else.
  static Result<Url> parse(std::string_view text);
  // Resolves a URL reference, absolute or relative, against this URL. Fails with `validation` if the result
  // is invalid.
  Result<Url> resolve(std::string_view reference) const;

  bool secure() const noexcept { return scheme == "https" || scheme == "wss"; }
  bool same_origin(const Url& other) const noexcept {
    return scheme == other.scheme && host == other.host && port == other.port;
  }
  std::string host_and_port() const;  // "[::1]:80", always with the port
  std::string host_header() const;    // the value of the Host header: without the default port
  std::string origin() const;         // "http://localhost:8080"
  std::string text() const;           // the URL, without the user info
  std::string redacted() const;  // for log and error messages: also without the query, which may contain keys
};

}  // namespace fairlead::http
