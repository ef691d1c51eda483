// Splice: edits a few values of a JSON text and leaves every other byte unchanged: key order, number
// spelling, escapes and unknown members are preserved. The result is a list of buffers for writev that share
// the unchanged bytes; nothing large is copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "fairlead/base/block_cache.hpp"
#include "fairlead/base/bytes.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::json {

class Splice {
 public:
  // Shares ownership of `text`. REQUIRES: valid JSON.
  explicit Splice(Bytes text) : text_(std::move(text)), max_size_(text_.size()) {}

  // Replaces `range` by `replacement`. REQUIRES: `range` lies within the text (as returned by a Scanner, a
  // View or a Message) and does not overlap another edit.
  Splice& replace(std::string_view range, Bytes replacement);
  // The same for a text that outlives this object.
  Splice& replace(std::string_view range, std::string_view replacement);
  // Replaces `range` by the JSON string of `text`. REQUIRES: `text` outlives this object.
  Splice& replace_with_string(std::string_view range, std::string_view text);
  // Removes the member whose value is `value_range` from its object, with its key and one comma.
  Splice& remove_member(std::string_view value_range);
  // Adds a member at the end of the object whose bytes are `object_range`.
  Splice& insert_member(std::string_view object_range, std::string_view key, std::string_view value);
  // The same for the text of a member in three parts, which outlive this object.
  Splice& insert_member_text(std::string_view object_range, std::string_view head, std::string_view middle,
                             std::string_view tail);

  std::string_view text() const noexcept { return text_.view(); }  // the original text
  // Returns the edited text as a list of parts.
  std::vector<Bytes> parts() const;
  // Returns the edited text in one buffer.
  Bytes joined() const;
  // Returns the size of the edited text, or somewhat more.
  std::size_t max_size() const noexcept { return max_size_; }

 private:
  // Edits do not include commas. Which commas are removed or added depends on all edits of an object, so
  // each_part() decides.
  enum class Kind : std::uint8_t { replace, remove, insert };
  // Trivially copyable, so that sorting costs little. It adds the text that is the concatenation of `head`,
  // `middle` and `tail`.
  struct Edit {
    Kind kind;
    std::size_t from;
    std::size_t to;
    std::string_view head;
    std::string_view middle;
    std::string_view tail;
    std::size_t owner = kNoOwner;  // index in owners_ of the buffer that contains `head`; the rest is empty
  };
  static constexpr std::size_t kNoOwner = static_cast<std::size_t>(-1);

  std::size_t offset_of(std::string_view range) const noexcept;
  // Returns where a member is inserted at the end of the object.
  std::size_t end_of_members(std::string_view object_range) const noexcept;
  Splice& add(Edit edit);
  Splice& add_owned(Edit edit, Bytes addition);
  std::size_t merge_removals(std::size_t first, Edit& cut) const;
  // Calls sink.keep(part) for each unchanged part of the text, and sink.add(edit, with_comma) for each edit
  // that adds text, in the order of the edited text. `with_comma`: a comma precedes the addition.
  template <class Sink>
  void each_part(Sink& sink) const;

  Bytes text_;
  std::vector<Edit, BlockAllocator<Edit>> edits_;  // sorted by `from`
  std::vector<Bytes, BlockAllocator<Bytes>> owners_;
  std::size_t max_size_;
};

}  // namespace fairlead::json
