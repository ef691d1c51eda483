// Editing YAML by the positions of its nodes. A new entry becomes the first child of its container, because
// that place is certain.
#include <yaml.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "clients/edit_text.hpp"

namespace fairlead::clients::edit {

namespace {

struct YamlNode {
  enum class Kind { scalar, block_scalar, mapping, sequence };
  Kind kind = Kind::scalar;
  bool flow = false;
  std::size_t begin = 0;  // offsets in the text
  std::size_t end = 0;
  std::string text;                                 // of a scalar
  std::vector<std::unique_ptr<YamlNode>> children;  // of a mapping: keys and values in turn
};
using YamlNodePtr = std::unique_ptr<YamlNode>;

// Converts positions of libyaml to offsets. Positions that increase cost one pass over the text.
class MarkOffsets {
 public:
  explicit MarkOffsets(std::string_view text) : text_(text) {
    at_ = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
    for (std::size_t begin = at_; lines_.empty() || begin < text.size(); begin = next_line(text, begin))
      lines_.push_back(begin);
  }

  std::size_t of(const yaml_mark_t& mark) {
    if (mark.line >= lines_.size()) return text_.size();
    if (mark.line != line_ || mark.column < column_) {
      line_ = mark.line;
      column_ = 0;
      at_ = lines_[line_];
    }
    for (; column_ < mark.column && at_ < text_.size(); ++column_) {
      ++at_;
      while (at_ < text_.size() && (static_cast<unsigned char>(text_[at_]) & 0xC0) == 0x80) ++at_;
    }
    return at_;
  }

 private:
  std::string_view text_;
  std::vector<std::size_t> lines_;  // where each line begins
  std::size_t line_ = 0;            // the position of the last call
  std::size_t column_ = 0;
  std::size_t at_ = 0;
};

// Builds the tree of nodes. REQUIRES: yaml_to_json() has accepted the text, so its depth is limited.
class NodeReader {
 public:
  explicit NodeReader(std::string_view text) : offsets_(text) {
    ready_ = yaml_parser_initialize(&parser_) != 0;
    if (ready_)
      yaml_parser_set_input_string(&parser_, reinterpret_cast<const yaml_char_t*>(text.data()), text.size());
  }
  ~NodeReader() {
    if (ready_) yaml_parser_delete(&parser_);
  }
  NodeReader(const NodeReader&) = delete;

  // Returns nullptr if the text has no document.
  YamlNodePtr read() {
    for (int event = 0; event < 3; ++event) {
      YamlNodePtr node = next();
      if (node) return node;
    }
    return nullptr;
  }

 private:
  // Reads one event, and for the start of a collection all of it. Returns nullptr for other events.
  YamlNodePtr next() {
    yaml_event_t event;
    if (!ready_ || !yaml_parser_parse(&parser_, &event)) return nullptr;
    auto node = std::make_unique<YamlNode>();
    node->begin = offsets_.of(event.start_mark);
    node->end = offsets_.of(event.end_mark);
    const yaml_event_type_t type = event.type;
    if (type == YAML_SCALAR_EVENT) {
      const auto& scalar = event.data.scalar;
      node->text.assign(reinterpret_cast<const char*>(scalar.value), scalar.length);
      const bool block =
          scalar.style == YAML_LITERAL_SCALAR_STYLE || scalar.style == YAML_FOLDED_SCALAR_STYLE;
      if (block) node->kind = YamlNode::Kind::block_scalar;
    } else if (type == YAML_MAPPING_START_EVENT) {
      node->kind = YamlNode::Kind::mapping;
      node->flow = event.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
    } else if (type == YAML_SEQUENCE_START_EVENT) {
      node->kind = YamlNode::Kind::sequence;
      node->flow = event.data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
    }
    const bool ends = type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT;
    if (ends) collection_end_ = node->end;
    yaml_event_delete(&event);
    const bool collection = type == YAML_MAPPING_START_EVENT || type == YAML_SEQUENCE_START_EVENT;
    if (collection) {
      while (YamlNodePtr child = next()) node->children.push_back(std::move(child));
      node->end = collection_end_;
    }
    return collection || type == YAML_SCALAR_EVENT || type == YAML_ALIAS_EVENT ? std::move(node) : nullptr;
  }

