#include "base/secret_index.hpp"

#include <algorithm>
#include <ranges>

#include "base/lower_case.hpp"
#include "fairlead/base/redactor.hpp"

namespace fairlead {

SecretIndex::SecretIndex(const std::vector<std::string>& secrets) {
  for (const std::string& secret : secrets) {
    if (secret.size() < Redactor::kMinSecretBytes) continue;
    secrets_.push_back(lower_case(secret));
    if (secret.contains('\n')) add_lines(secret);
  }
  build_automaton();
}

void SecretIndex::add_lines(std::string_view secret) {
  for (const auto& part : std::views::split(secret, '\n')) {
    std::string_view line(part.begin(), part.end());
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() >= Redactor::kMinSecretBytes) secrets_.push_back(lower_case(line));
  }
}

void SecretIndex::build_automaton() {
  std::ranges::sort(secrets_);
  const auto repeated = std::ranges::unique(secrets_);
  secrets_.erase(repeated.begin(), repeated.end());
  std::size_t bytes = 0;
  for (const std::string& secret : secrets_) bytes += secret.size();
  states_.assign(1, State());
  states_.reserve(bytes + 1);
  children_of_root_.fill(0);
  std::vector<Range> secrets_of = {{0, secrets_.size()}};  // by state: the secrets that begin with its prefix
  secrets_of.reserve(bytes + 1);
  for (std::uint32_t state = 0; state < states_.size(); ++state)
    add_children(state, secrets_of[state], secrets_of);
}

void SecretIndex::add_children(std::uint32_t parent, Range secrets, std::vector<Range>& secrets_of) {
  const std::uint32_t depth = states_[parent].depth;
  const bool is_secret = secrets.begin < secrets.end && secrets_[secrets.begin].size() == depth;
  states_[parent].match_bytes = is_secret ? depth : states_[states_[parent].fallback].match_bytes;
  states_[parent].first_child = static_cast<std::uint32_t>(states_.size());
  for (std::size_t first = secrets.begin + (is_secret ? 1 : 0); first < secrets.end;) {
    State state;
    state.depth = depth + 1;
    state.last_byte = static_cast<unsigned char>(secrets_[first][depth]);
    state.fallback = parent == 0 ? 0 : next_state(states_[parent].fallback, state.last_byte);
    std::size_t end = first + 1;
    while (end < secrets.end && static_cast<unsigned char>(secrets_[end][depth]) == state.last_byte) ++end;
    if (parent == 0) children_of_root_[state.last_byte] = static_cast<std::uint32_t>(states_.size());
    secrets_of.push_back({first, end});
    states_.push_back(state);
    ++states_[parent].child_count;
    first = end;
  }
}

std::uint32_t SecretIndex::child(std::uint32_t state, unsigned char byte) const noexcept {
  if (state == 0) return children_of_root_[byte];
  const State* const first = states_.data() + states_[state].first_child;
  const State* const last = first + states_[state].child_count;
  const State* const found = std::ranges::lower_bound(first, last, byte, {}, &State::last_byte);
  return found != last && found->last_byte == byte ? static_cast<std::uint32_t>(found - states_.data()) : 0;
}

std::uint32_t SecretIndex::next_state(std::uint32_t state, unsigned char byte) const noexcept {
  std::uint32_t found = child(state, byte);
  while (found == 0 && state != 0) {
    state = states_[state].fallback;
    found = child(state, byte);
  }
  return found;
}

SecretIndex::Matches SecretIndex::find(std::string_view text) const {
  Matches matches;
  std::uint32_t state = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    state = next_state(state, static_cast<unsigned char>(lower_letter(text[i])));
    const std::uint32_t match = states_[state].match_bytes;
    if (match > 0) add_range(matches.secrets, {i + 1 - match, i + 1});
  }
  if (states_[state].depth >= Redactor::kMinSecretBytes) matches.partial_bytes = states_[state].depth;
  return matches;
}

void add_range(std::vector<SecretIndex::Range>& ranges, SecretIndex::Range range) {
  for (; !ranges.empty() && range.begin < ranges.back().end; ranges.pop_back())
    range.begin = std::min(range.begin, ranges.back().begin);
  ranges.push_back(range);
}

}  // namespace fairlead
