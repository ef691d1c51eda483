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
  const Addition& text = edit.addition;
  max_size_ += 1 + text.head.size() + text.middle.size() + text.tail.size() + text.owner.size();
  if (edits_.empty()) edits_.reserve(6);  // a forwarded call needs three to six edits
  if (edits_.empty() || edits_.back().from <= edit.from) {
    edits_.push_back(std::move(edit));
    return *this;
  }
  const auto later = [](std::size_t from, const Edit& other) { return from < other.from; };
  edits_.insert(std::upper_bound(edits_.begin(), edits_.end(), edit.from, later), std::move(edit));
  return *this;
}

Splice& Splice::replace(std::string_view range, Bytes replacement) {
  const std::size_t from = offset_of(range);
  return add(Edit{Kind::replace, from, from + range.size(), Addition{{}, {}, {}, std::move(replacement)}});
}

Splice& Splice::replace(std::string_view range, std::string_view replacement) {
  const std::size_t from = offset_of(range);
  return add(Edit{Kind::replace, from, from + range.size(), Addition{replacement, {}, {}, Bytes()}});
}

Splice& Splice::replace_with_string(std::string_view range, std::string_view text) {
  if (needs_no_escape(text)) {
    const std::size_t from = offset_of(range);
    return add(Edit{Kind::replace, from, from + range.size(), Addition{"\"", text, "\"", Bytes()}});
  }
  std::string quoted;
  append_string(quoted, text);
  return replace(range, Bytes::adopt(std::move(quoted)));
}

Splice& Splice::remove_member(std::string_view value_range) {
  const std::size_t value = offset_of(value_range);
  return add(Edit{Kind::remove, key_start(text_.view(), value), value + value_range.size(), Addition()});
}

std::size_t Splice::end_of_members(std::string_view object_range) const noexcept {
  assert(object_range.size() >= 2 && object_range.back() == '}');
  const std::size_t brace = offset_of(object_range) + object_range.size() - 1;
  return end_before_space(text_.view(), brace);
}

Splice& Splice::insert_member(std::string_view object_range, std::string_view key, std::string_view value) {
  const std::size_t offset = end_of_members(object_range);
  const auto insert = [&](Bytes member) -> Splice& {
    return add(Edit{Kind::insert, offset, offset, Addition{{}, {}, {}, std::move(member)}});
  };
  if (needs_no_escape(key)) return insert(Bytes::join("\"", key, "\":", value));
  std::string quoted;
  append_string(quoted, key);
  return insert(Bytes::join(quoted, ":", value));
}

Splice& Splice::insert_member_text(std::string_view object_range, std::string_view head,
                                   std::string_view middle, std::string_view tail) {
  const std::size_t offset = end_of_members(object_range);
  return add(Edit{Kind::insert, offset, offset, Addition{head, middle, tail, Bytes()}});
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
      Edit cut{Kind::remove, edit.from, edit.to, Addition()};
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
    sink.add(edit.addition, with_comma);
    copied_end = edit.to;
    ++i;
  }
  keep_up_to(text.size());
}

std::vector<Bytes> Splice::parts() const {
  struct Sink {
    const Bytes& text;
    std::vector<Bytes> parts{};

    void keep(std::string_view part) { parts.push_back(text.part(part)); }
    void add(const Addition& addition, bool with_comma) {
      if (with_comma) parts.push_back(Bytes::constant(","));
      parts.push_back(addition.owner.empty() ? Bytes::join(addition.head, addition.middle, addition.tail)
                                             : addition.owner);
      if (parts.back().empty()) parts.pop_back();
    }
  };
  Sink sink{text_};
  sink.parts.reserve(3 * edits_.size() + 1);
  each_part(sink);
  return std::move(sink.parts);
}

Bytes Splice::joined() const {
  if (edits_.empty()) return text_;
  struct Sink {
    char* end;

    void keep(std::string_view part) {
      std::memcpy(end, part.data(), part.size());
      end += part.size();
    }
    void add(const Addition& addition, bool with_comma) {
      if (with_comma) *end++ = ',';
      for (const std::string_view part :
           {addition.head, addition.middle, addition.tail, addition.owner.view()}) {
        if (!part.empty()) keep(part);
      }
    }
  };
  return Bytes::build(max_size_, [&](char* out) {
    Sink sink{out};
    each_part(sink);
    return static_cast<std::size_t>(sink.end - out);
  });
}

}  // namespace fairlead::json
