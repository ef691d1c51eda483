#include "process/secrets.hpp"

#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/read_file.hpp"
#include "fairlead/process/failure.hpp"
#include "process/spawn_errors.hpp"

namespace fairlead::process {

namespace {

constexpr std::string_view kFilePrefix = "file:";
constexpr std::size_t kMaxSecretFileBytes = 64u << 10;
constexpr auto kCommonVariables =
    std::to_array<std::string_view>({"HOME", "HOSTNAME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "PWD",
                                     "SHELL", "TERM", "TMPDIR", "TZ", "USER"});
constexpr auto kCommonPrefixes = std::to_array<std::string_view>({"LC_", "XDG_"});

Result<std::string> read_secret_file(const std::string& path) {
  Result<std::string> text = read_regular_file(path, FileLimit{"max_secret_file_bytes", kMaxSecretFileBytes});
  if (!text) {
    return Error(ErrorKind::validation, "the file " + path + " cannot be read: " + text.error().message())
        .with([&](ErrorDetail& detail) { detail = text.error().detail(); });
  }
  if (text->ends_with('\n')) text->pop_back();
  if (text->ends_with('\r')) text->pop_back();
  if (text->contains('\0')) return Error(ErrorKind::validation, "the file " + path + " has a NUL byte");
  return text;
}

Result<ReferenceValue> resolve_variable(const Reference& reference) {
  const char* value = ::getenv(reference.name.c_str());
  const bool missing = !value || (reference.fallback && *value == '\0');
  if (!missing) return ReferenceValue{value, !is_common_variable(reference.name)};
  if (reference.fallback) return ReferenceValue{*reference.fallback, false};
  return Error(ErrorKind::validation, "the environment variable " + reference.name + " is not set");
}

}  // namespace

bool is_common_variable(std::string_view name) {
  return std::ranges::find(kCommonVariables, name) != kCommonVariables.end() ||
         std::ranges::any_of(kCommonPrefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

Result<ReferenceValue> resolve_reference(const Reference& reference) {
  if (reference.source == Reference::Source::environment) return resolve_variable(reference);
  if (reference.source == Reference::Source::secret)
    return Error(ErrorKind::validation, "no secret store is configured for ${secret:" + reference.name +
                                            "}; use ${env:NAME} or ${file:/path}");
  Result<std::string> content = read_secret_file(reference.name);
  if (!content) return content.error();
  return ReferenceValue{std::move(*content)};
}

Result<std::string> resolve_secret(const std::string& name, std::string_view text,
                                   std::vector<std::string>& secrets) {
  const bool file = text.starts_with(kFilePrefix);
  bool has_reference = false;
  const auto value_of = [&](const Reference& piece) -> Result<std::string> {
    Result<ReferenceValue> value = resolve_reference(piece);
    if (!value) return value.error();
    has_reference = true;
    if (value->secret) secrets.push_back(value->text);
    return std::move(value->text);
  };
  const Reference whole{
      Reference::Source::file, file ? std::string(text.substr(kFilePrefix.size())) : "", {}};
  Result<std::string> value = file ? value_of(whole) : expand_references(text, value_of);
  if (!value) {
    return spawn_error(failure::secret_unavailable,
                       "no secret for the variable " + name + ": " + value.error().message(),
                       value.error().detail().os_error.value_or(ENOENT));
  }
  if (!has_reference) secrets.push_back(*value);
  return value;
}

}  // namespace fairlead::process
