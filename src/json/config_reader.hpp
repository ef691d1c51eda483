// ConfigReader: reads the members of a JSON object into the fields of a configuration. It keeps the first
// error, which names the path of the key. finish() reports members that were not read as unknown keys.
#pragma once

#include <chrono>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "fairlead/base/error.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::json {

class ConfigReader {
 public:
  // `problem` is set to the first error; readers of nested tables share it. `path` is the path of the object
  // in the file, such as "servers.files"; empty for the whole file. `pointer` is its JSON pointer in a
  // document; errors have the pointer of their key in ErrorDetail::pointer.
  ConfigReader(View object, std::string path, std::optional<Error>& problem, std::string pointer = {});

  // Each of the following functions assigns the value of the member `key` to `into` if the member is present
  // and not null. A value of another type is an error.
  ConfigReader& string(std::string_view key, std::string& into);
  ConfigReader& flag(std::string_view key, bool& into);
  template <class Number>
  ConfigReader& number(std::string_view key, Number& into) {
    constexpr bool integral = std::is_integral_v<Number>;
    const auto max = static_cast<double>(std::numeric_limits<Number>::max());
    if (const auto read = read_number(key, integral, max)) into = static_cast<Number>(*read);
    return *this;
  }
  // Reads a number of bytes such as 65536, or a string with a unit such as "512M".
  ConfigReader& bytes(std::string_view key, std::optional<std::uint64_t>& into);
  // Reads a string such as "30s", or a number of seconds.
  ConfigReader& duration(std::string_view key, std::chrono::milliseconds& into);
  // Lists and maps of more than max_config_entries (10,000) are rejected.
  ConfigReader& strings(std::string_view key, std::vector<std::string>& into);
  ConfigReader& map(std::string_view key, std::map<std::string, std::string>& into);
  // Reads a string that must be one of `words`.
  template <class T>
  ConfigReader& choice(std::string_view key, T& into,
                       const std::vector<std::pair<std::string_view, T>>& words) {
    std::string word;
    if (!has(key)) return *this;
    string(key, word);
    for (const auto& [name, value] : words) {
      if (word != name) continue;
      into = value;
      return *this;
    }
    std::string all;
    for (const auto& [name, value] : words) all += (all.empty() ? "" : ", ") + std::string(name);
    fail(key, "is none of " + all);
    return *this;
  }
  // Calls `read` for a member that is an object. Does not call it if the member is absent.
  ConfigReader& table(std::string_view key, const std::function<void(ConfigReader&)>& read);
  // Calls `read` for every member; every value must be an object. Faster than a call of table() for each
  // member, because each lookup reads the whole text.
  void each_table(const std::function<void(const std::string& key, ConfigReader&)>& read);

  // Fails if one of these members is the number 0 or a duration of 0. Called after the members were read.
  ConfigReader& require_nonzero(std::initializer_list<std::string_view> keys);
  // Fails with `reason` if `allowed` is false and one of the keys is present: such a key would have no
  // effect.
  ConfigReader& allow_only_if(bool allowed, std::initializer_list<std::string_view> keys,
                              const std::string& reason);

  // Accepts the key for compatibility and ignores its value.
  ConfigReader& ignore(std::string_view key);

  bool has(std::string_view key) { return !member(key).absent(); }
  View view() const noexcept { return object_; }
  const std::string& path() const noexcept { return path_; }
  const std::string& pointer() const noexcept { return pointer_; }
  // Records an error about `key`, unless there is one already.
  void fail(std::string_view key, const std::string& problem);
  // The same about the entry `entry` of a list or map that is the value of `key`.
  void fail_entry(std::string_view key, std::string_view entry, const std::string& problem);
  // Fails if the object has a member that no function has read. The message suggests a known key with a
  // similar name.
  void finish();
  // Calls `visit` for each member that no function has read: the message, which suggests a known key with a
  // similar name, and the JSON pointer. Keys that begin with `_`, `x-` or `//` are comments of the user.
  void each_unknown(const std::function<void(std::string message, std::string pointer)>& visit);

 private:
  struct Member {
    std::string_view key;  // as in the text
    bool escaped;
    View value;
  };

  View member(std::string_view key);
  View find(std::string_view key);
  std::string unknown_key_message(const std::string& key) const;
  void fail_element(std::string_view key, std::size_t index);
  void set_problem(std::string message, std::string pointer);
  std::string path_of(std::string_view key) const;
  std::string pointer_of(std::string_view key) const;
  ConfigReader inner(std::string_view key, View value);
  std::optional<double> read_number(std::string_view key, bool integral, double max);

  View object_;
  std::optional<std::vector<Member>> members_;  // of object_, when they have been read
  std::string path_;
  std::string pointer_;
  std::optional<Error>& problem_;
  std::set<std::string, std::less<>> known_keys_;  // the keys that a function has read or ignored
};

// Appends `key` to a JSON pointer (RFC 6901). Truncates a long key.
void append_to_pointer(std::string& pointer, std::string_view key);

}  // namespace fairlead::json
