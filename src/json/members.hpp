// Members: finds several members of an object in one pass over its text. For large or hostile objects,
// because each lookup with View::operator[] reads the whole text.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "fairlead/base/block_cache.hpp"
#include "fairlead/json/member_index.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::json {

class Members {
 public:
  // Creates an object in which all members are absent until add() is called. The keys must outlive this
  // object.
  explicit Members(std::initializer_list<std::string_view> keys);
  // Finds the members of `object`. If a key is repeated, its last value counts, as with View::operator[]. All
  // members are absent if `object` is not an object. Reads at most `max` members. The keys must outlive this
  // object.
  Members(View object, std::initializer_list<std::string_view> keys,
          std::size_t max = static_cast<std::size_t>(-1));

  // The same, but finds the members in `index`, the index of `object`, so that the text is not read again.
  Members(const MemberIndex& index, View object, std::initializer_list<std::string_view> keys);

  // Returns whether the object has more than `max` members.
  bool exceeds_max() const noexcept { return exceeds_max_; }

  // Returns an absent value if there is no such member, or if `key` is not one of the keys of the
  // constructor.
  View operator[](std::string_view key) const noexcept;

  // Records a member of the object if its key is one of the keys. `raw_key` is the key as in the text,
  // without quotes.
  void add(std::string_view raw_key, bool escaped, std::string_view value);

 private:
  using Found = std::pair<std::string_view, View>;
  std::vector<Found, BlockAllocator<Found>> found_;
  bool exceeds_max_ = false;
};

// Returns whether an object has more than `max` members; false if the value is not an object. Stops reading
// after `max` + 1 members.
bool has_more_members_than(View object, std::size_t max);

}  // namespace fairlead::json
