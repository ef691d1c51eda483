// Parses references in configuration values, and redacts, arbitrary bytes. A text that parses expands to
// itself when each reference is written back, and redacted text contains no secret.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/references.hpp"
#include "fairlead/base/redactor.hpp"

using namespace fairlead;

namespace {

Result<std::string> spelled(const Reference& reference) {
  const std::string fallback = reference.fallback ? ":-" + *reference.fallback : std::string();
  switch (reference.source) {
    case Reference::Source::environment: return "${env:" + reference.name + fallback + "}";
    case Reference::Source::secret: return "${secret:" + reference.name + "}";
    case Reference::Source::file: break;
  }
  return "${file:" + reference.name + "}";
}

// Returns text that parses to `plain` without any reference.
std::string escaped(const std::string& plain) {
  std::string out;
  for (const char c : plain) out += c == '$' ? "$$" : std::string(1, c);
  return out;
}

void check_references(std::string_view text) {
  const Result<std::vector<TextPiece>> pieces = parse_references(text);
  if (!pieces) {
    if (pieces.error().message().size() > 400) std::abort();
    return;
  }
  std::string again;
  for (const TextPiece& piece : *pieces) {
    const auto* plain = std::get_if<std::string>(&piece);
    again += plain ? escaped(*plain) : *spelled(std::get<Reference>(piece));
  }
  const Result<std::vector<TextPiece>> parsed = parse_references(again);
  if (!parsed || *parsed != *pieces) std::abort();
}

void check_redaction(std::string_view text) {
  const std::size_t half = text.find('\n');
  if (half == std::string_view::npos || half < Redactor::kMinSecretBytes) return;
  const std::string secret(text.substr(0, half));
  if (secret.contains('*') || secret.ends_with('\r')) return;
  const Redactor redactor({secret});
  if (redactor.redact(text.substr(half)).contains(secret)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_references(text);
  check_redaction(text);
  return 0;
}
