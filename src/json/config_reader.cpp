#include "json/config_reader.hpp"

#include "base/printable.hpp"
#include "base/suggestion.hpp"
#include "fairlead/base/duration.hpp"

namespace fairlead::json {

namespace {

constexpr std::size_t kMaxConfigEntries = 10'000;

std::string too_many_entries() {
  return "has more than max_config_entries (" + std::to_string(kMaxConfigEntries) + ") entries";
}

std::string shown_key(std::string_view key) {
  constexpr std::size_t kMaxShownKey = 100;
  return shortened(key, kMaxShownKey);
}

}  // namespace

void append_to_pointer(std::string& pointer, std::string_view key) {
  pointer += '/';
  for (const char c : shown_key(key)) {
    if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else {
      pointer += c;
    }
  }
}

ConfigReader::ConfigReader(View object, std::string path, std::optional<Error>& problem, std::string pointer)
    : object_(object), path_(std::move(path)), pointer_(std::move(pointer)), problem_(problem) {
  if (!object_.is(Type::object)) fail("", "is not a table");
}

void ConfigReader::set_problem(std::string message, std::string pointer) {
  if (problem_) return;
  problem_ = Error(ErrorKind::validation, std::move(message)).with([&](ErrorDetail& d) {
    d.pointer = std::move(pointer);
  });
}

std::string ConfigReader::path_of(std::string_view key) const {
  if (key.empty()) return path_;
  return (path_.empty() ? "" : path_ + ".") + shown_key(key);
}

void ConfigReader::fail(std::string_view key, const std::string& problem) {
  const std::string path = path_of(key);
  std::string pointer = pointer_;
  if (!key.empty()) append_to_pointer(pointer, key);
  set_problem((path.empty() ? std::string("the file") : "`" + path + "`") + " " + problem,
              std::move(pointer));
}

void ConfigReader::fail_entry(std::string_view key, std::string_view entry, const std::string& problem) {
  std::string pointer = pointer_;
  append_to_pointer(pointer, key);
  append_to_pointer(pointer, entry);
  set_problem("`" + path_of(key) + "." + shown_key(entry) + "` " + problem, std::move(pointer));
}

void ConfigReader::fail_element(std::string_view key, std::size_t index) {
  std::string pointer = pointer_;
  append_to_pointer(pointer, key);
  append_to_pointer(pointer, std::to_string(index));
  set_problem("`" + path_of(key) + "` is not a list of strings", std::move(pointer));
}

ConfigReader ConfigReader::inner(std::string_view key, View value) {
  std::string pointer = pointer_;
  append_to_pointer(pointer, key);
  return ConfigReader(value, path_of(key), problem_, std::move(pointer));
}

// Returns the member `key` and marks the key as known. A null member counts as absent, because programs that
// generate JSON write null for unset members.
View ConfigReader::member(std::string_view key) {
  known_keys_.emplace(key);
  const View value = find(key);
  return value.is(Type::null) ? View() : value;
}

// Reads the text once for all keys. If a key is repeated, its last value counts.
View ConfigReader::find(std::string_view key) {
  if (!members_) {
    members_.emplace();
    object_.each_member([&](std::string_view name, bool escaped, View value) {
      members_->push_back({name, escaped, value});
      return true;
    });
  }
  for (std::size_t i = members_->size(); i > 0; --i) {
    const Member& candidate = (*members_)[i - 1];
    if (key_equals(candidate.key, candidate.escaped, key)) return candidate.value;
  }
  return View();
}

ConfigReader& ConfigReader::ignore(std::string_view key) {
  known_keys_.emplace(key);
  return *this;
}

ConfigReader& ConfigReader::string(std::string_view key, std::string& into) {
  const View value = member(key);
  if (value.absent()) return *this;
  if (std::optional<std::string> text = value.as_string()) {
    into = std::move(*text);
  } else {
    fail(key, "is not a string");
  }
  return *this;
}

ConfigReader& ConfigReader::flag(std::string_view key, bool& into) {
  const View value = member(key);
  if (value.absent()) return *this;
  const std::optional<bool> read = value.as_bool();
  if (read) into = *read;
  if (!read) fail(key, "is neither true nor false");
  return *this;
}

std::optional<double> ConfigReader::read_number(std::string_view key, bool integral, double max) {
  const View value = member(key);
  if (value.absent()) return std::nullopt;
  const std::optional<double> read = integral && !value.as_int() ? std::nullopt : value.as_double();
  if (read && *read >= 0 && *read < max) return read;
  fail(key, std::string("is not a ") + (integral ? "whole " : "") + "number of 0 or more");
  return std::nullopt;
}

ConfigReader& ConfigReader::bytes(std::string_view key, std::optional<std::uint64_t>& into) {
  const View value = member(key);
  if (value.absent()) return *this;
  if (const auto plain = value.as_int(); plain && *plain >= 0) {
    into = static_cast<std::uint64_t>(*plain);
    return *this;
  }
  const std::string text = value.as_string().value_or("");
  const auto unit = text.find_first_not_of("0123456789");
  const std::string_view units = "KMGT";
  const bool fits = unit != std::string::npos && unit > 0 && unit < 10 && unit + 1 == text.size() &&
                    units.contains(text[unit]);
  const std::size_t shift = fits ? 10 * (units.find(text[unit]) + 1) : 0;
  const std::uint64_t number = fits ? std::stoull(text.substr(0, unit)) : 0;
  if (!fits) {
    fail(key, "is neither a number of bytes nor one with K, M, G or T");
  } else if (number > std::numeric_limits<std::uint64_t>::max() >> shift) {
    fail(key, "is too large");
  } else {
    into = number << shift;
  }
  return *this;
}

ConfigReader& ConfigReader::require_nonzero(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const View value = member(key);
    const Result<std::chrono::milliseconds> read = parse_duration(value.as_string().value_or("1"));
    if (value.as_double() == 0.0 || (read && read->count() == 0)) fail(key, "must be more than 0");
  }
  return *this;
}

