// IdMap: a table whose keys are ids of requests. It costs little for the few requests that most clients have
// in progress at once, and takes the memory of its entries from the block cache.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fairlead/base/block_cache.hpp"

namespace fairlead {

namespace detail {

// Returns a random number that is the same for the lifetime of the process.
std::uint64_t id_hash_seed() noexcept;

}  // namespace detail

// Hash function for short texts. Clients choose ids, so the hash is seeded at random: ids that collide in one
// process do not collide in another.
struct IdHash {
  using is_transparent = void;

  std::size_t operator()(std::string_view id) const noexcept {
    std::uint64_t hash = detail::id_hash_seed() ^ id.size();
    if (id.size() < sizeof hash) return static_cast<std::size_t>(mix(hash, short_word(id)));
    // The last word overlaps the one before it.
    for (std::size_t i = 0; i + sizeof hash < id.size(); i += sizeof hash) hash = mix(hash, word_at(id, i));
    return static_cast<std::size_t>(mix(hash, word_at(id, id.size() - sizeof hash)));
  }

 private:
  static std::uint64_t word_at(std::string_view text, std::size_t offset) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + offset, sizeof word);
    return word;
  }
  // Returns all characters of a text of fewer than eight.
  static std::uint64_t short_word(std::string_view text) noexcept {
    if (text.size() >= 4) {
      std::uint32_t first = 0;
      std::uint32_t last = 0;
      std::memcpy(&first, text.data(), sizeof first);
      std::memcpy(&last, text.data() + text.size() - sizeof last, sizeof last);
      return std::uint64_t{first} << 32 | last;
    }
    std::uint64_t word = 0;
    for (const char c : text) word = word << 8 | static_cast<unsigned char>(c);
    return word;
  }
  static std::uint64_t mix(std::uint64_t hash, std::uint64_t word) noexcept {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 32;
  }
};

namespace detail {

// Hash index of an array: finds the positions of the entries with a given hash. Open addressing with linear
// probing; at most half of the slots are used.
class IdIndex {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;
  // Returns the position for which is_wanted(position) is true among those with this hash; kNone if there is
  // none.
  template <class IsWanted>
  std::uint32_t find(std::size_t hash, IsWanted&& is_wanted) const {
    for (std::size_t slot = hash & mask();; slot = (slot + 1) & mask()) {
      const std::uint32_t position = slots_[slot];
      if (position == kNone || (hashes_[position] == hash && is_wanted(position))) return position;
    }
  }
  // Makes room for `count` positions.
  void reserve(std::size_t count) {
    if (2 * count > slots_.size()) grow(count);
  }
  // Adds the position behind the last one. REQUIRES: reserve() has made room for it.
  void insert(std::size_t hash, std::uint32_t position) noexcept;
  // Removes `position`; the entry at `last`, the last position, is moved there.
  void erase(std::uint32_t position, std::uint32_t last) noexcept;

 private:
  std::size_t mask() const noexcept { return slots_.size() - 1; }
  std::size_t slot_of(std::uint32_t position) const noexcept;
  void grow(std::size_t count);

  std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(32, kNone);  // positions; kNone: free
  std::vector<std::size_t> hashes_ = std::vector<std::size_t>(16);            // by position
};

}  // namespace detail

// A table of values by id. The entries are in one array, which is searched from its begin while it is short;
// for longer arrays there is an index. An empty table that never had many entries uses no memory. Entries are
// in no particular order. Iterators are valid until the table is changed.
template <class T>
class IdMap {
 public:
  struct Entry {
    std::string id;
    T value;
  };
  using Entries = std::vector<Entry, BlockAllocator<Entry>>;
  using iterator = typename Entries::iterator;
  using const_iterator = typename Entries::const_iterator;

  std::size_t size() const noexcept { return entries_.size(); }
  bool empty() const noexcept { return entries_.empty(); }
  iterator begin() noexcept { return entries_.begin(); }
  iterator end() noexcept { return entries_.end(); }
  const_iterator begin() const noexcept { return entries_.begin(); }
  const_iterator end() const noexcept { return entries_.end(); }

  // Returns end() if no entry has that id.
  iterator find(std::string_view id) { return index_ ? find_indexed(id, IdHash()(id)) : find_linearly(id); }
  // Adds an entry and returns true. Returns false, and changes nothing, if an entry has that id.
  bool insert(std::string_view id, T value) {
    if (!index_ && size() >= kEntriesWithoutIndex) build_index();
    const std::size_t hash = index_ ? IdHash()(id) : 0;
    if ((index_ ? find_indexed(id, hash) : find_linearly(id)) != end()) return false;
    if (index_) index_->reserve(size() + 1);
    entries_.push_back(Entry{std::string(id), std::move(value)});
    if (index_) index_->insert(hash, last());
    return true;
  }
  // Removes an entry and returns its value.
  T extract(iterator entry) {
    T value = std::move(entry->value);
    const auto position = static_cast<std::uint32_t>(entry - begin());
    if (index_) index_->erase(position, last());
    if (position != last()) *entry = std::move(entries_.back());
    entries_.pop_back();
    // A table that has had many entries will likely have many again.
    const bool keeps_memory = index_ && entries_.capacity() <= kMaxKeptEntries;
    if (entries_.empty() && !keeps_memory) {
      entries_ = Entries();
      index_.reset();
    }
    return value;
  }
  // Removes all entries whose values satisfy the predicate.
  template <class Predicate>
  void erase_if(Predicate&& predicate) {
    for (std::size_t position = 0; position < size();) {
      if (predicate(entries_[position].value)) {
        extract(at(position));
      } else {
        ++position;
      }
    }
  }

 private:
  static constexpr std::size_t kEntriesWithoutIndex = 8;
  static constexpr std::size_t kMaxKeptEntries = 1024;  // for which an empty table keeps memory

  iterator at(std::size_t position) noexcept { return begin() + static_cast<std::ptrdiff_t>(position); }
  std::uint32_t last() const noexcept { return static_cast<std::uint32_t>(size() - 1); }
  iterator find_linearly(std::string_view id) {
    iterator entry = begin();
    while (entry != end() && std::string_view(entry->id) != id) ++entry;
    return entry;
  }
  iterator find_indexed(std::string_view id, std::size_t hash) {
    const std::uint32_t found =
        index_->find(hash, [&](std::uint32_t position) { return entries_[position].id == id; });
    return found == detail::IdIndex::kNone ? end() : at(found);
  }
  void build_index() {
    auto index = std::make_unique<detail::IdIndex>();
    index->reserve(size());
    for (std::uint32_t position = 0; position < size(); ++position)
      index->insert(IdHash()(entries_[position].id), position);
    index_ = std::move(index);
  }

  Entries entries_;
  std::unique_ptr<detail::IdIndex> index_;
};

}  // namespace fairlead
