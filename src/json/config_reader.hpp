// Reads the members of a JSON object into a configuration, one after the other. The first error is kept, with
// the path to its key; a member that was not read is an error too.
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
  // `problem` is shared by a reader and those made of its members.
  ConfigReader(View object, std::string where, std::optional<Error>& problem);

  ConfigReader& string(std::string_view key, std::string& into);
  ConfigReader& flag(std::string_view key, bool& into);
  template <class Number>
  ConfigReader& number(std::string_view key, Number& into) {
    constexpr bool whole = std::is_integral_v<Number>;
    const auto most = static_cast<double>(std::numeric_limits<Number>::max());
    if (const auto read = number_at(key, whole, most)) into = static_cast<Number>(*read);
    return *this;
  }
  ConfigReader& bytes(std::string_view key, std::optional<std::uint64_t>& into);
  ConfigReader& duration(std::string_view key, std::chrono::milliseconds& into);
  // Lists and maps of more than max_config_entries (10,000) are refused.
  ConfigReader& strings(std::string_view key, std::vector<std::string>& into);
  ConfigReader& map(std::string_view key, std::map<std::string, std::string>& into);
  // One of a few words.
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
  // A member that is an object; not called when it is not there.
  ConfigReader& table(std::string_view key, const std::function<void(ConfigReader&)>& read);
  // Every member, each of which is an object. Takes time linear in the text, where table() for each would
  // not.
  void each_table(const std::function<void(const std::string& key, ConfigReader&)>& read);

  // Of what was read already: nothing works with none of it.
  ConfigReader& not_zero(std::initializer_list<std::string_view> keys);
  // Better refused than without effect.
  ConfigReader& only_if(bool sensible, std::initializer_list<std::string_view> keys,
                        const std::string& why_not);

  // Accepted for compatibility and ignored.
  ConfigReader& ignore(std::string_view key);

  bool has(std::string_view key) { return !member(key).absent(); }
  View view() const noexcept { return object_; }
  const std::string& where() const noexcept { return where_; }
  void fail(std::string_view key, const std::string& what);
  // Every member that was not read is an error, with the known key that is closest to it.
  void finish();

 private:
  View member(std::string_view key);
  void fail_unknown(const std::string& key);
  std::optional<double> number_at(std::string_view key, bool whole, double most);

  View object_;
  std::string where_;
  std::optional<Error>& problem_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace fairlead::json
