// Configuration: the settings of the gateway that are stored in the registry and changed at run time. Every
// setting has a definition with its type, default and limits; a snapshot has a valid value for each. Private
// to the library.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/result.hpp"
#include "fairlead/base/string_map.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/pool/server_spec.hpp"

namespace fairlead::registry {

enum class ValueType : std::uint8_t {
  boolean,
  integer,
  duration,  // JSON: a text such as "30s", or a number of seconds; limits are in milliseconds
  string,    // limits are in bytes
  choice,
  string_list,  // limits are the number of texts
};
std::string_view to_string(ValueType type) noexcept;

// When a change of a value takes effect.
enum class Applies : std::uint8_t { at_once, at_restart };
std::string_view to_string(Applies applies) noexcept;  // "at once", "at restart"

struct Definition {
  std::string_view full_key;  // "category.key", such as "mcp.max_stdio_processes"
  ValueType type = ValueType::integer;
  std::string default_json;  // a valid value in its normal form
  std::string_view scope;    // "system": one value for the whole registry
  std::int64_t minimum = 0;  // of integers, durations, strings and string lists
  std::int64_t maximum = 0;
  std::vector<std::string_view> choices;
  std::string_view description;
  Applies applies = Applies::at_once;

  std::string_view category() const noexcept { return full_key.substr(0, full_key.find('.')); }
  std::string_view key() const noexcept { return full_key.substr(full_key.find('.') + 1); }
};

// All definitions, sorted by full key.
std::span<const Definition> definitions();
// Returns null if there is no such definition.
const Definition* find_definition(std::string_view full_key);

class Configuration;

// Returns `clocks` in which the clocks that have the program's default are replaced by the settings
// `mcp.clocks.*`. A row does not store clocks that have the program's default.
pool::Clocks with_clock_defaults(pool::Clocks clocks, const Configuration& configuration);

// Returns `value` in its normal form (durations as text). Fails with kind validation, the code kInvalidRow
// and the pointer /value; the message has the limits.
Result<json::Raw> validate(const Definition& definition, json::View value);

// An immutable snapshot: every definition has a valid value. All functions that take a full key require that
// it is defined, unless they return a Result.
using ConfigurationPtr = std::shared_ptr<const Configuration>;

class Configuration {
 public:
  // All values have their defaults.
  static ConfigurationPtr defaults();

  // Returns a snapshot in which one value is changed; absent JSON resets it to its default. Fails with
  // kNotFound if the key is not defined (the message suggests a similar one), otherwise like validate().
  Result<ConfigurationPtr> with(std::string_view full_key, json::View value) const;

  bool is_default(std::string_view full_key) const;
  json::Raw value(std::string_view full_key) const;
  // REQUIRES: the definition has the type.
  bool boolean(std::string_view full_key) const;
  std::int64_t integer(std::string_view full_key) const;
  std::chrono::milliseconds duration(std::string_view full_key) const;
  std::string string(std::string_view full_key) const;  // also of a choice
  std::vector<std::string> string_list(std::string_view full_key) const;

  // The values that are not defaults, by full key.
  const StringMap<json::Raw>& changed_values() const noexcept { return values_; }
  // {"key","category","type","scope","value","default","isDefault","minimum"?,"maximum"?,"choices"?,
  // "description","applies"}
  json::Raw to_json(const Definition& definition) const;

 private:
  StringMap<json::Raw> values_;  // those that are not defaults
};

}  // namespace fairlead::registry
