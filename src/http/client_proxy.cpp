#include "http/client_proxy.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <span>
#include <utility>

#include "base/comma_list.hpp"
#include "base/uri.hpp"

namespace fairlead::http {

namespace {

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// The bytes of a numeric address: 4 or 16; empty when it is a name.
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

// 10.0.0.0/8 and the like.
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

// "example.com" is that and what lies below it; ".example.com" only the latter.
bool matches(const Url& url, const std::string& entry) {
  if (entry == "*" || is_in_network(url.host, entry)) return true;
  const Result<HostAndPort> parts = split_host_and_port(entry);
  if (!parts) return url.host == entry;  // an IPv6 address without brackets
  if (parts->port && *parts->port != url.port) return false;
  std::string domain(parts->host);
  if (domain.starts_with("*.")) domain.erase(0, 1);
  if (domain.starts_with('.')) return url.host.ends_with(domain);
  return url.host == domain || url.host.ends_with("." + domain);
}

// Blanks separate too.
std::vector<std::string> split_list(const std::string& text) {
  std::string list = lower(text);
  std::ranges::replace_if(
      list, [](char c) { return c == ' ' || c == '\t'; }, ',');
  std::vector<std::string> all;
  each_list_element(list, [&](std::string_view one) { all.emplace_back(one); });
  return all;
}

Result<std::optional<Url>> proxy_named(const std::string& value) {
  if (value.empty()) return std::optional<Url>();
  Result<Url> url = Url::parse(value.find("://") == std::string::npos ? "http://" + value : value);
  if (!url) return url.error();
  if (url->scheme != "http" && url->scheme != "https")
    return Error(ErrorKind::validation, "a proxy has an http: or https: URL, not " + url->origin());
  return std::optional<Url>(std::move(*url));
}

}  // namespace

Result<Proxies> Proxies::from(const std::function<std::string(const char* name)>& variable) {
  const auto either = [&](const char* first, const char* second) {
    std::string value = variable(first);
    return value.empty() ? variable(second) : value;
  };
  const std::string all = either("all_proxy", "ALL_PROXY");
  const std::string plain = either("http_proxy", "HTTP_PROXY");
  const std::string secure = either("https_proxy", "HTTPS_PROXY");
  Proxies made;
  Result<std::optional<Url>> one = proxy_named(plain.empty() ? all : plain);
  Result<std::optional<Url>> other = proxy_named(secure.empty() ? all : secure);
  if (!one) return one.error();
  if (!other) return other.error();
  made.plain_ = std::move(*one);
  made.secure_ = std::move(*other);
  made.exempt_ = split_list(either("no_proxy", "NO_PROXY"));
  return made;
}

Result<Proxies> Proxies::from_environment() {
  return from([](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value ? value : "");
  });
}

const Url* Proxies::for_url(const Url& url) const {
  const std::optional<Url>& proxy = url.secure() ? secure_ : plain_;
  return proxy && !is_loopback(url.host) && !is_exempt(url) ? &*proxy : nullptr;
}

bool Proxies::is_exempt(const Url& url) const {
  return std::ranges::any_of(exempt_, [&](const std::string& entry) { return matches(url, entry); });
}

}  // namespace fairlead::http
