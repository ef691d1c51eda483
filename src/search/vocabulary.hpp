// Vocabulary: the stems that occur in documents, each with a number and the number of documents. Private to
// the library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/string_map.hpp"

namespace fairlead::search {

using StemNumber = std::uint32_t;

class Vocabulary {
 public:
  std::optional<StemNumber> find(std::string_view stem) const;
  // Returns the number of `stem` after adding it if necessary. The caller then calls add_document().
  StemNumber intern(std::string_view stem);
  // Counts one more or one less document with the stem. A stem without documents is forgotten, and its number
  // is used again.
  void add_document(StemNumber number) { ++entries_[number].documents; }
  void remove_document(StemNumber number);
  std::uint32_t documents(StemNumber number) const noexcept { return entries_[number].documents; }
  // Every number is below this one.
  std::size_t number_bound() const noexcept { return entries_.size(); }
  // Calls visit(number) for each stem that begins with `prefix`.
  template <class Visit>
  void each_with_prefix(std::string_view prefix, Visit&& visit) const {
    for (StemNumber number = 0; number < entries_.size(); ++number) {
      if (entries_[number].stem && entries_[number].stem->starts_with(prefix)) visit(number);
    }
  }

 private:
  struct Entry {
    const std::string* stem = nullptr;  // the key in numbers_; null: the number is free
    std::uint32_t documents = 0;
  };

  StringMap<StemNumber> numbers_;
  std::vector<Entry> entries_;
  std::vector<StemNumber> free_;
};

}  // namespace fairlead::search
