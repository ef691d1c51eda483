#include "search/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace fairlead::search {

Statistics::Statistics(const DocumentStore& store, const DocumentSet* visible)
    : store_(store), all_(visible == nullptr) {
  std::uint64_t total = all_ ? store.total_length() : 0;
  count_ = all_ ? store.document_count() : 0;
  if (visible) {
    documents_.resize(store.vocabulary().number_bound());
    visible->each([&](DocumentNumber number) {
      const EncodedDocument& document = store.document(number);
      if (document.empty()) return;
      ++count_;
      total += document.length();
      document.each_stem([this](const StemCount& stem) { ++documents_[stem.stem]; });
    });
  }
  if (count_ > 0) mean_length_ = std::max(1.0, static_cast<double>(total) / static_cast<double>(count_));
}

std::uint32_t Statistics::documents(StemNumber stem) const noexcept {
  return all_ ? store_.vocabulary().documents(stem) : documents_[stem];
}

double Statistics::weight(StemNumber stem) const noexcept {
  const double with = documents(stem);
  return std::log(1 + (static_cast<double>(count_) - with + 0.5) / (with + 0.5));
}

std::shared_ptr<const Statistics> StatisticsCache::get(const std::shared_ptr<const DocumentSet>& visible) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.visible == visible; });
  Entry entry{visible, store_.generation(), nullptr};
  if (found != entries_.end()) {
    if (found->generation == store_.generation()) entry.statistics = found->statistics;
    entries_.erase(found);
  }
  if (!entry.statistics) entry.statistics = std::make_shared<const Statistics>(store_, visible.get());
  entries_.push_front(std::move(entry));
  if (entries_.size() > kMaxEntries) entries_.pop_back();
  return entries_.front().statistics;
}

}  // namespace fairlead::search
