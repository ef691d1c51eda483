#include "search/vocabulary.hpp"

namespace fairlead::search {

std::optional<StemNumber> Vocabulary::find(std::string_view stem) const {
  const auto found = numbers_.find(stem);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

StemNumber Vocabulary::intern(std::string_view stem) {
  if (const std::optional<StemNumber> known = find(stem)) return *known;
  if (free_.empty()) {
    free_.push_back(static_cast<StemNumber>(entries_.size()));
    entries_.emplace_back();
  }
  const StemNumber number = free_.back();
  const auto added = numbers_.emplace(stem, number).first;
  free_.pop_back();
  entries_[number] = {&added->first, 0};
  return number;
}

void Vocabulary::remove_document(StemNumber number) {
  Entry& entry = entries_[number];
  if (--entry.documents > 0) return;
  numbers_.erase(numbers_.find(*entry.stem));
  entry.stem = nullptr;
  free_.push_back(number);
}

}  // namespace fairlead::search
