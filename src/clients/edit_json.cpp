// Editing JSON with comments: offsets in the text with its comments blanked are offsets in the text.
#include <optional>

#include "clients/edit_text.hpp"
#include "clients/read.hpp"
#include "json/jsonc.hpp"

namespace fairlead::clients::edit {

namespace {

struct MemberRange {
  std::size_t key_begin;  // of the quote
  std::size_t value_begin;
  std::size_t value_end;
};

// An object in the text, and its members.
struct ObjectRange {
  std::size_t begin;  // of the brace
  std::size_t end;    // after the closing brace
  std::vector<MemberRange> members;
  std::optional<std::size_t> wanted;  // index of the member that was looked for
};

ObjectRange object_range(std::string_view blank, json::View object, std::string_view wanted) {
  const auto offset = [&](std::string_view part) {
    return static_cast<std::size_t>(part.data() - blank.data());
  };
  ObjectRange range{offset(object.text()), offset(object.text()) + object.text().size(), {}, {}};
  object.each_member([&](std::string_view key, bool escaped, json::View value) {
    if (json::key_equals(key, escaped, wanted)) range.wanted = range.members.size();
    const std::size_t value_begin = offset(value.text());
    range.members.push_back(MemberRange{offset(key) - 1, value_begin, value_begin + value.text().size()});
    return true;
  });
  return range;
}

// The offset of a comma after `from`, before `end`, that is not in a comment; npos if there is none. A
// trailing comma is blank in `blank`, so comments are skipped here.
std::size_t find_comma(std::string_view text, std::size_t from, std::size_t end) {
  for (std::size_t at = from; at < end; ++at) {
    if (text.compare(at, 2, "//") == 0) {
      at = next_line(text, at) - 1;
    } else if (text.compare(at, 2, "/*") == 0) {
      at = text.find("*/", at + 2);
      if (at == std::string_view::npos) return at;
      ++at;
    } else if (text[at] == ',') {
      return at;
    }
  }
  return std::string_view::npos;
}

// The blanks by which the members of an object are indented more than the object.
std::string indentation_unit(std::string_view text, std::string_view blank) {
  const std::size_t open = blank.find('{');
  if (open == std::string_view::npos) return "  ";
  const std::size_t first = blank.find_first_not_of(" \t\r\n", open + 1);
  if (first == std::string_view::npos || blank[first] != '"' || !begins_line(text, first)) return "  ";
  const std::string_view indentation = indentation_at(text, first);
  return indentation.empty() ? "  " : std::string(indentation);
}

// Inserts a member at the end of an object.
std::string insert_member(std::string_view text, const ObjectRange& object, std::string_view key,
                          json::View value, const std::string& unit) {
  const std::string line_end(line_end_of(text));
  const std::size_t brace = object.end - 1;
  std::string out(text);
  const std::string name = "\"" + std::string(key) + "\": ";
  const std::string outer(indentation_at(text, object.begin));
  const bool empty = object.members.empty();
  const bool blank_inside =
      text.substr(object.begin + 1, brace - object.begin - 1).find_first_not_of(" \t\r\n") ==
      std::string_view::npos;
  if (empty && blank_inside) {
    const std::string inner = outer + unit;
    return out.replace(
        object.begin + 1, brace - object.begin - 1,
        line_end + inner + name + pretty_json(value, inner, unit, line_end) + line_end + outer);
  }
  std::string inner = std::string(indentation_at(text, brace)) + unit;
  if (!empty && begins_line(text, object.members.back().key_begin))
    inner = indentation_at(text, object.members.back().key_begin);
  const std::size_t last = empty ? brace : object.members.back().value_end;
  const bool trailing_comma = !empty && find_comma(text, last, brace) != std::string_view::npos;
  const std::string comma = trailing_comma ? "," : "";
  if (begins_line(text, brace)) {
    out.insert(line_begin(text, brace),
               inner + name + pretty_json(value, inner, unit, line_end) + comma + line_end);
  } else {
    std::size_t at = brace;
    while (at > 0 && (text[at - 1] == ' ' || text[at - 1] == '\t')) --at;
    out.insert(at, " " + name + pretty_json(value, outer, unit, line_end) + comma);
  }
  if (!empty && !trailing_comma) out.insert(last, ",");
  return out;
}

std::string erase_member(std::string_view text, const ObjectRange& object) {
  const std::size_t index = *object.wanted;
  const MemberRange& member = object.members[index];
  const bool is_last = index + 1 == object.members.size();
  const std::size_t limit = is_last ? object.end - 1 : object.members[index + 1].key_begin;
  const std::size_t comma = find_comma(text, member.value_end, limit);
  std::size_t begin = member.key_begin;
  std::size_t end = comma == std::string_view::npos ? member.value_end : comma + 1;
  std::string out(text);
  const std::size_t rest = text.find_first_not_of(" \t\r", end);
  if (begins_line(text, begin) && rest != std::string_view::npos && text[rest] == '\n') {
    begin = line_begin(text, begin);
    end = rest + 1;
  } else if (!is_last && rest != std::string_view::npos) {
    end = rest;
  } else {
    while (begin > 0 && (text[begin - 1] == ' ' || text[begin - 1] == '\t')) --begin;
  }
  out.erase(begin, end - begin);
  if (!is_last || index == 0) return out;
  // The comma of the member before is kept only if a comma followed this one.
  const std::size_t before = find_comma(text, object.members[index - 1].value_end, member.key_begin);
  if (comma == std::string_view::npos && before != std::string_view::npos) out.erase(before, 1);
  return out;
}

// Removes the blanks of an object that has become empty.
std::string collapse_empty(std::string text, std::size_t begin) {
  const std::size_t close = text.find_first_not_of(" \t\r\n", begin + 1);
  if (close != std::string::npos && text[close] == '}') text.erase(begin + 1, close - begin - 1);
  return text;
}

json::Raw nested(const Path& container, std::size_t from, std::string_view name, json::View value) {
  std::string open = "{";
  std::string close = "}";
  for (std::size_t i = from; i < container.size(); ++i) {
    open += "\"" + container[i] + "\":{";
    close += "}";
  }
  open += "\"" + std::string(name) + "\":" + std::string(value.text()) + close;
  return json::Raw::trusted(Bytes::copy_of(open));
}

Error not_an_object(std::string_view text, std::string_view blank, json::View value, std::string_view key) {
  const auto offset = static_cast<std::size_t>(value.text().data() - blank.data());
  return Error(ErrorKind::validation, "line " + std::to_string(json::line_at(text, offset)) + ": `" +
                                          std::string(key) + "` is not an object");
}

}  // namespace

Result<std::string> put_json(std::string_view text, const Path& container, std::string_view name,
                             json::View value) {
  const std::string blank = json::blank_comments(text);
  if (blank.find_first_not_of(" \t\r\n") == std::string::npos) {
    const std::string line_end(line_end_of(text));
    const json::Raw whole = nested(container, 0, name, value);
    std::string out(text);
    if (!out.empty() && !out.ends_with('\n') && out != "\xEF\xBB\xBF") out += line_end;
    return out + pretty_json(json::View(whole), "", "  ", line_end) + line_end;
  }
  const std::string unit = indentation_unit(text, blank);
  json::View at{std::string_view(blank).substr(blank.find_first_not_of(" \t\r\n"))};
  at = json::View(at.text().substr(0, at.text().find_last_not_of(" \t\r\n") + 1));
  if (!at.is(json::Type::object)) return not_an_object(text, blank, at, "the document");
  for (std::size_t i = 0; i < container.size(); ++i) {
    const ObjectRange object = object_range(blank, at, container[i]);
    if (!object.wanted) {
      const json::Raw rest = nested(container, i + 1, name, value);
      return insert_member(text, object, container[i], json::View(rest), unit);
    }
    at = at[container[i]];
    if (!at.is(json::Type::object)) return not_an_object(text, blank, at, container[i]);
  }
  const ObjectRange object = object_range(blank, at, name);
  if (!object.wanted) return insert_member(text, object, name, value, unit);
  const MemberRange& member = object.members[*object.wanted];
  std::string out(text);
  return out.replace(member.value_begin, member.value_end - member.value_begin,
                     pretty_json(value, indentation_at(text, member.key_begin), unit, line_end_of(text)));
}

Result<std::string> remove_json(std::string_view text, const Path& container, std::string_view name) {
  const std::string blank = json::blank_comments(text);
  json::View at{std::string_view(blank).substr(blank.find_first_not_of(" \t\r\n"))};
  at = json::View(at.text().substr(0, at.text().find_last_not_of(" \t\r\n") + 1));
  for (const std::string& key : container) at = at[key];
  const ObjectRange object = object_range(blank, at, name);
  return collapse_empty(erase_member(text, object), object.begin);
}

}  // namespace fairlead::clients::edit
