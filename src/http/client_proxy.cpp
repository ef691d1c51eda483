#include "http/client_proxy.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <span>
#include <utility>

#include "base/comma_list.hpp"
#include "base/lower_case.hpp"
#include "base/uri.hpp"

namespace fairlead::http {

namespace {

// Returns the 4 or 16 bytes of an IP address; empty if `host` is a name.
std::vector<unsigned char> address_bytes(const std::string& host) {
  std::array<unsigned char, 16> bytes{};
  if (::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1) return {bytes.begin(), bytes.begin() + 4};
  if (::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1) return {bytes.begin(), bytes.end()};
  return {};
}

bool is_loopback(const std::string& host) {
  if (host == "localhost" || host.ends_with(".localhost") || host == "::1") return true;
  const std::vector<unsigned char> bytes = address_bytes(host);
  return bytes.size() == 4 && bytes[0] == 127;
}

// Returns whether `host` is an IP address in `network`, which is in CIDR notation, such as 10.0.0.0/8.
bool is_in_network(const std::string& host, const std::string& network) {
  const std::size_t slash = network.find('/');
  if (slash == std::string::npos) return false;
  const std::vector<unsigned char> address = address_bytes(host);
  const std::vector<unsigned char> base = address_bytes(network.substr(0, slash));
  unsigned bits = 0;
  const char* const end = network.data() + network.size();
  if (std::from_chars(network.data() + slash + 1, end, bits).ptr != end) return false;
  if (address.empty() || address.size() != base.size() || bits > address.size() * 8) return false;
  for (std::size_t i = 0; i < bits; ++i) {
    const unsigned mask = 0x80u >> i % 8;
    if ((address[i / 8] & mask) != (base[i / 8] & mask)) return false;
  }
  return true;
}

// Returns whether an entry of NO_PROXY matches `url`. "example.com" matches the domain and its subdomains,
// ".example.com" matches only the subdomains.
bool matches_no_proxy(const Url& url, const std::string& entry) {
  if (entry == "*" || is_in_network(url.host, entry)) return true;
  const Result<HostAndPort> parts = split_host_and_port(entry);
  if (!parts) return url.host == entry;  // an IPv6 address without brackets
  if (parts->port && *parts->port != url.port) return false;
  std::string domain(parts->host);
  if (domain.starts_with("*.")) domain.erase(0, 1);
  if (domain.starts_with('.')) return url.host.ends_with(domain);
  return url.host == domain || url.host.ends_with("." + domain);
}

// Splits a list at commas, spaces and tabs. Returns the elements in lower case.
std::vector<std::string> split_list(const std::string& text) {
  std::string list = lower_case(text);
  std::ranges::replace_if(
      list, [](char c) { return c == ' ' || c == '\t'; }, ',');
  std::vector<std::string> elements;
  for_each_list_element(list, [&](std::string_view element) { elements.emplace_back(element); });
  return elements;
}

// Parses the URL of a proxy; the scheme defaults to http. Returns nullopt if `value` is empty.
Result<std::optional<Url>> parse_proxy(const std::string& value) {
  if (value.empty()) return std::optional<Url>();
  Result<Url> url = Url::parse(value.find("://") == std::string::npos ? "http://" + value : value);
  if (!url) return url.error();
  if (url->scheme != "http" && url->scheme != "https")
    return Error(ErrorKind::validation, "the URL of a proxy must be http: or https:, not " + url->origin());
  return std::optional<Url>(std::move(*url));
}

}  // namespace

Result<Proxies> Proxies::from_variables(const std::function<std::string(const char* name)>& get_variable) {
  const auto first_set = [&](const char* first, const char* second) {
    std::string value = get_variable(first);
    return value.empty() ? get_variable(second) : value;
  };
  const std::string all = first_set("all_proxy", "ALL_PROXY");
  const std::string plain = first_set("http_proxy", "HTTP_PROXY");
  const std::string secure = first_set("https_proxy", "HTTPS_PROXY");
  Proxies proxies;
  Result<std::optional<Url>> http = parse_proxy(plain.empty() ? all : plain);
  Result<std::optional<Url>> https = parse_proxy(secure.empty() ? all : secure);
  if (!http) return http.error();
  if (!https) return https.error();
  proxies.http_proxy_ = std::move(*http);
  proxies.https_proxy_ = std::move(*https);
  proxies.no_proxy_ = split_list(first_set("no_proxy", "NO_PROXY"));
  return proxies;
}

Result<Proxies> Proxies::from_environment() {
  return from_variables([](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value ? value : "");
  });
}

const Url* Proxies::for_url(const Url& url) const {
  const std::optional<Url>& proxy = url.secure() ? https_proxy_ : http_proxy_;
  return proxy && !is_loopback(url.host) && !is_exempt(url) ? &*proxy : nullptr;
}

bool Proxies::is_exempt(const Url& url) const {
  return std::ranges::any_of(no_proxy_,
                             [&](const std::string& entry) { return matches_no_proxy(url, entry); });
}

}  // namespace fairlead::http
