// EncodedDocument: the stems of a document with their frequencies, in about two bytes per stem. Private to
// the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "search/vocabulary.hpp"

namespace fairlead::search {

struct StemCount {
  StemNumber stem = 0;
  std::uint32_t count = 0;  // occurrences in the document
  bool in_name = false;     // whether the stem is part of the tool's name
};

class EncodedDocument {
 public:
  EncodedDocument() = default;
  // REQUIRES: `stems` is sorted by number, without duplicates.
  EncodedDocument(const std::vector<StemCount>& stems, std::uint32_t length) : length_(length) {
    StemNumber previous = 0;
    for (const StemCount& stem : stems) {
      append((stem.stem - previous) << 2 | (stem.in_name ? 2u : 0u) | (stem.count > 1 ? 1u : 0u));
      if (stem.count > 1) append(stem.count);
      previous = stem.stem;
    }
    bytes_.shrink_to_fit();
  }

  bool empty() const noexcept { return bytes_.empty(); }
  std::uint32_t length() const noexcept { return length_; }  // for BM25
  template <class Visit>
  void each_stem(Visit&& visit) const {
    StemNumber stem = 0;
    for (std::size_t i = 0; i < bytes_.size();) {
      const std::uint32_t head = read(i);
      stem += head >> 2;
      visit(StemCount{stem, (head & 1) != 0 ? read(i) : 1, (head & 2) != 0});
    }
  }

 private:
  void append(std::uint32_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::uint32_t read(std::size_t& i) const noexcept {
    std::uint32_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_[i++]);
      value |= (byte & 0x7fu) << shift;
      if (byte < 0x80) return value;
    }
  }

  std::string bytes_;
  std::uint32_t length_ = 0;
};

}  // namespace fairlead::search
