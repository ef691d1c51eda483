#include "fairlead/json/member_index.hpp"

#include <limits>

namespace fairlead::json {

bool MemberIndex::scan(Scanner& scanner, std::string_view text, std::string_view& object) {
  *this = MemberIndex();
  scanner.peek();  // to the first byte
  const std::size_t from = scanner.offset();
  std::string_view key;
  std::string_view value;
  bool escaped = false;
  scanner.begin_object();
  const auto offset = [&](std::string_view part) {
    return static_cast<std::uint32_t>(part.data() - text.data() - static_cast<std::ptrdiff_t>(from));
  };
  while (scanner.next_member(key, escaped)) {
    if (!scanner.value(value)) return false;
    if (count_ < kHeld) {
      members_[count_] = Member{offset(key), static_cast<std::uint32_t>(key.size()), offset(value),
                                static_cast<std::uint32_t>(value.size())};
      escaped_ = static_cast<std::uint8_t>(escaped_ | (escaped ? 1u << count_ : 0u));
    }
    ++count_;
  }
  if (scanner.failed()) return false;
  object = text.substr(from, scanner.offset() - from);
  held_ = count_ <= kHeld && object.size() <= std::numeric_limits<std::uint32_t>::max();
  return true;
}

}  // namespace fairlead::json
