// Options of the HTTP client.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "fairlead/connection/connect.hpp"
#include "fairlead/http/headers.hpp"

namespace fairlead::http {

struct ClientOptions : fairlead::ConnectOptions {
  ClientOptions() {}  // NOLINT: not defaulted, see fairlead::ConnectOptions

  Headers headers;                   // sent with every request
  std::vector<std::string> secrets;  // that errors must not show, beside the values of the headers
  // Asked before each request for what to put into Authorization (and DPoP …); and again, with the answer's
  // status and headers, when that was 401 or 403: true means "try once more".
  struct Authorization {
    std::function<Task<Result<Headers>>(std::string method, std::string url)> headers;
    std::function<Task<Result<bool>>(int status, Headers answer)> challenged;
  };
  Authorization authorization;

  bool proxies_from_environment = true;  // HTTP_PROXY, HTTPS_PROXY, NO_PROXY
  bool follow_redirects = false;
  std::string ca_file;               // beside the system's authorities
  bool verify = true;                // of the server's certificate
  std::size_t max_connections = 16;  // idle connections kept per origin
  std::size_t max_exchanges = 1000;  // under way at once, each on a connection of its own; then refused
  std::size_t max_response_bytes = 64u << 20;
  std::chrono::milliseconds idle_connection{60'000};
  std::chrono::milliseconds response_timeout{0};  // to the head of an answer; 0: the call's own deadline
};

}  // namespace fairlead::http
