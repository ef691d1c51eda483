// Indexed: a JSON value and the index of its members. Looking up a member does not read the text, however
// large it is.
#pragma once

#include <string_view>
#include <utility>

#include "fairlead/json/member_index.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::json {

class Indexed {
 public:
  Indexed() noexcept = default;  // absent
  // REQUIRES: `members` is the index of `raw`; an empty one if that is no object.
  Indexed(Raw raw, MemberIndex members) noexcept : raw_(std::move(raw)), members_(std::move(members)) {}

  const Raw& raw() const noexcept { return raw_; }
  std::string_view text() const noexcept { return raw_.text(); }
  const MemberIndex& members() const noexcept { return members_; }

  // As View::operator[]. Reads the text only if there are more than MemberIndex::kMaxMembers.
  View operator[](std::string_view key) const;
  // The same, as a value that keeps the text alive.
  Raw part(std::string_view key) const;

 private:
  Raw raw_;
  MemberIndex members_;
};

}  // namespace fairlead::json
