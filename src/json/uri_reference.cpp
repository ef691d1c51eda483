#include "json/uri_reference.hpp"

#include <algorithm>
#include <charconv>

namespace fairlead::json {

namespace {

// Each part with its delimiter, so that putting them together is joining them.
struct Parts {
  std::string_view scheme;     // "http:"
  std::string_view authority;  // "//host"
  std::string_view path;
  std::string_view query;     // "?…"
  std::string_view fragment;  // "#…"
};

std::string_view cut(std::string_view& text, std::size_t at) {
  const std::string_view tail = text.substr(std::min(at, text.size()));
  text.remove_suffix(tail.size());
  return tail;
}

std::size_t scheme_length(std::string_view text) {
  const std::size_t end = text.find_first_of(":/?#");
  if (end == std::string_view::npos || end == 0 || text[end] != ':') return 0;
  return end + 1;
}

Parts split(std::string_view uri) {
  Parts parts;
  parts.fragment = cut(uri, uri.find('#'));
  parts.query = cut(uri, uri.find('?'));
  parts.scheme = uri.substr(0, scheme_length(uri));
  uri.remove_prefix(parts.scheme.size());
  if (uri.starts_with("//")) {
    parts.authority = uri.substr(0, uri.find('/', 2));
    uri.remove_prefix(parts.authority.size());
  }
  parts.path = uri;
  return parts;
}

std::string without_dot_segments(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const std::size_t slash = path.find('/', path.front() == '/' ? 1 : 0);
    const std::string_view segment = path.substr(0, slash);
    path.remove_prefix(segment.size());
    const std::string_view name = segment.starts_with('/') ? segment.substr(1) : segment;
    if (name == "..") {
      const std::size_t parent = out.rfind('/');
      out.resize(parent == std::string::npos ? 0 : parent);
    } else if (name != ".") {
      out += segment;
    }
    if (name != "." && name != "..") continue;
    if (segment != name && path.empty()) out += '/';  // at the end it names the directory
    if (segment == name && !path.empty()) path.remove_prefix(1);
  }
  return out;
}

std::string merged(const Parts& base, std::string_view path) {
  if (!base.authority.empty() && base.path.empty()) return "/" + std::string(path);
  const std::size_t slash = base.path.rfind('/');
  if (slash == std::string_view::npos) return std::string(path);
  return std::string(base.path.substr(0, slash + 1)) + std::string(path);
}

std::string joined(std::string_view scheme, std::string_view authority, const std::string& path,
                   std::string_view query, std::string_view fragment) {
  std::string uri(scheme);
  uri.append(authority).append(path).append(query).append(fragment);
  return uri;
}

}  // namespace

std::string resolve_uri(std::string_view base, std::string_view reference) {
  const Parts from = split(base);
  const Parts to = split(reference);
  if (!to.scheme.empty())
    return joined(to.scheme, to.authority, without_dot_segments(to.path), to.query, to.fragment);
  if (!to.authority.empty())
    return joined(from.scheme, to.authority, without_dot_segments(to.path), to.query, to.fragment);
  if (to.path.empty()) {
    const std::string_view query = to.query.empty() ? from.query : to.query;
    return joined(from.scheme, from.authority, std::string(from.path), query, to.fragment);
  }
  const std::string path = to.path.starts_with('/') ? std::string(to.path) : merged(from, to.path);
  return joined(from.scheme, from.authority, without_dot_segments(path), to.query, to.fragment);
}

SplitUri split_fragment(std::string_view uri) noexcept {
  const std::size_t hash = uri.find('#');
  if (hash == std::string_view::npos) return {uri, {}, false};
  return {uri.substr(0, hash), uri.substr(hash + 1), true};
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    const char* const from = text.data() + i + 1;
    if (text[i] == '%' && text.size() - i > 2 && std::from_chars(from, from + 2, byte, 16).ptr == from + 2) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace fairlead::json
