// Proxies: which requests go through a proxy, and through which one. Read from the environment as other
// programs read it.
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
  Proxies() = default;  // none
  // HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY; the lower-case spelling wins. `variable` gives a
  // variable's value, or an empty string. Kind validation for a proxy that is no http: or https: URL.
  static Result<Proxies> from(const std::function<std::string(const char* name)>& variable);
  static Result<Proxies> from_environment();

  // The proxy for this URL. Loopback addresses are never asked for through one.
  const Url* for_url(const Url& url) const;

 private:
  bool is_exempt(const Url& url) const;

  std::optional<Url> plain_;
  std::optional<Url> secure_;
  std::vector<std::string> exempt_;  // NO_PROXY, in lower case
};

}  // namespace fairlead::http
