// DocumentSet: a set of documents of a ToolIndex, such as the tools that a principal may see. One bit per
// document. Private to the library.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fairlead::search {

// Chosen by the user of the index. Numbers are indexes of arrays, so they should be dense.
using DocumentNumber = std::uint32_t;

class DocumentSet {
 public:
  void insert(DocumentNumber number) {
    if (number / 64 >= words_.size()) words_.resize(number / 64 + 1);
    words_[number / 64] |= bit(number);
  }
  bool contains(DocumentNumber number) const noexcept {
    return number / 64 < words_.size() && (words_[number / 64] & bit(number)) != 0;
  }
  std::size_t size() const noexcept {
    std::size_t count = 0;
    for (const std::uint64_t word : words_) count += static_cast<std::size_t>(std::popcount(word));
    return count;
  }
  // Calls visit(number) for each document, in ascending order.
  template <class Visit>
  void each(Visit&& visit) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      for (std::uint64_t word = words_[i]; word != 0; word &= word - 1)
        visit(static_cast<DocumentNumber>(i * 64 + static_cast<std::size_t>(std::countr_zero(word))));
    }
  }

 private:
  static std::uint64_t bit(DocumentNumber number) noexcept { return std::uint64_t{1} << number % 64; }

  std::vector<std::uint64_t> words_;
};

}  // namespace fairlead::search
