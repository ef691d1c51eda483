// Proxies: decides by the usual environment variables whether a request is sent through a proxy, and through
// which one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/url.hpp"

namespace fairlead::http {

class Proxies {
 public:
  Proxies() = default;  // no proxies
  // Reads HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY; the lower-case spelling has precedence.
  // `get_variable` returns the value of a variable, or an empty string. Fails with `validation` if the URL of
  // a proxy is neither http: nor https:.
  static Result<Proxies> from_variables(const std::function<std::string(const char* name)>& get_variable);
  static Result<Proxies> from_environment();

  // Returns the proxy for requests to `url`; null if they are sent directly. Requests to loopback addresses
  // never use a proxy.
  const Url* for_url(const Url& url) const;

 private:
  bool is_exempt(const Url& url) const;

  std::optional<Url> http_proxy_;
  std::optional<Url> https_proxy_;
  std::vector<std::string> no_proxy_;  // entries of NO_PROXY, in lower case
};

}  // namespace fairlead::http