ConfigReader& ConfigReader::allow_only_if(bool allowed, std::initializer_list<std::string_view> keys,
                                          const std::string& reason) {
  for (const std::string_view key : keys) {
    if (has(key) && !allowed) fail(key, reason);
  }
  return *this;
}

ConfigReader& ConfigReader::duration(std::string_view key, std::chrono::milliseconds& into) {
  const View value = member(key);
  if (value.absent()) return *this;
  const Result<std::chrono::milliseconds> read =
      parse_duration(value.is(Type::string) ? *value.as_string() : std::string(value.text()));
  if (read) into = *read;
  if (!read) fail(key, "is not a duration such as 250ms, 30s, 10m or 1h");
  return *this;
}

ConfigReader& ConfigReader::strings(std::string_view key, std::vector<std::string>& into) {
  const View value = member(key);
  if (value.absent()) return *this;
  if (!value.is(Type::array)) fail(key, "is not a list of strings");
  value.each_element([&](View element) {
    std::optional<std::string> text = element.as_string();
    if (!text) fail_element(key, into.size());
    if (text) into.push_back(std::move(*text));
    return text && into.size() <= kMaxConfigEntries;
  });
  if (into.size() > kMaxConfigEntries) fail(key, too_many_entries());
  return *this;
}

ConfigReader& ConfigReader::map(std::string_view key, std::map<std::string, std::string>& into) {
  const View value = member(key);
  if (value.absent()) return *this;
  if (!value.is(Type::object)) fail(key, "is not a table of strings");
  value.each_member([&](std::string_view name, bool escaped, View element) {
    const std::string entry = escaped ? unescape(name) : std::string(name);
    if (std::optional<std::string> text = element.as_string()) {
      into[entry] = std::move(*text);
    } else if (element.is(Type::number) || element.is(Type::boolean)) {
      into[entry] = element.text();
    } else if (!element.is(Type::null)) {
      fail_entry(key, entry, "is not a string");
    }
    return into.size() <= kMaxConfigEntries;
  });
  if (into.size() > kMaxConfigEntries) fail(key, too_many_entries());
  return *this;
}

ConfigReader& ConfigReader::table(std::string_view key, const std::function<void(ConfigReader&)>& read) {
  const View value = member(key);
  if (value.absent()) return *this;
  ConfigReader nested = inner(key, value);
  read(nested);
  return *this;
}

void ConfigReader::each_table(const std::function<void(const std::string& key, ConfigReader&)>& read) {
  object_.each_member([&](std::string_view raw_key, bool escaped, View value) {
    if (value.is(Type::null)) return true;
    const std::string key = escaped ? unescape(raw_key) : std::string(raw_key);
    ConfigReader nested = inner(key, value);
    read(key, nested);
    return !problem_;
  });
}

void ConfigReader::finish() {
  if (problem_) return;
  object_.each_member([&](std::string_view key, bool escaped, View) {
    const std::string name = escaped ? unescape(key) : std::string(key);
    if (!known_keys_.contains(name)) set_problem(unknown_key_message(name), pointer_of(name));
    return !problem_;
  });
}

void ConfigReader::each_unknown(const std::function<void(std::string message, std::string pointer)>& visit) {
  object_.each_member([&](std::string_view key, bool escaped, View) {
    const std::string name = escaped ? unescape(key) : std::string(key);
    const bool comment = name.starts_with('_') || name.starts_with("x-") || name.starts_with("//");
    if (!comment && !known_keys_.contains(name)) visit(unknown_key_message(name), pointer_of(name));
    return true;
  });
}

std::string ConfigReader::pointer_of(std::string_view key) const {
  std::string pointer = pointer_;
  append_to_pointer(pointer, key);
  return pointer;
}

std::string ConfigReader::unknown_key_message(const std::string& key) const {
  const std::vector<std::string> known(known_keys_.begin(), known_keys_.end());
  const std::string_view closest = closest_word(key, known);
  return "unknown key `" + shown_key(key) + "`" + (path_.empty() ? "" : " in [" + path_ + "]") +
         (closest.empty() ? "" : " (did you mean `" + std::string(closest) + "`?)");
}

}  // namespace fairlead::json
