// RowReader: reads the JSON form of a row with json::ConfigReader and checks the limits of row_limits.hpp.
// Private to the library.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/registry/model.hpp"
#include "json/config_reader.hpp"
#include "registry/row_limits.hpp"

namespace fairlead::registry {

// Returns an error of kind validation with the code kInvalidRow.
Error invalid_row(std::string message, std::string pointer);

// Returns why a text is invalid, as the end of a sentence; nullopt if it is valid.
using TextCheck = std::function<std::optional<std::string>(std::string_view text)>;

// Checks that a text is not empty, has at most `limit` characters or bytes, and no control characters.
std::optional<std::string> line_problem(std::string_view text, NamedLimit max_bytes);
std::optional<std::string> characters_problem(std::string_view text, NamedLimit max_characters,
                                              bool several_lines = false);

class RowReader {
 public:
  // REQUIRES: `document` is an object (see check_body()).
  explicit RowReader(json::View document);

  // Each function assigns the value of a member that is present and not null.
  RowReader& text(std::string_view key, std::string& into, const TextCheck& check);
  RowReader& title(std::string& into);
  RowReader& description(std::string& into);
  RowReader& time(std::string_view key, Time& into);
  RowReader& time(std::string_view key, std::optional<Time>& into);
  RowReader& flag(std::string_view key, bool& into);
  RowReader& object(std::string_view key, json::Raw& into);
  RowReader& any(std::string_view key, json::Raw& into);
  // The members that the registry sets, except `updatedAt`.
  template <class T>
  RowReader& common(T& row) {
    id("id", row.id);
    in_.number("version", row.version).require_nonzero({"version"});
    return time("createdAt", row.created_at);
  }
  RowReader& id(std::string_view key, std::string& into);
  // Reads a text that `parse` accepts; `words` lists these texts for the message.
  template <class T>
  RowReader& choice(std::string_view key, T& into, std::optional<T> (*parse)(std::string_view) noexcept,
                    std::string_view words) {
    std::string word;
    if (!in_.has(key)) return *this;
    in_.string(key, word);
    const std::optional<T> value = parse(word);
    if (value) into = *value;
    if (!value) in_.fail(key, "is none of " + std::string(words));
    return *this;
  }
  // Fails if the member is absent or null.
  RowReader& require(std::string_view key);

  json::ConfigReader& in() noexcept { return in_; }
  bool failed() const noexcept { return problem_.has_value(); }
  // Returns `row`, or the first error; fails if the document has unknown members.
  template <class T>
  Result<T> finish(T row) {
    in_.finish();
    if (problem_) return error();
    return row;
  }

 private:
  Error error() const;

  std::optional<Error> problem_;
  json::ConfigReader in_;
};

// Reads a list whose texts `check` accepts.
void read_list(json::ConfigReader& in, std::string_view key, std::vector<std::string>& into, NamedLimit max,
               const TextCheck& check);
void read_tags(json::ConfigReader& in, std::string_view key, std::vector<std::string>& into);
void read_patterns(json::ConfigReader& in, std::string_view key, std::vector<std::string>& into);
void read_ids(json::ConfigReader& in, std::string_view key, std::vector<std::string>& into, NamedLimit max);
// Fails if a value of a map is not a text. ConfigReader::map() also accepts numbers, which files may have;
// the API takes only what it returns.
void require_texts(json::ConfigReader& in, std::string_view key);
// Reads a map of old names to new ones. No two new names may be equal.
void read_renames(json::ConfigReader& in, std::map<std::string, std::string>& into, const TextCheck& check);

// Write a member unless its value is empty.
void write_text(json::Writer& out, std::string_view key, const std::string& value);
void write_list(json::Writer& out, std::string_view key, const std::vector<std::string>& values);
void write_map(json::Writer& out, std::string_view key, const std::map<std::string, std::string>& values);
void write_time(json::Writer& out, std::string_view key, Time time);

// Begins the object of a row with its id and name, and ends it with its times and version.
template <class T>
void begin_row(json::Writer& out, const T& row) {
  out.begin_object();
  write_text(out, "id", row.id);
  out.key("name").string(row.name);
}
template <class T>
json::Raw end_row(json::Writer& out, const T& row) {
  write_time(out, "createdAt", row.created_at);
  if constexpr (requires { row.updated_at; }) write_time(out, "updatedAt", row.updated_at);
  out.key("version").integer(row.version).end_object();
  return out.finish();
}

// Fails if the body of a new row has a member that the registry sets.
Result<void> check_new_body(json::View body);

// Applies a patch of a request to the JSON form of a row. Checks the size of both.
Result<json::Raw> patched_document(json::View document, json::View patch);

// Fails if a patched row differs from the row before in a member that the registry sets.
template <class T>
Result<T> with_unchanged_members(const T& before, Result<T> after) {
  if (!after) return after;
  const auto changed = [](std::string_view key) {
    return invalid_row("`" + std::string(key) + "` is set by the registry and cannot be changed",
                       "/" + std::string(key));
  };
  if (after->id != before.id) return changed("id");
  if (after->version != before.version) return changed("version");
  if (after->created_at != before.created_at) return changed("createdAt");
  if (after->updated_at != before.updated_at) return changed("updatedAt");
  return after;
}

}  // namespace fairlead::registry
