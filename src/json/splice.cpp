#include "json/splice.hpp"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

#include "fairlead/json/writer.hpp"

namespace fairlead::json {

namespace {

constexpr std::string_view kSpace = " \t\r\n";

// Position after the last byte before `at` that is no white space. REQUIRES: there is one.
std::size_t back_over_space(std::string_view text, std::size_t at) {
  return text.find_last_not_of(kSpace, at - 1) + 1;
}

// REQUIRES: something follows.
std::size_t over_space(std::string_view text, std::size_t at) {
  return text.find_first_not_of(kSpace, at);
}

// Where the key of the member whose value begins at `value` begins. Walking back, the opening quote is
// the first one that no backslash precedes: a quote inside the key is escaped, and before the opening
// one stands white space, a comma or a brace.
std::size_t key_start(std::string_view text, std::size_t value) {
  const std::size_t colon = back_over_space(text, value) - 1;
  assert(text[colon] == ':');
  std::size_t quote = text.rfind('"', back_over_space(text, colon) - 2);
  while (text[quote - 1] == '\\') quote = text.rfind('"', quote - 1);
  return quote;
}

// Whether two members stand side by side, that is with one comma between them.
bool neighbours(std::string_view text, std::size_t end_of_one, std::size_t start_of_next) {
  const std::size_t comma = over_space(text, end_of_one);
  return text[comma] == ',' && over_space(text, comma + 1) == start_of_next;
}

}  // namespace

std::size_t Splice::offset_of(std::string_view range) const noexcept {
  assert(range.data() >= text_.data() && range.data() + range.size() <= text_.data() + text_.size());
  return static_cast<std::size_t>(range.data() - text_.data());
}

Splice& Splice::add(Edit edit) {
  if (edits_.empty()) edits_.reserve(4);  // a proxied call needs three or four: one allocation for all
  const auto later = [](std::size_t from, const Edit& other) { return from < other.from; };
  edits_.insert(std::upper_bound(edits_.begin(), edits_.end(), edit.from, later), std::move(edit));
  return *this;
}

Splice& Splice::replace(std::string_view range, Bytes with) {
  const std::size_t from = offset_of(range);
  return add(Edit{Kind::replace, from, from + range.size(), std::move(with)});
}

Splice& Splice::remove_member(std::string_view value_range) {
  const std::size_t value = offset_of(value_range);
  return add(Edit{Kind::remove, key_start(text_.view(), value), value + value_range.size(), Bytes()});
}

Splice& Splice::insert_member(std::string_view object_range, std::string_view key, std::string_view value) {
  assert(object_range.size() >= 2 && object_range.back() == '}');
  const std::size_t brace = offset_of(object_range) + object_range.size() - 1;
  std::string quoted;
  append_string(quoted, key);
  const std::size_t at = back_over_space(text_.view(), brace);
  return add(Edit{Kind::insert, at, at, Bytes::join(",", quoted, ":", value)});
}

// Turns the removals of neighbouring members that begin at edit `first` into one cut that takes the
// right comma along. Returns the index of the edit after them.
std::size_t Splice::cut_run(std::size_t first, Edit& cut) const {
  const std::string_view text = text_.view();
  std::size_t last = first;
  while (last + 1 < edits_.size() && edits_[last + 1].kind == Kind::remove &&
         neighbours(text, edits_[last].to, edits_[last + 1].from)) {
    ++last;
  }
  cut.from = edits_[first].from;
  cut.to = edits_[last].to;
  const std::size_t before = back_over_space(text, cut.from) - 1;
  const std::size_t after = over_space(text, cut.to);
  if (text[before] == ',') {
    cut.from = before;
  } else if (text[after] == ',') {
    cut.to = over_space(text, after + 1);
  }
  return last + 1;
}

std::vector<Bytes> Splice::parts() const {
  const std::string_view text = text_.view();
  constexpr std::size_t kNowhere = std::string_view::npos;
  std::vector<Bytes> parts;
  parts.reserve(2 * edits_.size() + 1);
  std::size_t kept_to = 0;
  std::size_t emptied_at = kNowhere;   // end of a cut that took an object's first members
  std::size_t inserted_at = kNowhere;  // where a member was inserted last
  const auto put = [&parts](Bytes bytes) {
    if (!bytes.empty()) parts.push_back(std::move(bytes));
  };
  const auto keep_up_to = [&](std::size_t to) { put(text_.part(text.substr(kept_to, to - kept_to))); };

  for (std::size_t i = 0; i < edits_.size();) {
    Edit edit = edits_[i];
    if (edit.kind == Kind::remove) {
      i = cut_run(i, edit);
      if (text[back_over_space(text, edit.from) - 1] == '{') emptied_at = edit.to;
    } else {
      ++i;
    }
    if (edit.kind == Kind::insert) {
      const bool is_first =
          (text[edit.from - 1] == '{' || edit.from == emptied_at) && edit.from != inserted_at;
      if (is_first) edit.with = edit.with.part(edit.with.view().substr(1));
      inserted_at = edit.from;
    }
    keep_up_to(edit.from);
    put(std::move(edit.with));
    kept_to = edit.to;
  }
  keep_up_to(text.size());
  return parts;
}

Bytes Splice::joined() const {
  const std::vector<Bytes> all = parts();
  if (all.size() == 1) return all.front();
  std::size_t size = 0;
  for (const Bytes& part : all) size += part.size();
  std::string text;
  text.reserve(size);
  for (const Bytes& part : all) text.append(part.view());
  return Bytes::adopt(std::move(text));
}

}  // namespace fairlead::json
