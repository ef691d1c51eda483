// http::ClientOptions: options of the HTTP client (http::HttpClient). mcp::ClientOptions are those of the MCP
// client.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "fairlead/connection/connect.hpp"
#include "fairlead/http/headers.hpp"

namespace fairlead::http {

// Of the base class, the HTTP client uses only `limits` and `log`.
struct ClientOptions : fairlead::StreamConnectOptions {
  ClientOptions() {}  // NOLINT: not defaulted, see fairlead::StreamConnectOptions

  Headers headers;                   // sent with every request
  std::vector<std::string> secrets;  // redacted in errors, in addition to the values of the headers
  // Callbacks that provide the credentials of requests. Each may be null.
  struct Authorization {
    // Called before each request. Returns the headers to add to the request: Authorization, DPoP, …
    std::function<Task<Result<Headers>>(std::string method, std::string url)> headers;
    // Called when the server responds with 401 or 403. Returns true if the client shall retry the request
    // once.
    std::function<Task<Result<bool>>(int status, Headers response)> on_challenge;
  };
  Authorization authorization;

  // If not empty, every connection is opened to this Unix socket instead of the host of the URL, without
  // proxies.
  std::string unix_socket;
  bool proxies_from_environment = true;  // use HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY
  bool follow_redirects = false;
  // Connections to addresses that are not of the public internet fail with `connection_failed`, also if a
  // host name resolves to them. Proxies are not used, because a proxy resolves names itself.
  bool public_addresses_only = false;
  std::string ca_file;  // PEM file of certificate authorities to trust in addition to the system's
  bool verify = true;   // verify the server's certificate
  std::size_t max_idle_connections = 256;  // connections that are kept for reuse, per origin
  std::size_t max_exchanges = 1000;        // concurrent requests; further ones fail with `resource_exhausted`
  std::size_t max_response_bytes = 64u << 20;      // body of a response that is not an event stream
  std::chrono::milliseconds idle_timeout{60'000};  // an idle connection is closed after this time
  // Time limit for the head of the response. 0: a call has only its own timeout; other messages have
  // limits.call_timeout.
  std::chrono::milliseconds response_timeout{0};
};

}  // namespace fairlead::http
