#include "fairlead/connection/uri.hpp"

#include <utility>

#include "base/uri.hpp"

namespace fairlead {

namespace {

Error invalid_address(std::string_view text, std::string_view reason) {
  return Error(ErrorKind::validation,
               "`" + std::string(text) + "` is not an address: " + std::string(reason));
}

constexpr std::string_view kWhitespace = " \t\r\n";

Result<std::vector<std::string>> split_words(std::string_view rest) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t from = rest.find_first_not_of(kWhitespace);
    if (from == std::string_view::npos) return words;
    rest.remove_prefix(from);
    const std::string_view word = rest.substr(0, rest.find_first_of(kWhitespace));
    rest.remove_prefix(word.size());
    Result<std::string> decoded = percent_decode(word);
    if (!decoded) return decoded.error();
    words.push_back(std::move(*decoded));
  }
}

Result<Uri> parse_tcp(Uri uri, std::string_view rest) {
  const Result<HostAndPort> parts = split_host_and_port(rest);
  if (!parts) return invalid_address(uri.text, parts.error().message());
  if (!parts->port) return invalid_address(uri.text, "tcp: needs HOST:PORT");
  uri.host = parts->host;
  uri.port = *parts->port;
  return uri;
}

}  // namespace

Result<std::string> percent_decode(std::string_view text) {
  std::optional<std::string> out = percent_decode_strict(text);
  if (!out) return invalid_address(text, "% is not followed by two hexadecimal digits");
  if (out->find('\0') != std::string::npos) return invalid_address(text, "%00 cannot be part of an address");
  return std::move(*out);
}

std::string percent_encode_word(std::string_view word) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : word) {
    if (c == '%' || kWhitespace.find(c) != std::string_view::npos) {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      out += c;
    }
  }
  return out;
}

Result<Uri> Uri::parse(std::string_view text) {
  Uri uri;
  uri.text = text;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    return invalid_address(text, "the scheme must be stdio:, tcp:, unix:, http:, https:, ws: or wss:");
  }
  const std::string_view scheme = text.substr(0, colon);
  const std::string_view rest = text.substr(colon + 1);
  if (scheme == "stdio") {
    Result<std::vector<std::string>> words = split_words(rest);
    if (!words) return words.error();
    uri.argv = std::move(*words);
    return uri;
  }
  if (scheme == "tcp") {
    uri.scheme = Scheme::tcp;
    return parse_tcp(std::move(uri), rest);
  }
  if (scheme == "unix") {
    uri.scheme = Scheme::unix_socket;
    Result<std::string> path = percent_decode(rest);
    if (!path) return path.error();
    if (path->empty()) return invalid_address(text, "the path is missing");
    uri.path = std::move(*path);
    return uri;
  }
  static constexpr std::pair<std::string_view, Scheme> kHttpSchemes[] = {
      {"http", Scheme::http}, {"https", Scheme::https}, {"ws", Scheme::ws}, {"wss", Scheme::wss}};
  for (const auto& [name, kind] : kHttpSchemes) {
    if (scheme != name) continue;
    if (!rest.starts_with("//")) return invalid_address(text, "// is missing after the scheme");
    uri.scheme = kind;
    return uri;
  }
  return invalid_address(text, "the scheme must be stdio:, tcp:, unix:, http:, https:, ws: or wss:");
}

}  // namespace fairlead
