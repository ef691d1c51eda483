#include "fairlead/base/redactor.hpp"

#include <algorithm>
#include <tuple>

namespace fairlead {

namespace {

constexpr std::string_view kRedacted = "***";

unsigned char first_byte(std::string_view text) {
  return static_cast<unsigned char>(text.front());
}

bool comes_before(std::string_view a, std::string_view b) {
  return std::tuple(first_byte(a), b.size(), a) < std::tuple(first_byte(b), a.size(), b);
}

}  // namespace

Redactor::Redactor(const std::vector<std::string>& secrets) {
  for (const std::string& secret : secrets) add_lines(secret);
  index();
}

void Redactor::add(std::string_view secret) {
  add_lines(secret);
  index();
}

void Redactor::add_lines(std::string_view secret) {
  insert(secret);
  while (secret.contains('\n')) {
    const std::size_t newline = secret.find('\n');
    insert(secret.substr(0, newline));
    secret.remove_prefix(newline + 1);
    if (!secret.contains('\n')) insert(secret);
  }
}

void Redactor::insert(std::string_view secret) {
  if (secret.ends_with('\r')) secret.remove_suffix(1);
  if (secret.size() >= kMinSecret) secrets_.emplace_back(secret);
}

void Redactor::index() {
  std::ranges::sort(secrets_, comes_before);
  const auto repeated = std::ranges::unique(secrets_);
  secrets_.erase(repeated.begin(), repeated.end());
  first_.fill(0);
  for (const std::string& secret : secrets_) ++first_[first_byte(secret) + 1u];
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
}

std::string_view Redactor::secret_at(std::string_view text) const {
  const unsigned char byte = first_byte(text);
  for (std::uint32_t i = first_[byte]; i < first_[byte + 1u]; ++i) {
    const std::string_view secret = secrets_[i];
    if (text.starts_with(secret)) return text.substr(0, secret.size());
    if (text.size() >= kMinSecret && secret.starts_with(text)) return text;
  }
  return {};
}

std::size_t Redactor::next_secret(std::string_view text, std::size_t from) const {
  for (std::size_t at = from; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (first_[byte] != first_[byte + 1u] && !secret_at(text.substr(at)).empty()) return at;
  }
  return text.size();
}

bool Redactor::finds_secret(std::string_view text) const {
  return !empty() && next_secret(text, 0) < text.size();
}

std::string Redactor::redact(std::string_view text) const {
  if (empty()) return std::string(text);
  std::string clean;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t found = next_secret(text, at);
    clean += text.substr(at, found - at);
    if (found == text.size()) break;
    clean += kRedacted;
    at = found + secret_at(text.substr(found)).size();
  }
  return clean;
}

std::shared_ptr<void> SharedRedactor::add(std::vector<std::string> secrets) {
  const std::lock_guard lock(mutex_);
  for (const std::string& secret : secrets) {
    if (++uses_[secret] == 1) current_ = nullptr;
  }
  return std::shared_ptr<void>(
      nullptr, [self = shared_from_this(), secrets = std::move(secrets)](void*) { self->release(secrets); });
}

void SharedRedactor::release(const std::vector<std::string>& secrets) {
  const std::lock_guard lock(mutex_);
  for (const std::string& secret : secrets) {
    const auto found = uses_.find(secret);
    if (--found->second > 0) continue;
    uses_.erase(found);
    current_ = nullptr;
  }
}

std::shared_ptr<const Redactor> SharedRedactor::current() const {
  const std::lock_guard lock(mutex_);
  if (!current_) {
    std::vector<std::string> secrets;
    for (const auto& [secret, uses] : uses_) secrets.push_back(secret);
    current_ = std::make_shared<const Redactor>(secrets);
  }
  return current_;
}

}  // namespace fairlead
