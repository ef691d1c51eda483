#include "base/references.hpp"

#include <algorithm>
#include <utility>

namespace fairlead {

namespace {

constexpr std::size_t kMaxShownBytes = 64;  // bytes of a malformed reference in an error message

bool is_variable_name(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && !(name.front() >= '0' && name.front() <= '9') && std::ranges::all_of(name, plain);
}

// A secret name can contain a path, such as team/github.token.
bool is_secret_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == '/';
  });
}

Error malformed(std::string_view content, std::string_view reason) {
  const std::string shown(content.substr(0, kMaxShownBytes));
  return Error(ErrorKind::validation, "`${" + shown + (shown.size() < content.size() ? "…" : "") + "` " +
                                          std::string(reason) + "; write $$ for a dollar");
}

Result<Reference> environment_reference(std::string_view content, std::string_view text) {
  Reference reference;
  const std::size_t colon = text.find(":-");
  reference.name = text.substr(0, colon);
  if (colon != std::string_view::npos) reference.fallback = text.substr(colon + 2);
  if (reference.fallback && reference.fallback->contains("${"))
    return malformed(content, "is a reference inside a reference, which is not supported");
  if (is_variable_name(reference.name)) return reference;
  return malformed(content, "is not a reference: ${NAME}, ${NAME:-default}, ${secret:NAME} or ${file:/path}");
}

// `content` is the text between `${` and `}`.
Result<Reference> parse_reference(std::string_view content) {
  if (content.starts_with("env:")) return environment_reference(content, content.substr(4));
  Reference reference;
  if (content.starts_with("secret:")) {
    reference.source = Reference::Source::secret;
    reference.name = content.substr(7);
    if (!is_secret_name(reference.name)) return malformed(content, "is not a name of a secret");
    return reference;
  }
  if (content.starts_with("file:")) {
    reference.source = Reference::Source::file;
    reference.name = content.substr(5);
    if (!reference.name.starts_with('/')) return malformed(content, "is not an absolute path");
    return reference;
  }
  return environment_reference(content, content);
}

}  // namespace

Result<std::vector<TextPiece>> parse_references(std::string_view text) {
  std::vector<TextPiece> pieces;
  std::string plain;
  while (!text.empty()) {
    const std::size_t dollar = std::min(text.find('$'), text.size());
    plain += text.substr(0, dollar);
    text.remove_prefix(dollar);
    if (!text.starts_with("${")) {
      if (!text.empty()) plain += '$';
      text.remove_prefix(std::min<std::size_t>(text.starts_with("$$") ? 2 : 1, text.size()));
      continue;
    }
    const std::size_t end = text.find('}');
    if (end == std::string_view::npos) return malformed(text.substr(2), "has no closing brace");
    Result<Reference> reference = parse_reference(text.substr(2, end - 2));
    if (!reference) return reference.error();
    if (!plain.empty()) pieces.emplace_back(std::exchange(plain, {}));
    pieces.emplace_back(std::move(*reference));
    text.remove_prefix(end + 1);
  }
  if (!plain.empty()) pieces.emplace_back(std::move(plain));
  return pieces;
}

Result<std::string> expand_references(std::string_view text,
                                      const std::function<Result<std::string>(const Reference&)>& value_of) {
  Result<std::vector<TextPiece>> pieces = parse_references(text);
  if (!pieces) return pieces.error();
  std::string out;
  for (const TextPiece& piece : *pieces) {
    if (const auto* plain = std::get_if<std::string>(&piece)) {
      out += *plain;
      continue;
    }
    const Result<std::string> value = value_of(std::get<Reference>(piece));
    if (!value) return value.error();
    out += *value;
  }
  return out;
}

}  // namespace fairlead
