#include "fairlead/base/redactor.hpp"

#include <algorithm>
#include <ranges>

#include "base/uri.hpp"

namespace fairlead {

namespace {

constexpr std::string_view kRedacted = "***";

constexpr unsigned char lower_case(char c) noexcept {
  return static_cast<unsigned char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

std::string in_lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(lower_case(c));
  return text;
}

// As inside a JSON string.
std::string json_escaped(std::string_view text) {
  constexpr std::string_view kEscaped = "\"\\\n\r\t";
  constexpr std::string_view kLetters = "\"\\nrt";
  std::string escaped;
  for (const char c : text) {
    const std::size_t found = kEscaped.find(c);
    if (found != std::string_view::npos) escaped += '\\';
    escaped += found != std::string_view::npos ? kLetters[found] : c;
  }
  return escaped;
}

}  // namespace

Redactor::Redactor(const std::vector<std::string>& secrets) {
  for (const std::string& secret : secrets) add_forms(secret);
  index();
}

void Redactor::add(std::string_view secret) {
  add_forms(secret);
  index();
}

void Redactor::add_forms(std::string_view secret) {
  if (secret.size() < kMinSecret) return;
  insert(secret);
  if (secret.size() <= kMaxEncodedSecret && !secret.contains('\n')) insert(percent_encoded(secret));
  for (const auto& part : std::views::split(secret, '\n')) {
    std::string_view line(part.begin(), part.end());
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() < kMinSecret) continue;
    insert(line);
    if (line.size() <= kMaxEncodedSecret) insert(json_escaped(line));
  }
}

void Redactor::insert(std::string_view form) {
  secrets_.push_back(in_lower_case(std::string(form)));
}

// ---- the automaton ---------------------------------------------------------------------------------------

void Redactor::index() {
  std::ranges::sort(secrets_);
  const auto repeated = std::ranges::unique(secrets_);
  secrets_.erase(repeated.begin(), repeated.end());
  std::size_t bytes = 0;
  for (const std::string& secret : secrets_) bytes += secret.size();
  states_.assign(1, State());
  states_.reserve(bytes + 1);
  children_of_first_.fill(0);
  std::vector<Range> secrets_of = {{0, secrets_.size()}};  // by state: those that begin with what was read
  secrets_of.reserve(bytes + 1);
  for (std::uint32_t state = 0; state < states_.size(); ++state)
    add_children(state, secrets_of[state], secrets_of);
}

void Redactor::add_children(std::uint32_t parent, Range secrets, std::vector<Range>& secrets_of) {
  const std::uint32_t depth = states_[parent].depth;
  const bool complete = secrets.begin < secrets.end && secrets_[secrets.begin].size() == depth;
  states_[parent].match = complete ? depth : states_[states_[parent].fallback].match;
  states_[parent].first_child = static_cast<std::uint32_t>(states_.size());
  for (std::size_t at = secrets.begin + (complete ? 1 : 0); at < secrets.end;) {
    State state;
    state.depth = depth + 1;
    state.last_byte = static_cast<unsigned char>(secrets_[at][depth]);
    state.fallback = parent == 0 ? 0 : next(states_[parent].fallback, state.last_byte);
    std::size_t end = at + 1;
    while (end < secrets.end && static_cast<unsigned char>(secrets_[end][depth]) == state.last_byte) ++end;
    if (parent == 0) children_of_first_[state.last_byte] = static_cast<std::uint32_t>(states_.size());
    secrets_of.push_back({at, end});
    states_.push_back(state);
    ++states_[parent].children;
    at = end;
  }
}

std::uint32_t Redactor::child(std::uint32_t state, unsigned char byte) const noexcept {
  if (state == 0) return children_of_first_[byte];
  const State* const first = states_.data() + states_[state].first_child;
  const State* const last = first + states_[state].children;
  const State* const found = std::ranges::lower_bound(first, last, byte, {}, &State::last_byte);
  return found != last && found->last_byte == byte ? static_cast<std::uint32_t>(found - states_.data()) : 0;
}

std::uint32_t Redactor::next(std::uint32_t state, unsigned char byte) const noexcept {
  std::uint32_t found = child(state, byte);
  while (found == 0 && state != 0) {
    state = states_[state].fallback;
    found = child(state, byte);
  }
  return found;
}

Redactor::Found Redactor::find(std::string_view text) const {
  Found found;
  std::uint32_t state = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    state = next(state, lower_case(text[at]));
    const std::uint32_t match = states_[state].match;
    if (match > 0) add_found(found.secrets, {at + 1 - match, at + 1});
  }
  if (states_[state].depth >= kMinSecret) found.truncated = states_[state].depth;
  return found;
}

void Redactor::add_found(std::vector<Range>& found, Range secret) {
  for (; !found.empty() && secret.begin < found.back().end; found.pop_back())
    secret.begin = std::min(secret.begin, found.back().begin);
  found.push_back(secret);
}

// ---- text ------------------------------------------------------------------------------------------------

bool Redactor::finds_secret(std::string_view text) const {
  return !empty() && !find(text).secrets.empty();
}

std::string Redactor::redact(std::string_view text) const {
  if (empty()) return std::string(text);
  Found found = find(text);
  if (found.truncated > 0) add_found(found.secrets, {text.size() - found.truncated, text.size()});
  std::string clean;
  std::size_t copied = 0;  // how much of `text` is in `clean`
  for (const Range& secret : found.secrets) {
    clean += text.substr(copied, secret.begin - copied);
    clean += kRedacted;
    copied = secret.end;
  }
  clean += text.substr(copied);
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
