#include "http/url.hpp"

#include <algorithm>
#include <charconv>

#include "json/uri_reference.hpp"

namespace fairlead::http {

namespace {

std::uint16_t usual_port(std::string_view scheme) noexcept {
  return scheme == "https" || scheme == "wss" ? 443 : 80;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

Error bad(std::string_view text, std::string_view why) {
  return Error(ErrorKind::validation, "`" + std::string(text) + "` is not a URL: " + std::string(why));
}

// Neither a host nor a target may bring white space, control characters or bytes beyond ASCII into a request.
bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

Result<void> take_authority(Url& url, std::string_view authority, std::string_view text) {
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    url.user = authority.substr(0, at);
    authority.remove_prefix(at + 1);
  }
  std::string_view host = authority;
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return bad(text, "the bracket of an IPv6 address is not closed");
    host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
    if (!port.empty() && port.front() != ':') return bad(text, "something stands between host and port");
  } else if (const std::size_t colon = authority.rfind(':'); colon != std::string_view::npos) {
    host = authority.substr(0, colon);
    port = authority.substr(colon);
  }
  if (host.empty()) return bad(text, "the host is missing");
  if (!authority.starts_with('[') && host.find(':') != std::string_view::npos)
    return bad(text, "an IPv6 address needs brackets, as in http://[::1]:8080/");
  url.host = lower(host);
  url.port = usual_port(url.scheme);
  if (port.size() <= 1) return {};
  port.remove_prefix(1);
  const auto [end, problem] = std::from_chars(port.data(), port.data() + port.size(), url.port);
  if (problem != std::errc() || end != port.data() + port.size() || url.port == 0)
    return bad(text, "the port is not a number from 1 to 65535");
  return {};
}

}  // namespace

Result<Url> Url::parse(std::string_view text) {
  Url url;
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos) return bad(text, ":// is missing");
  url.scheme = lower(text.substr(0, colon));
  if (url.scheme != "http" && url.scheme != "https" && url.scheme != "ws" && url.scheme != "wss")
    return bad(text, "it begins with none of http: https: ws: wss:");
  std::string_view rest = json::split_fragment(text.substr(colon + 3)).document;
  if (!is_printable(rest)) return bad(text, "it has characters that must be written as %XX");
  const std::size_t authority_end = std::min(rest.find_first_of("/?"), rest.size());
  const Result<void> taken = take_authority(url, rest.substr(0, authority_end), text);
  if (!taken) return taken.error();
  rest.remove_prefix(authority_end);
  url.target = rest.starts_with('/') ? std::string(rest) : "/" + std::string(rest);
  return url;
}

Result<Url> Url::resolve(std::string_view reference) const {
  return parse(json::resolve_uri(text(), reference));
}

std::string Url::host_and_port() const {
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + std::to_string(port);
}

std::string Url::host_field() const {
  std::string whole = host_and_port();
  if (port == usual_port(scheme)) whole.resize(whole.rfind(':'));
  return whole;
}

std::string Url::origin() const {
  return scheme + "://" + host_and_port();
}

std::string Url::text() const {
  return scheme + "://" + host_field() + target;
}

std::string Url::shown() const {
  const std::string whole = text();
  const std::size_t query = whole.find('?');
  return query == std::string::npos ? whole : whole.substr(0, query) + "?…";
}

}  // namespace fairlead::http
