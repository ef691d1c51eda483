// Members: several members of an object, found in one pass over its text. For large or hostile objects, where
// a lookup with View::operator[] for each member would read the text as often.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "fairlead/json/member_index.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::json {

class Members {
 public:
  // All are absent; take() finds them. The keys must outlive this.
  explicit Members(std::initializer_list<std::string_view> keys);
  // The keys must outlive this. Of a key that is repeated the last value counts, as with View::operator[].
  // All are absent if this is no object. Reads no further than `most` members.
  Members(View object, std::initializer_list<std::string_view> keys,
          std::size_t most = static_cast<std::size_t>(-1));

  // The same from the index of an object that was scanned, which need not be read again.
  Members(const MemberIndex& index, View object, std::initializer_list<std::string_view> keys);

  // Whether there are more than `most` members.
  bool exceeded() const noexcept { return exceeded_; }

  // Absent if there is no such member, or `key` is not one of those asked for.
  View operator[](std::string_view key) const noexcept;

  // A member of the object, its key as spelled.
  void take(std::string_view spelled, bool escaped, std::string_view value);

 private:
  std::vector<std::pair<std::string_view, View>> found_;
  bool exceeded_ = false;
};

// Whether an object has more than `most` members; false for what is no object. Reads no further than that.
bool has_more_members(View object, std::size_t most);

}  // namespace fairlead::json