  MarkOffsets offsets_;
  yaml_parser_t parser_{};
  bool ready_ = false;
  std::size_t collection_end_ = 0;
};

// Where a container or an entry is.
struct Found {
  const YamlNode* key = nullptr;  // null for the element of a list
  const YamlNode* value = nullptr;
};

std::optional<Found> find_key(const YamlNode& mapping, std::string_view name) {
  if (mapping.kind != YamlNode::Kind::mapping) return std::nullopt;
  for (std::size_t i = 0; i + 1 < mapping.children.size(); i += 2) {
    if (mapping.children[i]->text == name)
      return Found{mapping.children[i].get(), mapping.children[i + 1].get()};
  }
  return std::nullopt;
}

std::optional<Found> find_element(const YamlNode& sequence, std::string_view name) {
  if (sequence.kind != YamlNode::Kind::sequence) return std::nullopt;
  for (const YamlNodePtr& element : sequence.children) {
    const std::optional<Found> member = find_key(*element, "name");
    if (member && member->value->text == name) return Found{nullptr, element.get()};
  }
  return std::nullopt;
}

// The offset after the last line of a node.
std::size_t end_of_lines(std::string_view text, const YamlNode& node) {
  if (!node.flow && !node.children.empty()) {
    std::size_t end = 0;
    for (const YamlNodePtr& child : node.children) end = std::max(end, end_of_lines(text, *child));
    return end;
  }
  // A block scalar ends at the beginning of the line after it, and after the blank lines there.
  if (node.kind != YamlNode::Kind::block_scalar) return next_line(text, node.end);
  const std::size_t last = text.substr(0, node.end).find_last_not_of(" \t\r\n");
  return next_line(text, last == std::string_view::npos ? node.begin : std::max(last, node.begin));
}

// The offset of the dash of an element of a block sequence.
std::size_t dash_of(std::string_view text, const YamlNode& element) {
  const std::size_t dash = text.rfind('-', element.begin == 0 ? 0 : element.begin - 1);
  return dash == std::string_view::npos ? element.begin : dash;
}

bool is_plain_word(std::string_view text) {
  static constexpr std::string_view kReserved[] = {"true", "false", "null", "yes", "no",
                                                   "on",   "off",   "y",    "n"};
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_' || c == '-'; };
  return !text.empty() && lower[0] >= 'a' && lower[0] <= 'z' && std::ranges::all_of(lower, letter) &&
         std::ranges::find(kReserved, lower) == std::end(kReserved);
}

std::string yaml_scalar(json::View value) {
  const std::optional<std::string> text = value.as_string();
  return text && is_plain_word(*text) ? *text : std::string(value.text());
}

// The lines of the members of an object, each indented.
std::string yaml_lines(json::View object, const std::string& indentation, std::string_view line_end) {
  std::string out;
  object.each_member([&](std::string_view key, bool, json::View member) {
    const std::string name = is_plain_word(key) ? std::string(key) : "\"" + std::string(key) + "\"";
    out += indentation + name + ":";
    if (member.is(json::Type::object) && member.size() > 0) {
      out += std::string(line_end) + yaml_lines(member, indentation + "  ", line_end);
    } else {
      out += " " + yaml_scalar(member) + std::string(line_end);
    }
    return true;
  });
  return out;
}

std::string yaml_entry(bool is_list, std::string_view name, json::View value, const std::string& indentation,
                       std::string_view line_end) {
  const std::string inner = indentation + "  ";
  std::string lines = yaml_lines(value, inner, line_end);
  if (is_list) return lines.replace(0, inner.size(), indentation + "- ");
  const std::string key = is_plain_word(name) ? std::string(name) : "\"" + std::string(name) + "\"";
  return indentation + key + ":" + std::string(line_end) + lines;
}

Error cannot_edit(std::string_view reason) {
  return Error(ErrorKind::validation, "the YAML cannot be changed safely: " + std::string(reason));
}

std::string blanks(std::size_t count) {
  return std::string(count, ' ');
}

std::string appended(std::string_view text, const std::string& lines) {
  std::string out(text);
  if (!out.empty() && !out.ends_with('\n')) out += line_end_of(text);
  return out + lines;
}

// Replaces the lines of the entry, or its value in a flow collection.
Result<std::string> replace_entry(std::string_view text, const Found& entry, bool is_list, bool flow,
                                  std::string_view name, json::View value) {
  std::string out(text);
  if (flow || entry.value->flow)
    return out.replace(entry.value->begin, entry.value->end - entry.value->begin, std::string(value.text()));
  const std::size_t anchor = entry.key ? entry.key->begin : dash_of(text, *entry.value);
  if (!begins_line(text, anchor)) return cannot_edit("the entry does not begin a line");
  const std::size_t begin = line_begin(text, anchor);
  const std::size_t end = end_of_lines(text, *entry.value);
  return out.replace(begin, end - begin,
                     yaml_entry(is_list, name, value, blanks(anchor - begin), line_end_of(text)));
}

Result<std::string> insert_entry(std::string_view text, const Found& container, bool is_list,
                                 std::string_view name, json::View value) {
  const YamlNode& list = *container.value;
  std::string out(text);
  const std::size_t key_column = container.key->begin - line_begin(text, container.key->begin);
  const bool has_children = !list.children.empty();
  if (list.flow && has_children) {
    const std::string entry =
        is_list ? std::string(value.text()) : "\"" + std::string(name) + "\": " + std::string(value.text());
    out.insert(list.begin + 1, entry + ", ");
    return out;
  }
  if (!has_children) {  // null, {} or []
    if (list.kind == YamlNode::Kind::scalar && !list.text.empty() && list.text != "null" && list.text != "~")
      return cannot_edit("`" + container.key->text + "` has a value of another kind");
    std::size_t begin = container.key->end;
    begin = text.find(':', begin) + 1;
    const std::size_t end = std::max(begin, list.end);
    const std::string lines =
        yaml_entry(is_list, name, value, blanks(key_column + (is_list ? 0 : 2)), line_end_of(text));
    const std::size_t next = next_line(text, end);
    if (next == text.size() && !text.ends_with('\n')) out += line_end_of(text);
    out.insert(next_line(out, end), lines);
    return out.erase(begin, end - begin);
  }
  const YamlNode& first = *list.children.front();
  const std::size_t anchor = list.kind == YamlNode::Kind::sequence ? dash_of(text, first) : first.begin;
  if (!begins_line(text, anchor)) return cannot_edit("its first entry does not begin a line");
  const std::string entry =
      yaml_entry(is_list, name, value, blanks(anchor - line_begin(text, anchor)), line_end_of(text));
  out.insert(next_line(text, container.key->end), entry);
  return out;
}

// Finds the container, whose path has one key in all clients with YAML.
std::optional<Found> find_container(const YamlNode& document, const Path& container) {
  Found at{nullptr, &document};
  for (const std::string& key : container) {
    const std::optional<Found> next = find_key(*at.value, key);
    if (!next) return std::nullopt;
    at = *next;
  }
  return at;
}

}  // namespace

Result<std::string> put_yaml(std::string_view text, const Path& container, bool is_list,
                             std::string_view name, json::View value) {
  const YamlNodePtr document = NodeReader(text).read();
  const std::string_view line_end = line_end_of(text);
  if (document && document->flow) return cannot_edit("the whole document is in flow style");
  const std::optional<Found> found = document ? find_container(*document, container) : std::nullopt;
  if (!found) {
    const std::size_t column = document ? document->begin - line_begin(text, document->begin) : 0;
    const std::string lines = blanks(column) + container.front() + ":" + std::string(line_end) +
                              yaml_entry(is_list, name, value, blanks(column + 2), line_end);
    return appended(text, lines);
  }
  const std::optional<Found> entry =
      is_list ? find_element(*found->value, name) : find_key(*found->value, name);
  if (entry) return replace_entry(text, *entry, is_list, found->value->flow, name, value);
  return insert_entry(text, *found, is_list, name, value);
}

Result<std::string> remove_yaml(std::string_view text, const Path& container, bool is_list,
                                std::string_view name) {
  const YamlNodePtr document = NodeReader(text).read();
  const std::optional<Found> found = document ? find_container(*document, container) : std::nullopt;
  if (!found) return std::string(text);
  const std::optional<Found> entry =
      is_list ? find_element(*found->value, name) : find_key(*found->value, name);
  if (!entry) return std::string(text);
  if (found->value->flow) return cannot_edit("the entry is in a flow collection");
  const std::size_t anchor = entry->key ? entry->key->begin : dash_of(text, *entry->value);
  if (!begins_line(text, anchor)) return cannot_edit("the entry does not begin a line");
  const std::size_t begin = line_begin(text, anchor);
  std::string out(text);
  out.erase(begin, end_of_lines(text, *entry->value) - begin);
  const std::size_t siblings = found->value->children.size() / (is_list ? 1 : 2);
  const std::size_t colon = text.find(':', found->key->end);
  if (siblings == 1 && colon < begin) out.insert(colon + 1, is_list ? " []" : " {}");
  return out;
}

}  // namespace fairlead::clients::edit
