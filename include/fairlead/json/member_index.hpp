// MemberIndex: where the members of an object are, noted while a Scanner reads it, so that the text of a
// large member need not be read again to find the others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "fairlead/json/scanner.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::json {

class MemberIndex {
 public:
  // An object with more members is not indexed.
  static constexpr std::size_t kMaxMembers = 1024;

  // Scans one object and indexes it.
  class Indexing;
  // Indexes an object that was validated before. Reads no further than kMaxMembers + 1 members, which is
  // then the count. The index of a value that is not an object is empty.
  static MemberIndex of(View object);
  // The same for the object that `text` begins with; `object` is its exact bytes.
  static MemberIndex of_first(std::string_view text, std::string_view& object);

  // Members of the object; 0 if none was scanned.
  std::size_t count() const noexcept { return count_; }

  // Calls visit(key, escaped, value) for each member of `object`, in order, the key as spelled, until it
  // returns false. Reads the text of `object` only if it has more than kMaxMembers.
  // REQUIRES: `object` is what was indexed, or a copy of those bytes.
  template <class Visit>
  void each(std::string_view object, Visit&& visit) const;
  // The member of that name, as View::operator[] finds it; reads the text when each() does.
  View find(std::string_view object, std::string_view key) const;

 private:
  static constexpr std::size_t kInline = 8;  // more need an allocation
  struct Member {
    std::uint32_t key = 0;  // offsets in the object
    std::uint32_t key_size = 0;
    std::uint32_t value = 0;
    std::uint32_t value_size = 0;
  };

  struct FurtherMember {
    Member where;
    bool escaped = false;
  };

  void add(const Member& member, bool escaped);

  std::array<Member, kInline> members_;
  std::shared_ptr<std::vector<FurtherMember>> further_;  // shared by copies; complete before there is one
  std::size_t count_ = 0;
  std::uint8_t escaped_ = 0;  // a bit for each of members_: its key has escapes
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
  const auto visit_member = [&](const Member& one, bool escaped) {
    return visit(object.substr(one.key, one.key_size), escaped, object.substr(one.value, one.value_size));
  };
  for (std::size_t i = 0; i < count_ && i < kInline; ++i) {
    if (!visit_member(members_[i], (escaped_ >> i & 1) != 0)) return;
  }
  if (!further_) return;
  for (const FurtherMember& one : *further_) {
    if (!visit_member(one.where, one.escaped)) return;
  }
}

}  // namespace fairlead::json
