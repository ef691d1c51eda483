// IndexedRaw: a JSON value with an index of its members, so that looking up a member does not read the text,
// which may be large.
#pragma once

#include <string_view>
#include <utility>

#include "fairlead/json/member_index.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::json {

class IndexedRaw {
 public:
  IndexedRaw() noexcept = default;  // absent
  // REQUIRES: `members` is the index of `raw`, or empty if `raw` is not an object.
  IndexedRaw(Raw raw, MemberIndex members) noexcept : raw_(std::move(raw)), members_(std::move(members)) {}

  const Raw& raw() const noexcept { return raw_; }
  std::string_view text() const noexcept { return raw_.text(); }
  const MemberIndex& members() const noexcept { return members_; }

  // Returns the member, as View::operator[] does. Reads the text only if the object has more than
  // MemberIndex::kMaxMembers members.
  View operator[](std::string_view key) const;
  // The same, but returns a value that shares ownership of the text.
  Raw raw_member(std::string_view key) const;

 private:
  Raw raw_;
  MemberIndex members_;
};

}  // namespace fairlead::json
