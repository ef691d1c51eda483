// Statistics of the documents that a query may find: the terms of the score that depend on other documents.
// Hidden documents have no influence on them, so that scores and order reveal nothing about hidden documents.
// Private to the library.
#pragma once

#include <deque>
#include <memory>

#include "search/document_store.hpp"

namespace fairlead::search {

class Statistics {
 public:
  // `visible` null: all documents of the store.
  Statistics(const DocumentStore& store, const DocumentSet* visible);

  std::size_t count() const noexcept { return count_; }  // of documents
  double mean_length() const noexcept { return mean_length_; }
  std::uint32_t documents(StemNumber stem) const noexcept;
  // Returns the inverse document frequency of a stem: the rarer, the greater; above zero.
  double weight(StemNumber stem) const noexcept;

 private:
  const DocumentStore& store_;
  bool all_;
  std::size_t count_ = 0;
  double mean_length_ = 1;
  std::vector<std::uint32_t> documents_;  // by stem; unused if all_
};

// The statistics of the sets that were used last. A set is identified by its address.
class StatisticsCache {
 public:
  explicit StatisticsCache(const DocumentStore& store) : store_(store) {}
  std::shared_ptr<const Statistics> get(const std::shared_ptr<const DocumentSet>& visible);

 private:
  static constexpr std::size_t kMaxEntries = 16;
  struct Entry {
    std::shared_ptr<const DocumentSet> visible;
    std::uint64_t generation = 0;  // of the store
    std::shared_ptr<const Statistics> statistics;
  };

  const DocumentStore& store_;
  std::deque<Entry> entries_;  // the one used last is first
};

}  // namespace fairlead::search
