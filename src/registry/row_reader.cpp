#include "registry/row_reader.hpp"

#include <algorithm>

#include "base/printable.hpp"
#include "base/rfc3339.hpp"
#include "registry/codes.hpp"
#include "registry/json.hpp"

namespace fairlead::registry {

namespace {

std::string over(NamedLimit limit, std::string_view unit) {
  return "has more than " + std::string(limit.name) + " (" + std::to_string(limit.value) + ") " +
         std::string(unit);
}

bool has_unprintable(std::string_view text, std::string_view allowed) {
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    if (c.length == 0) return true;
    if (is_unprintable(c.value) && !allowed.contains(text.front())) return true;
    text.remove_prefix(c.length);
  }
  return false;
}

std::size_t character_count(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

Error invalid_row(std::string message, std::string pointer) {
  return Error(ErrorKind::validation, std::move(message)).with([&](ErrorDetail& d) {
    d.failure_code = kInvalidRow;
    d.pointer = std::move(pointer);
  });
}

std::optional<std::string> line_problem(std::string_view text, NamedLimit max_bytes) {
  if (text.empty()) return "is empty";
  if (text.size() > max_bytes.value) return over(max_bytes, "bytes");
  if (has_unprintable(text, "")) return "has control characters";
  return std::nullopt;
}

std::optional<std::string> characters_problem(std::string_view text, NamedLimit max_characters,
                                              bool several_lines) {
  if (character_count(text) > max_characters.value) return over(max_characters, "characters");
  if (has_unprintable(text, several_lines ? "\r\n\t" : "")) return "has control characters";
  return std::nullopt;
}

RowReader::RowReader(json::View document) : in_(document, "", problem_) {
  if (document.is(json::Type::object)) return;
  problem_ = invalid_row("the document is not a JSON object", "");
}

Error RowReader::error() const {
  Error error = *problem_;
  return std::move(error).with([](ErrorDetail& d) { d.failure_code = kInvalidRow; });
}

RowReader& RowReader::text(std::string_view key, std::string& into, const TextCheck& check) {
  if (!in_.has(key)) return *this;
  in_.string(key, into);
  if (const std::optional<std::string> problem = check(into)) in_.fail(key, *problem);
  return *this;
}

RowReader& RowReader::title(std::string& into) {
  return text("title", into,
              [](std::string_view title) { return characters_problem(title, kMaxTitleCharacters); });
}

RowReader& RowReader::description(std::string& into) {
  return text("description", into, [](std::string_view description) {
    return characters_problem(description, kMaxDescriptionCharacters, true);
  });
}

RowReader& RowReader::time(std::string_view key, std::optional<Time>& into) {
  if (!in_.has(key)) return *this;
  std::string text;
  in_.string(key, text);
  into = parse_rfc3339(text);
  if (!into) in_.fail(key, "is not a time such as 2026-07-28T10:00:00Z");
  return *this;
}

RowReader& RowReader::time(std::string_view key, Time& into) {
  std::optional<Time> read;
  time(key, read);
  into = read.value_or(into);
  return *this;
}

RowReader& RowReader::flag(std::string_view key, bool& into) {
  in_.flag(key, into);
  return *this;
}

RowReader& RowReader::any(std::string_view key, json::Raw& into) {
  if (!in_.has(key)) return *this;
  into = json::Raw::trusted(Bytes::adopt(json::minify(in_.view()[key].text())), true);
  return *this;
}

RowReader& RowReader::object(std::string_view key, json::Raw& into) {
  any(key, into);
  if (!into.absent() && !json::View(into).is(json::Type::object)) in_.fail(key, "is not an object");
  return *this;
}

RowReader& RowReader::id(std::string_view key, std::string& into) {
  return text(key, into, [](std::string_view id) { return line_problem(id, kMaxIdBytes); });
}

RowReader& RowReader::require(std::string_view key) {
  if (!in_.has(key)) in_.fail(key, "is missing");
  return *this;
}

void read_list(json::ConfigReader& in, std::string_view key, std::vector<std::string>& into, NamedLimit max,
               const TextCheck& check) {
  in.strings(key, into);
  if (into.size() > max.value) return in.fail(key, over(max, "entries"));
  for (std::size_t i = 0; i < into.size(); ++i)
    if (const std::optional<std::string> problem = check(into[i]))
      in.fail_entry(key, std::to_string(i), *problem);
}

void read_tags(json::ConfigReader& in, std::string_view key, std::vector<std::string>& into) {
  read_list(in, key, into, kMaxTags, [](std::string_view tag) { return line_problem(tag, kMaxTagBytes); });
}

void read_patterns(json::ConfigReader& in, std::string_view key, std::vector<std::string>& into) {
  read_list(in, key, into, kMaxPatterns,
            [](std::string_view pattern) { return line_problem(pattern, kMaxPatternBytes); });
}

void read_ids(json::ConfigReader& in, std::string_view key, std::vector<std::string>& into, NamedLimit max) {
  read_list(in, key, into, max, [](std::string_view id) { return line_problem(id, kMaxIdBytes); });
}

void require_texts(json::ConfigReader& in, std::string_view key) {
  in.view()[key].each_member([&](std::string_view name, bool escaped, json::View value) {
    if (!value.is(json::Type::string))
      in.fail_entry(key, escaped ? json::unescape(name) : std::string(name), "is not a string");
    return true;
  });
}

void read_renames(json::ConfigReader& in, std::map<std::string, std::string>& into, const TextCheck& check) {
  constexpr std::string_view kKey = "rename";
  require_texts(in, kKey);
  in.map(kKey, into);
  if (into.size() > kMaxPatterns.value) return in.fail(kKey, over(kMaxPatterns, "entries"));
  std::map<std::string_view, std::string_view> old_names;
  for (const auto& [old_name, new_name] : into) {
    const std::optional<std::string> old_problem = line_problem(old_name, kMaxPatternBytes);
    if (old_problem) return in.fail_entry(kKey, old_name, "is a rule for a name that " + *old_problem);
    if (const std::optional<std::string> problem = check(new_name))
      return in.fail_entry(kKey, old_name, *problem);
    const auto [same, added] = old_names.emplace(new_name, old_name);
    if (!added)
      return in.fail_entry(kKey, old_name, "has the same value as `" + std::string(same->second) + "`");
  }
}

void write_text(json::Writer& out, std::string_view key, const std::string& value) {
  if (!value.empty()) out.key(key).string(value);
}

void write_list(json::Writer& out, std::string_view key, const std::vector<std::string>& values) {
  if (values.empty()) return;
  out.key(key).begin_array();
  for (const std::string& value : values) out.string(value);
  out.end_array();
}

void write_map(json::Writer& out, std::string_view key, const std::map<std::string, std::string>& values) {
  if (values.empty()) return;
  out.key(key).begin_object();
  for (const auto& [name, value] : values) out.key(name).string(value);
  out.end_object();
}

void write_time(json::Writer& out, std::string_view key, Time time) {
  out.key(key).string(format_rfc3339(time));
}

Result<void> check_new_body(json::View body) {
  if (const Result<void> checked = check_body(body); !checked) return checked;
  for (const std::string_view key : {"id", "createdAt", "updatedAt", "version"}) {
    const json::View value = body[key];
    if (value.absent() || value.is(json::Type::null)) continue;
    return invalid_row("`" + std::string(key) + "` is set by the registry", "/" + std::string(key));
  }
  return {};
}

Result<json::Raw> patched_document(json::View document, json::View patch) {
  Result<json::Raw> merged = merge_patch(document, patch);
  if (!merged) return merged;
  if (const Result<void> checked = check_body(json::View(*merged)); !checked) return checked.error();
  return merged;
}

}  // namespace fairlead::registry
