#include "json/splice.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>

#include "fairlead/base/append_bytes.hpp"
#include "fairlead/json/writer.hpp"
#include "json/text_scan.hpp"

namespace fairlead::json {

namespace {

// Returns the position after the last byte before `offset` that is not white space. REQUIRES: there is one.
std::size_t end_before_space(std::string_view text, std::size_t offset) {
  while (is_space(text[offset - 1])) --offset;
  return offset;
}

// Returns the position of the first byte from `offset` on that is not white space. REQUIRES: there is one.
std::size_t skip_space(std::string_view text, std::size_t offset) {
  while (is_space(text[offset])) ++offset;
  return offset;
}

// Returns the position of the last quote before `offset`. REQUIRES: there is one.
std::size_t last_quote_before(std::string_view text, std::size_t offset) {
  const void* const quote = memrchr(text.data(), '"', offset);  // long keys are frequent in `_meta`
  return static_cast<std::size_t>(static_cast<const char*>(quote) - text.data());
}

// Returns whether `text` is its own JSON spelling, but for the quotes.
bool needs_no_escape(std::string_view text) noexcept {
  return std::ranges::all_of(text, is_plain<PlainBytes::ascii>);
}

// Returns the position of the key of the member whose value begins at `value`. Searches backwards for the
// first quote without a backslash before it: a quote inside the key is escaped, and before the opening quote
// there is white space, a comma or a brace.
std::size_t key_start(std::string_view text, std::size_t value) {
  const std::size_t colon = end_before_space(text, value) - 1;
  assert(text[colon] == ':');
  std::size_t quote = last_quote_before(text, end_before_space(text, colon) - 1);
  while (text[quote - 1] == '\\') quote = last_quote_before(text, quote);
  return quote;
}

// Returns whether two members are adjacent: only a comma and white space are between them.
bool adjacent(std::string_view text, std::size_t end_of_one, std::size_t start_of_next) {
  const std::size_t comma = skip_space(text, end_of_one);
  return text[comma] == ',' && skip_space(text, comma + 1) == start_of_next;
}

}  // namespace

std::size_t Splice::offset_of(std::string_view range) const noexcept {
  assert(range.data() >= text_.data() && range.data() + range.size() <= text_.data() + text_.size());
  return static_cast<std::size_t>(range.data() - text_.data());
}

Splice& Splice::add(Edit edit) {
  max_size_ += 1 + edit.head.size() + edit.middle.size() + edit.tail.size();
  if (edits_.empty()) edits_.reserve(6);  // a forwarded call needs three to six edits
  edits_.push_back(edit);
  auto at = edits_.end() - 1;
  for (; at != edits_.begin() && (at - 1)->from > edit.from; --at) *at = *(at - 1);
  if (at != edits_.end() - 1) *at = edit;
  return *this;
}

Splice& Splice::add_owned(Edit edit, Bytes addition) {
  edit.head = addition.view();
  edit.owner = owners_.size();
  owners_.push_back(std::move(addition));
  return add(edit);
}

Splice& Splice::replace(std::string_view range, Bytes replacement) {
  const std::size_t from = offset_of(range);
  return add_owned(Edit{Kind::replace, from, from + range.size(), {}, {}, {}}, std::move(replacement));
}

Splice& Splice::replace(std::string_view range, std::string_view replacement) {
  const std::size_t from = offset_of(range);
  return add(Edit{Kind::replace, from, from + range.size(), replacement, {}, {}});
}

Splice& Splice::replace_with_string(std::string_view range, std::string_view text) {
  if (needs_no_escape(text)) {
    if (range.front() == '"') return replace(range.substr(1, range.size() - 2), text);  // keeps the quotes
    const std::size_t from = offset_of(range);
    return add(Edit{Kind::replace, from, from + range.size(), "\"", text, "\""});
  }
  std::string quoted;
  append_string(quoted, text);
  return replace(range, Bytes::adopt(std::move(quoted)));
}

Splice& Splice::remove_member(std::string_view value_range) {
  const std::size_t value = offset_of(value_range);
  return add(Edit{Kind::remove, key_start(text_.view(), value), value + value_range.size(), {}, {}, {}});
}

std::size_t Splice::end_of_members(std::string_view object_range) const noexcept {
  assert(object_range.size() >= 2 && object_range.back() == '}');
  const std::size_t brace = offset_of(object_range) + object_range.size() - 1;
  return end_before_space(text_.view(), brace);
}

Splice& Splice::insert_member(std::string_view object_range, std::string_view key, std::string_view value) {
  const std::size_t offset = end_of_members(object_range);
  const auto insert = [&](Bytes member) -> Splice& {
    return add_owned(Edit{Kind::insert, offset, offset, {}, {}, {}}, std::move(member));
  };
  if (needs_no_escape(key)) return insert(Bytes::join("\"", key, "\":", value));
  std::string quoted;
  append_string(quoted, key);
  return insert(Bytes::join(quoted, ":", value));
}

Splice& Splice::insert_member_text(std::string_view object_range, std::string_view head,
                                   std::string_view middle, std::string_view tail) {
  const std::size_t offset = end_of_members(object_range);
  return add(Edit{Kind::insert, offset, offset, head, middle, tail});
}

// Merges the removals of adjacent members, from edit `first` on, into one `cut`, which also removes the comma
// before or after them. Returns the index of the edit after these removals.
std::size_t Splice::merge_removals(std::size_t first, Edit& cut) const {
  const std::string_view text = text_.view();
  std::size_t last = first;
  while (last + 1 < edits_.size() && edits_[last + 1].kind == Kind::remove &&
         adjacent(text, edits_[last].to, edits_[last + 1].from)) {
    ++last;
  }
  cut.from = edits_[first].from;
  cut.to = edits_[last].to;
  const std::size_t before = end_before_space(text, cut.from) - 1;
  const std::size_t after = skip_space(text, cut.to);
  if (text[before] == ',') {
    cut.from = before;
  } else if (text[after] == ',') {
    cut.to = skip_space(text, after + 1);
  }
  return last + 1;
}

template <class Sink>
void Splice::each_part(Sink& sink) const {
  const std::string_view text = text_.view();
  constexpr std::size_t kNoPosition = std::string_view::npos;
  std::size_t copied_end = 0;
  std::size_t leading_cut_end = kNoPosition;  // end of a cut that removed the first members of an object
  std::size_t last_insertion = kNoPosition;   // position of the last insertion
  const auto keep_up_to = [&](std::size_t to) {
    if (to > copied_end) sink.keep(std::string_view(text.data() + copied_end, to - copied_end));
  };

  for (std::size_t i = 0; i < edits_.size();) {
    const Edit& edit = edits_[i];
    if (edit.kind == Kind::remove) {
      Edit cut = edit;
      i = merge_removals(i, cut);
      if (text[end_before_space(text, cut.from) - 1] == '{') leading_cut_end = cut.to;
      keep_up_to(cut.from);
      copied_end = cut.to;
      continue;
    }
    bool with_comma = false;
    if (edit.kind == Kind::insert) {
      const bool is_first = text[edit.from - 1] == '{' || edit.from == leading_cut_end;
      with_comma = !is_first || edit.from == last_insertion;
      last_insertion = edit.from;
    }
    keep_up_to(edit.from);
    sink.add(edit, with_comma);
    copied_end = edit.to;
    ++i;
  }
  keep_up_to(text.size());
}

std::vector<Bytes> Splice::parts() const {
  struct Sink {
    const Splice& splice;
    std::vector<Bytes> parts{};

    void keep(std::string_view part) { parts.push_back(splice.text_.part(part)); }
    void add(const Edit& edit, bool with_comma) {
      if (with_comma) parts.push_back(Bytes::constant(","));
      Bytes addition = edit.owner == kNoOwner ? Bytes::join(edit.head, edit.middle, edit.tail)
                                              : splice.owners_[edit.owner];
      if (!addition.empty()) parts.push_back(std::move(addition));
    }
  };
  Sink sink{*this};
  sink.parts.reserve(3 * edits_.size() + 1);
  each_part(sink);
  return std::move(sink.parts);
}

Bytes Splice::joined() const {
  if (edits_.empty()) return text_;
  struct Sink {
    char* end;

    void keep(std::string_view part) { end = detail::append_bytes(end, part); }
    void add(const Edit& edit, bool with_comma) {
      if (with_comma) *end++ = ',';
      keep(edit.head);
      keep(edit.middle);
      keep(edit.tail);
    }
  };
  return Bytes::build(max_size_, [&](char* out) {
    Sink sink{out};
    each_part(sink);
    return static_cast<std::size_t>(sink.end - out);
  });
}

}  // namespace fairlead::json
