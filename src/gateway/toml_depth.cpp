#include "gateway/toml_depth.hpp"

#include <algorithm>

namespace fairlead::gateway {

std::optional<std::size_t> TomlDepth::first_beyond(std::size_t max) {
  for (std::size_t at = 0; at < text_.size();) {
    const std::size_t end = end_of_piece(at);
    if (end == at) read(text_[at]);
    if (text_[at] == '"' || text_[at] == '\'') line_is_blank_ = false;
    if (depth_ > max) return at;
    at = std::max(end, at + 1);
  }
  return std::nullopt;
}

void TomlDepth::read(char c) {
  if (c == '\n') return end_line();
  if (c == ' ' || c == '\t' || c == '\r') return;
  if (c == '[' && line_is_blank_ && open_.empty()) {
    line_is_header_ = true;
    depth_ = 0;
  }
  line_is_blank_ = false;
  if (c == '[' || c == '{') {
    open_.push_back(depth_++);
  } else if (c == '.') {
    ++depth_;
  } else if (c == ',' && !open_.empty()) {
    depth_ = open_.back() + 1;
  } else if ((c == ']' || c == '}') && !open_.empty()) {
    depth_ = open_.back();
    open_.pop_back();
  }
  deepest_of_line_ = std::max(deepest_of_line_, depth_);
}

void TomlDepth::end_line() {
  if (line_is_header_) header_ = deepest_of_line_;
  depth_ = open_.empty() ? header_ : open_.back() + 1;
  deepest_of_line_ = 0;
  line_is_blank_ = true;
  line_is_header_ = false;
}

std::size_t TomlDepth::end_of_piece(std::size_t at) const {
  if (text_[at] == '#') return std::min(text_.find('\n', at), text_.size());
  return text_[at] == '"' || text_[at] == '\'' ? end_of_string(at) : at;
}

std::size_t TomlDepth::end_of_string(std::size_t at) const {
  const char quote = text_[at];
  const std::string_view three = quote == '"' ? R"(""")" : "'''";
  const bool many_lines = text_.substr(at).starts_with(three);
  const std::string_view closing = three.substr(0, many_lines ? 3 : 1);
  for (std::size_t i = at + closing.size(); i < text_.size(); ++i) {
    if (text_[i] == '\\' && quote == '"') {
      ++i;
    } else if (text_[i] == '\n' && !many_lines) {
      return i;  // it is not TOML
    } else if (text_.substr(i).starts_with(closing)) {
      i += closing.size();
      // Up to two more quotes belong to the text of a string of many lines.
      for (int more = 0; many_lines && more < 2 && text_.substr(i).starts_with(quote); ++more) ++i;
      return i;
    }
  }
  return text_.size();
}

}  // namespace fairlead::gateway
