// MemberIndex: the positions of the members of an object, recorded while a Scanner reads it. A lookup in the
// index does not read the text of large members again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
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
  class Builder;
  // Indexes `object`. Stops after kMaxMembers + 1 members, and member_count() is kMaxMembers + 1 then.
  // Returns an empty index if the value is not an object. REQUIRES: `object` is valid JSON.
  static MemberIndex of(View object);
  // The same for the object at the beginning of `text`. Sets `object` to the exact bytes of that object.
  static MemberIndex of_prefix(std::string_view text, std::string_view& object);

  // Returns the number of members; 0 if no object was indexed.
  std::size_t member_count() const noexcept { return count_; }

  // Calls visit(key, escaped, value) for each member of `object`, in order, until `visit` returns false.
  // `key` is the spelling in the text, without quotes; `escaped` is true if it contains escapes. Reads the
  // text of `object` only if the object has more than kMaxMembers members. REQUIRES: `object` is the object
  // that was indexed, or a copy of its bytes.
  template <class Visit>
  void each(std::string_view object, Visit&& visit) const;
  // Returns the value of the member `key`, as View::operator[] does. Reads the text under the same condition
  // as each().
  View find(std::string_view object, std::string_view key) const;

 private:
  friend class ObjectScan;
  static constexpr std::size_t kInlineMembers = 8;  // more members need an allocation
  struct Member {
    std::uint32_t key_offset;  // offsets in the object
    std::uint32_t key_size;
    std::uint32_t value_offset;
    std::uint32_t value_size;
  };

  // Not initialized, because that would cost more than the members of most objects. Copied as bytes.
  class InlineMembers {
   public:
    InlineMembers() noexcept {}
    InlineMembers(const InlineMembers& other) noexcept { copy(other); }
    InlineMembers& operator=(const InlineMembers& other) noexcept {
      copy(other);
      return *this;
    }
    Member& operator[](std::size_t index) noexcept { return members_[index]; }
    const Member& operator[](std::size_t index) const noexcept { return members_[index]; }

   private:
    void copy(const InlineMembers& other) noexcept {
      std::memmove(&members_, &other.members_, sizeof(members_));
    }
    std::array<Member, kInlineMembers> members_;
  };

  struct OverflowMember {
    Member member;
    bool escaped = false;
  };

  void add(const Member& member, bool escaped) {
    const std::size_t index = count_++;
    if (index >= kInlineMembers) [[unlikely]]
      return add_overflow(member, escaped);
    members_[index] = member;
    escaped_ = static_cast<std::uint8_t>(escaped_ | unsigned{escaped} << index);
  }
  // Adds the member with the index count_ - 1.
  void add_overflow(const Member& member, bool escaped);
  // Called after all members of an object of that size were added.
  void set_complete(std::size_t object_size) noexcept {
    complete_ = count_ <= kMaxMembers && object_size <= std::numeric_limits<std::uint32_t>::max();
  }

  InlineMembers members_;
  // The members after the first kInlineMembers. Shared by copies; not modified after the first copy.
  std::shared_ptr<std::vector<OverflowMember>> overflow_;
  std::size_t count_ = 0;
  std::uint8_t escaped_ = 0;  // a bit for each of members_: whether its key has escapes
  bool complete_ = false;     // all members are in the index
};

class MemberIndex::Builder {
 public:
  // REQUIRES: the scanner passed to scan() reads `text`, and `index` outlives this object.
  Builder(MemberIndex& index, std::string_view text) noexcept : index_(index), text_(text) {}

  // Scans the next object and sets `object` to its exact bytes. Returns false if the scanner failed or
  // paused; if it paused, the caller calls scan() again. REQUIRES: scanner.peek() has just returned
  // Type::object.
  bool scan(Scanner& scanner, std::string_view& object);

 private:
  void begin(Scanner& scanner);
  std::uint32_t offset(std::string_view part) const noexcept {
    return static_cast<std::uint32_t>(part.data() - text_.data() -
                                      static_cast<std::ptrdiff_t>(object_offset_));
  }

  MemberIndex& index_;
  std::string_view text_;
  std::size_t object_offset_ = 0;  // the position of the object in text_
  bool started_ = false;           // scan() has been called
  bool has_key_ = false;           // key_ was scanned, its value was not
  bool escaped_ = false;
  std::string_view key_;
};

template <class Visit>
void MemberIndex::each(std::string_view object, Visit&& visit) const {
  if (!complete_) {
    View(object).each_member(
        [&](std::string_view key, bool escaped, View value) { return visit(key, escaped, value.text()); });
    return;
  }
  const auto visit_member = [&](const Member& member, bool escaped) {
    return visit(object.substr(member.key_offset, member.key_size), escaped,
                 object.substr(member.value_offset, member.value_size));
  };
  for (std::size_t i = 0; i < count_ && i < kInlineMembers; ++i) {
    if (!visit_member(members_[i], (escaped_ >> i & 1) != 0)) return;
  }
  if (!overflow_) return;
  for (const OverflowMember& overflow : *overflow_) {
    if (!visit_member(overflow.member, overflow.escaped)) return;
  }
}

}  // namespace fairlead::json
