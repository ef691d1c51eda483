// The parser behind front_matter.hpp. Private to it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/result.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::mcp {

class Yaml {
 public:
  // `first_line` is the number of the first line, for messages.
  Yaml(std::string_view text, std::size_t first_line);
  // The document, which must be a mapping, as JSON.
  Result<json::Raw> parse();

 private:
  static constexpr std::size_t kMostDepth = 32;

  struct Line {
    std::size_t indent;
    std::string_view text;   // without its indentation, and what has been read of it
    std::string_view whole;  // as it stands
    bool blank() const noexcept { return text.find_first_not_of(" \t") == std::string_view::npos; }
  };
  struct Key {
    std::string name;
    std::string_view rest;  // what follows the colon
  };
  using Keys = std::set<std::string>;

  // All of these are false when something is wrong, and problem_ says what.
  bool fail(std::size_t line, const std::string& what);
  bool node(std::size_t indent, std::size_t depth);
  bool mapping(std::size_t indent, std::size_t depth);
  bool sequence(std::size_t indent, std::size_t depth);
  bool value(std::size_t parent, std::size_t depth, bool in_mapping);
  bool nested(std::size_t parent, std::size_t depth, bool in_mapping);
  bool plain(std::size_t parent);
  bool plain_part(std::string_view text, std::string& out, bool& ended);
  bool block_scalar(std::size_t parent);
  bool resolve(const std::string& text, std::size_t line);
  bool add_key(Keys& keys, const std::string& key, std::size_t line);

  // Inside quotes and brackets (yaml_flow.cpp): characters, not lines.
  bool flow_value(std::size_t parent, std::size_t depth);
  bool flow_node(std::size_t depth);
  bool flow_sequence(std::size_t depth);
  bool flow_mapping(std::size_t depth);
  bool flow_plain(std::string& out);
  bool flow_space();
  bool quoted(std::string& out);
  bool fold(std::string& out, std::size_t keep);
  bool escape(std::string& out);
  bool more();
  std::optional<Key> quoted_key(std::string_view text);

  bool next();
  std::optional<Key> key_of(std::string_view text);
  std::string_view comment_cut(std::string_view text, bool& cut) const;

  std::size_t first_line_;
  std::vector<Line> lines_;
  std::size_t at_ = 0;  // the line being read
  json::Writer out_;
  std::optional<Error> problem_;

  std::string flow_;             // the lines of a value in quotes or brackets, as far as they were needed
  std::size_t pos_ = 0;          // in flow_
  std::size_t flow_line_ = 0;    // the last line of flow_
  std::size_t flow_parent_ = 0;  // lines must be indented more than this
  bool one_line_ = false;        // no further lines
};

}  // namespace fairlead::mcp
