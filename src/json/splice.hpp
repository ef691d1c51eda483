// Splice: changes a few values of a JSON text and leaves every other byte as it is: key order, number
// spelling, escapes and unknown members survive. The result is a list of parts around the untouched
// bytes, ready for a gathered write; nothing large is copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "fairlead/base/bytes.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::json {

class Splice {
 public:
  // Keeps `text` alive. REQUIRES: valid JSON.
  explicit Splice(Bytes text) : text_(std::move(text)) {}

  // Puts `with` in the place of `range`. REQUIRES: `range` lies within the text (as handed out by a
  // Scanner, a View or a Message) and overlaps no other edit.
  Splice& replace(std::string_view range, Bytes with);
  // Removes the member whose value is `value_range` from its object, with its key and one comma.
  Splice& remove_member(std::string_view value_range);
  // Adds a member at the end of the object whose bytes are `object_range`.
  Splice& insert_member(std::string_view object_range, std::string_view key, std::string_view value);

  // The edited text as parts in order.
  std::vector<Bytes> parts() const;
  // The same as one run of bytes.
  Bytes joined() const;

 private:
  // Commas are settled in parts(): whether one goes depends on the other edits of the same object.
  enum class Kind : std::uint8_t { replace, remove, insert };
  struct Edit {
    Kind kind;
    std::size_t from;
    std::size_t to;
    Bytes with;
  };

  std::size_t offset_of(std::string_view range) const noexcept;
  Splice& add(Edit edit);
  std::size_t cut_run(std::size_t first, Edit& cut) const;

  Bytes text_;
  std::vector<Edit> edits_;  // sorted by `from`
};

}  // namespace fairlead::json
