// Pages of lists: the parameters `limit` and `cursor`, and the document {"items":[…],"nextCursor"?}. Private
// to the layer.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "admin/query.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::admin {

inline constexpr std::size_t kDefaultPageItems = 50;
inline constexpr std::size_t kMaxPageItems = 500;
// A page ends early when it has this many bytes.
inline constexpr std::size_t kMaxPageBytes = 4u << 20;

struct PageRequest {
  std::size_t limit = kDefaultPageItems;
  std::string after;  // the key of the last item of the previous page; empty: the first page

  // Fails with `invalid_parameter` or `invalid_cursor`. `list` is the name of the list: a cursor of another
  // list is invalid.
  static Result<PageRequest> parse(const Query& query, std::string_view list);
};

// Returns the cursor for the page that begins after the item with this key.
std::string encode_cursor(std::string_view list, std::string_view key);

class PageWriter {
 public:
  PageWriter(const PageRequest& request, std::string_view list);

  // Returns whether another item fits. REQUIRES: called before each add().
  bool has_room() const noexcept { return count_ < limit_ && writer_.text().size() < kMaxPageBytes; }
  void add(std::string_view key, const json::Raw& item);
  std::size_t count() const noexcept { return count_; }
  // `more` is true if further items follow.
  json::Raw finish(bool more);

 private:
  json::Writer writer_;
  std::string list_;
  std::string last_key_;
  std::size_t limit_;
  std::size_t count_ = 0;
};

}  // namespace fairlead::admin
