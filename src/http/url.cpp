#include "http/url.hpp"

#include <algorithm>

#include "base/lower_case.hpp"
#include "base/uri.hpp"

namespace fairlead::http {

namespace {

std::uint16_t default_port(std::string_view scheme) noexcept {
  return scheme == "https" || scheme == "wss" ? 443 : 80;
}

Error invalid_url(std::string_view text, std::string_view why) {
  return Error(ErrorKind::validation, "`" + std::string(text) + "` is not a URL: " + std::string(why));
}

// Returns whether `text` can be part of a request line: it has no white space, control characters or
// non-ASCII bytes.
bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

Result<void> parse_authority(Url& url, std::string_view authority, std::string_view text) {
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    url.user_info = authority.substr(0, at);
    authority.remove_prefix(at + 1);
  }
  const Result<HostAndPort> parts = split_host_and_port(authority);
  if (!parts) return invalid_url(text, parts.error().message());
  if (parts->port == 0) return invalid_url(text, "the port is not a number from 1 to 65535");
  url.host = lower_case(parts->host);
  url.port = parts->port.value_or(default_port(url.scheme));
  return {};
}

}  // namespace

Result<Url> Url::parse(std::string_view text) {
  const UriParts parts = split_uri(text);
  if (parts.scheme.empty() || parts.authority.empty()) return invalid_url(text, ":// is missing");
  Url url;
  url.scheme = lower_case(parts.scheme.substr(0, parts.scheme.size() - 1));
  if (url.scheme != "http" && url.scheme != "https" && url.scheme != "ws" && url.scheme != "wss")
    return invalid_url(text, "the scheme must be http:, https:, ws: or wss:");
  if (!is_printable(parts.authority) || !is_printable(parts.path) || !is_printable(parts.query))
    return invalid_url(text, "it has characters that must be percent-encoded");
  const Result<void> parsed = parse_authority(url, parts.authority.substr(2), text);
  if (!parsed) return parsed.error();
  url.target = parts.path.empty() ? "/" : std::string(parts.path);
  url.target += parts.query;
  return url;
}

Result<Url> Url::resolve(std::string_view reference) const {
  return parse(resolve_uri(text(), reference));
}

std::string Url::host_and_port() const {
  return join_host_and_port(host, port);
}

std::string Url::host_header() const {
  std::string full = host_and_port();
  if (port == default_port(scheme)) full.resize(full.rfind(':'));
  return full;
}

std::string Url::origin() const {
  return scheme + "://" + host_and_port();
}

std::string Url::text() const {
  return scheme + "://" + host_header() + target;
}

std::string Url::redacted() const {
  const std::string full = text();
  const std::size_t query = full.find('?');
  return query == std::string::npos ? full : full.substr(0, query) + "?…";
}

}  // namespace fairlead::http
