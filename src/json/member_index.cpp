#include "fairlead/json/member_index.hpp"

#include <limits>
#include <utility>

namespace fairlead::json {

void MemberIndex::Indexing::begin(Scanner& scanner) {
  index_ = MemberIndex();
  from_ = scanner.offset();  // peek() has moved to the first byte
  scanner.begin_object();
}

void MemberIndex::Indexing::add(std::string_view value) {
  const std::size_t at = index_.count_++;
  if (at >= kHeld) return;
  index_.members_[at] = Member{offset(key_), static_cast<std::uint32_t>(key_.size()), offset(value),
                               static_cast<std::uint32_t>(value.size())};
  index_.escaped_ = static_cast<std::uint8_t>(index_.escaped_ | (escaped_ ? 1u << at : 0u));
}

bool MemberIndex::Indexing::scan(Scanner& scanner, std::string_view& object) {
  if (!std::exchange(begun_, true)) begin(scanner);
  std::string_view value;
  while (has_key_ || scanner.next_member(key_, escaped_)) {
    has_key_ = true;
    if (!scanner.value(value)) return false;
    has_key_ = false;
    add(value);
  }
  if (scanner.failed() || scanner.paused()) return false;
  object = text_.substr(from_, scanner.offset() - from_);
  index_.held_ = index_.count_ <= kHeld && object.size() <= std::numeric_limits<std::uint32_t>::max();
  return true;
}

}  // namespace fairlead::json
