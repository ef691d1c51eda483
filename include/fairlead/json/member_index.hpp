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
  // Scans the object that comes next and indexes it; `object` is its exact bytes. REQUIRES: `scanner` reads
  // `text` and peek() is Type::object. Returns false after an error of the scanner.
  bool scan(Scanner& scanner, std::string_view text, std::string_view& object);

  // Members of the object; 0 if none was scanned.
  std::size_t count() const noexcept { return count_; }

  // Calls visit(key, escaped, value) for each member of `object`, in order, the key as spelled, until it
  // returns false. Reads the text of `object` only if there are more members than the index holds.
  // REQUIRES: `object` is what scan() has read, or a copy of those bytes.
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
