#include "json/splice.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>

#include "fairlead/json/writer.hpp"
#include "json/text_scan.hpp"

namespace fairlead::json {

namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n";

// Returns the position after the last byte before `offset` that is not white space. REQUIRES: there is one.
std::size_t end_before_space(std::string_view text, std::size_t offset) {
  return text.find_last_not_of(kWhiteSpace, offset - 1) + 1;
}

// Returns the position of the first byte from `offset` on that is not white space. REQUIRES: there is one.
std::size_t skip_space(std::string_view text, std::size_t offset) {
  return text.find_first_not_of(kWhiteSpace, offset);
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
  std::size_t quote = text.rfind('"', end_before_space(text, colon) - 2);
  while (text[quote - 1] == '\\') quote = text.rfind('"', quote - 1);
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
  if (edits_.empty()) edits_.reserve(4);  // a forwarded call needs three or four edits
  const auto later = [](std::size_t from, const Edit& other) { return from < other.from; };
  edits_.insert(std::upper_bound(edits_.begin(), edits_.end(), edit.from, later), std::move(edit));
  return *this;
}

Splice& Splice::replace(std::string_view range, Bytes replacement) {
  const std::size_t from = offset_of(range);
  return add(Edit{Kind::replace, from, from + range.size(), std::move(replacement)});
}

Splice& Splice::replace_with_string(std::string_view range, std::string_view text) {
  if (needs_no_escape(text)) return replace(range, Bytes::join("\"", text, "\""));
  std::string quoted;
  append_string(quoted, text);
  return replace(range, Bytes::adopt(std::move(quoted)));
}

Splice& Splice::remove_member(std::string_view value_range) {
  const std::size_t value = offset_of(value_range);
  return add(Edit{Kind::remove, key_start(text_.view(), value), value + value_range.size(), Bytes()});
}

Splice& Splice::insert_member(std::string_view object_range, std::string_view key, std::string_view value) {
  assert(object_range.size() >= 2 && object_range.back() == '}');
  const std::size_t brace = offset_of(object_range) + object_range.size() - 1;
  const std::size_t offset = end_before_space(text_.view(), brace);
  if (needs_no_escape(key))
    return add(Edit{Kind::insert, offset, offset, Bytes::join(",\"", key, "\":", value)});
  std::string quoted;
  append_string(quoted, key);
  return add(Edit{Kind::insert, offset, offset, Bytes::join(",", quoted, ":", value)});
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

template <class Put>
void Splice::each_part(Put&& put) const {
  const std::string_view text = text_.view();
  constexpr std::size_t kNoPosition = std::string_view::npos;
  std::size_t copied_end = 0;
  std::size_t leading_cut_end = kNoPosition;  // end of a cut that removed the first members of an object
  std::size_t last_insertion = kNoPosition;   // position of the last insertion
  const auto copy_up_to = [&](std::size_t to) {
    if (to > copied_end) put(text.substr(copied_end, to - copied_end), text_);
  };

  for (std::size_t i = 0; i < edits_.size();) {
    const Edit& edit = edits_[i];
    std::string_view replacement = edit.replacement.view();
    std::size_t from = edit.from;
    std::size_t to = edit.to;
    if (edit.kind == Kind::remove) {
      Edit cut{Kind::remove, from, to, Bytes()};
      i = merge_removals(i, cut);
      from = cut.from;
      to = cut.to;
      if (text[end_before_space(text, from) - 1] == '{') leading_cut_end = to;
    } else {
      ++i;
    }
    if (edit.kind == Kind::insert) {
      const bool is_first = (text[from - 1] == '{' || from == leading_cut_end) && from != last_insertion;
      if (is_first) replacement.remove_prefix(1);
      last_insertion = from;
    }
    copy_up_to(from);
    if (!replacement.empty()) put(replacement, edit.replacement);
    copied_end = to;
  }
  copy_up_to(text.size());
}

std::vector<Bytes> Splice::parts() const {
  std::vector<Bytes> parts;
  parts.reserve(2 * edits_.size() + 1);
  each_part([&](std::string_view part, const Bytes& source) { parts.push_back(source.part(part)); });
  return parts;
}

std::size_t Splice::max_size() const noexcept {
  std::size_t size = text_.size();
  for (const Edit& edit : edits_) size += edit.replacement.size();
  return size;
}

Bytes Splice::joined() const {
  if (edits_.empty()) return text_;
  return Bytes::build(max_size(), [&](char* out) {
    char* end = out;
    each_part([&](std::string_view part, const Bytes&) {
      std::memcpy(end, part.data(), part.size());
      end += part.size();
    });
    return static_cast<std::size_t>(end - out);
  });
}

}  // namespace fairlead::json
