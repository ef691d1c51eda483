#include "process/secrets.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "fairlead/loop/descriptor.hpp"
#include "fairlead/process/failure.hpp"
#include "process/spawn_errors.hpp"

namespace fairlead::process {

namespace {

constexpr std::string_view kHidden = "***";
constexpr std::string_view kFile = "file:";
constexpr std::size_t kMaxSecretBytes = 64u << 10;

Error unavailable(const std::string& name, const std::string& what, int os_error) {
  return spawn_error(failure::secret_unavailable, "no secret for the variable " + name + ": " + what,
                     os_error);
}

Result<std::string> read_secret(const std::string& name, const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const std::string what = "the file " + path;
  if (!file) return unavailable(name, what + " cannot be read", errno);
  std::string text;
  char piece[4096];
  for (;;) {
    const ssize_t n = ::read(file.get(), piece, sizeof piece);
    if (n < 0) return unavailable(name, what + " cannot be read", errno);
    if (n == 0) break;
    text.append(piece, static_cast<std::size_t>(n));
    if (text.size() > kMaxSecretBytes) return unavailable(name, what + " has over 64 KiB", EFBIG);
  }
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  if (text.contains('\0')) return unavailable(name, what + " has a NUL byte", EINVAL);
  return text;
}

// What stands between `${` and `}`.
Result<std::string> value_of(const std::string& name, std::string_view reference) {
  if (reference.starts_with(kFile)) return read_secret(name, std::string(reference.substr(kFile.size())));
  const char* value = ::getenv(std::string(reference).c_str());
  if (!value) return unavailable(name, "the variable " + std::string(reference) + " is not set", ENOENT);
  return std::string(value);
}

}  // namespace

void Redactor::add(std::string_view secret) {
  add_one(secret);
  while (secret.contains('\n')) {
    const std::size_t newline = secret.find('\n');
    add_one(secret.substr(0, newline));
    secret.remove_prefix(newline + 1);
    if (!secret.contains('\n')) add_one(secret);
  }
}

void Redactor::add_one(std::string_view secret) {
  if (secret.ends_with('\r')) secret.remove_suffix(1);
  if (secret.size() < kMinSecret || std::ranges::find(secrets_, secret) != secrets_.end()) return;
  secrets_.emplace_back(secret);
  std::ranges::sort(secrets_, std::greater(), &std::string::size);
}

// The secret that `text` begins with, or all of `text` when a secret begins with it.
std::string_view Redactor::secret_at(std::string_view text) const {
  for (const std::string& secret : secrets_) {
    if (text.starts_with(secret)) return text.substr(0, secret.size());
    if (text.size() >= kMinSecret && secret.starts_with(text)) return text;
  }
  return {};
}

std::string Redactor::redact(std::string_view text) const {
  if (empty()) return std::string(text);
  std::string clean;
  while (!text.empty()) {
    const std::string_view secret = secret_at(text);
    clean += secret.empty() ? text.substr(0, 1) : kHidden;
    text.remove_prefix(std::max<std::size_t>(secret.size(), 1));
  }
  return clean;
}

Result<std::string> resolve_secret(const std::string& name, std::string_view reference, Redactor& redactor) {
  if (reference.starts_with(kFile)) {
    Result<std::string> content = value_of(name, reference);
    if (content) redactor.add(*content);
    return content;
  }
  std::string value;
  bool referred = false;
  while (!reference.empty()) {
    const std::size_t dollar = std::min(reference.find('$'), reference.size());
    value += reference.substr(0, dollar);
    reference.remove_prefix(dollar);
    const std::size_t end = reference.find('}');
    if (reference.starts_with("${") && end != std::string_view::npos) {
      const Result<std::string> piece = value_of(name, reference.substr(2, end - 2));
      if (!piece) return piece.error();
      redactor.add(*piece);
      referred = true;
      value += *piece;
      reference.remove_prefix(end + 1);
    } else if (!reference.empty()) {
      value += '$';
      reference.remove_prefix(reference.starts_with("$$") ? 2 : 1);
    }
  }
  if (!referred) redactor.add(value);
  return value;
}

}  // namespace fairlead::process
