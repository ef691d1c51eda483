// MemberIndex: where the members of an object are, noted while a Scanner reads it, so that the text of a
// large member need not be read again to find the others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fairlead/json/scanner.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::json {

class MemberIndex {
 public:
  // Scans one object and indexes it.
  class Indexing;

  // Members of the object; 0 if none was scanned.
  std::size_t count() const noexcept { return count_; }

  // Calls visit(key, escaped, value) for each member of `object`, in order, the key as spelled, until it
  // returns false. Reads the text of `object` only if there are more members than the index holds.
  // REQUIRES: `object` is what was indexed, or a copy of those bytes.
  template <class Visit>
  void each(std::string_view object, Visit&& visit) const;

 private:
  static constexpr std::size_t kHeld = 8;
  struct Member {
    std::uint32_t key = 0;  // offsets in the object
    std::uint32_t key_size = 0;
    std::uint32_t value = 0;
    std::uint32_t value_size = 0;
  };

  std::array<Member, kHeld> members_;
  std::size_t count_ = 0;
  std::uint8_t escaped_ = 0;  // a bit for each member: its key has escapes
  bool held_ = false;         // all members are in the index
};

class MemberIndex::Indexing {
 public:
  // The scanners of scan() read `text`. `index` must outlive this.
  Indexing(MemberIndex& index, std::string_view text) noexcept : index_(index), text_(text) {}

  // Scans the object that comes next; `object` is its exact bytes. REQUIRES: peek() has just returned
  // Type::object. Returns
  // false after an error of the scanner, and when it has paused: call it again then.
  bool scan(Scanner& scanner, std::string_view& object);

 private:
  void begin(Scanner& scanner);
  void add(std::string_view value);
  std::uint32_t offset(std::string_view part) const noexcept {
    return static_cast<std::uint32_t>(part.data() - text_.data() - static_cast<std::ptrdiff_t>(from_));
  }

  MemberIndex& index_;
  std::string_view text_;
  std::size_t from_ = 0;  // where the object begins
  bool begun_ = false;
  bool has_key_ = false;  // of a member whose value is not scanned yet
  bool escaped_ = false;
  std::string_view key_;
};

template <class Visit>
void MemberIndex::each(std::string_view object, Visit&& visit) const {
  if (!held_) {
    View(object).each_member(
        [&](std::string_view key, bool escaped, View value) { return visit(key, escaped, value.text()); });
    return;
  }
  for (std::size_t i = 0; i < count_; ++i) {
    const Member& one = members_[i];
    if (!visit(object.substr(one.key, one.key_size), (escaped_ >> i & 1) != 0,
               object.substr(one.value, one.value_size)))
      return;
  }
}

}  // namespace fairlead::json
