#include "json/toml_depth.hpp"

#include <algorithm>

namespace fairlead::json {

std::optional<std::size_t> TomlDepth::first_deeper_than(std::size_t max) {
  for (std::size_t at = 0; at < text_.size();) {
    const std::size_t end = end_of_comment_or_string(at);
    if (end == at) process_char(text_[at]);
    if (text_[at] == '"' || text_[at] == '\'') line_is_blank_ = false;
    if (depth_ > max) return at;
    at = std::max(end, at + 1);
  }
  return std::nullopt;
}

void TomlDepth::process_char(char c) {
  if (c == '\n') return end_line();
  if (c == ' ' || c == '\t' || c == '\r') return;
  if (c == '[' && line_is_blank_ && depths_before_brackets_.empty()) {
    line_is_header_ = true;
    depth_ = 0;
  }
  line_is_blank_ = false;
  if (c == '[' || c == '{') {
    depths_before_brackets_.push_back(depth_++);
  } else if (c == '.') {
    ++depth_;
  } else if (c == ',' && !depths_before_brackets_.empty()) {
    depth_ = depths_before_brackets_.back() + 1;
  } else if ((c == ']' || c == '}') && !depths_before_brackets_.empty()) {
    depth_ = depths_before_brackets_.back();
    depths_before_brackets_.pop_back();
  }
  line_max_depth_ = std::max(line_max_depth_, depth_);
}

void TomlDepth::end_line() {
  if (line_is_header_) header_depth_ = line_max_depth_;
  depth_ = depths_before_brackets_.empty() ? header_depth_ : depths_before_brackets_.back() + 1;
  line_max_depth_ = 0;
  line_is_blank_ = true;
  line_is_header_ = false;
}

std::size_t TomlDepth::end_of_comment_or_string(std::size_t at) const {
  if (text_[at] == '#') return std::min(text_.find('\n', at), text_.size());
  return text_[at] == '"' || text_[at] == '\'' ? end_of_string(at) : at;
}

std::size_t TomlDepth::end_of_string(std::size_t at) const {
  const char quote = text_[at];
  const std::string_view triple = quote == '"' ? R"(""")" : "'''";
  const bool is_multiline = text_.substr(at).starts_with(triple);
  const std::string_view closing = triple.substr(0, is_multiline ? 3 : 1);
  for (std::size_t i = at + closing.size(); i < text_.size(); ++i) {
    if (text_[i] == '\\' && quote == '"') {
      ++i;
    } else if (text_[i] == '\n' && !is_multiline) {
      return i;  // not valid TOML
    } else if (text_.substr(i).starts_with(closing)) {
      i += closing.size();
      // Up to two more quotes belong to the text of a multi-line string.
      for (int extra = 0; is_multiline && extra < 2 && text_.substr(i).starts_with(quote); ++extra) ++i;
      return i;
    }
  }
  return text_.size();
}

}  // namespace fairlead::json
