#include "fairlead/json/member_index.hpp"

#include <algorithm>
#include <utility>

#include "json/walk.hpp"

namespace fairlead::json {

void MemberIndex::Builder::begin(Scanner& scanner) {
  index_ = MemberIndex();
  object_offset_ = scanner.offset();  // peek() has moved to the first byte
  scanner.begin_object();
}

void MemberIndex::add_overflow(const Member& member, bool escaped) {
  const std::size_t index = count_ - 1;
  if (index > kMaxMembers) return;
  if (index == kMaxMembers) return overflow_.reset();
  if (!overflow_) overflow_ = std::make_shared<std::vector<OverflowMember>>();
  overflow_->push_back(OverflowMember{member, escaped});
}

MemberIndex MemberIndex::of(View object) {
  std::string_view whole;
  return object.is(Type::object) ? of_prefix(object.text(), whole) : MemberIndex();
}

MemberIndex MemberIndex::of_prefix(std::string_view text, std::string_view& object) {
  MemberIndex index;
  const auto offset = [&](std::string_view part) {
    return static_cast<std::uint32_t>(part.data() - text.data());
  };
  const auto size = [](std::string_view part) { return static_cast<std::uint32_t>(part.size()); };
  MemberWalk walk(text);
  while (index.count_ <= kMaxMembers && walk.next())
    index.add(Member{offset(walk.key()), size(walk.key()), offset(walk.value()), size(walk.value())},
              walk.escaped());
  index.set_complete(text.size());
  const char* const end = text.data() + text.size();
  const char* const after = index.complete_ ? walk.rest().data() + 1 : skip_container(text.data(), end);
  object = text.substr(0, static_cast<std::size_t>(std::min(after, end) - text.data()));
  return index;
}

View MemberIndex::find(std::string_view object, std::string_view key) const {
  std::string_view found;
  each(object, [&](std::string_view raw_key, bool escaped, std::string_view value) {
    if (escaped ? key_equals(raw_key, escaped, key) : raw_key == key) found = value;
    return true;
  });
  return View(found);
}

bool MemberIndex::Builder::scan(Scanner& scanner, std::string_view& object) {
  if (!std::exchange(started_, true)) begin(scanner);
  std::string_view value;
  while (has_key_ || scanner.next_member(key_, escaped_)) {
    has_key_ = true;
    if (!scanner.value(value)) return false;
    has_key_ = false;
    index_.add(Member{offset(key_), static_cast<std::uint32_t>(key_.size()), offset(value),
                      static_cast<std::uint32_t>(value.size())},
               escaped_);
  }
  if (scanner.failed() || scanner.paused()) return false;
  object = text_.substr(object_offset_, scanner.offset() - object_offset_);
  index_.set_complete(object.size());
  return true;
}

}  // namespace fairlead::json
