// Finds literal values of rows that are probably secret. Private to the library.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "clients/imported_server.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::clients {

// The names that were given to secrets. Two secrets have the same name only if they have the same value.
class SecretNames {
 public:
  // Returns `wanted`, or a similar name that no other value has. `fallback` is tried first.
  std::string name_for(const std::string& wanted, const std::string& fallback, const std::string& value);

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

// Returns the literal secrets of a row, by the names of variables, headers, options and parameters, and by
// the prefixes of well-known tokens. References are not literal, but their defaults are: the replacement of
// such a default is that of the whole reference. At most one for each string of the row.
std::vector<LiteralSecret> find_literal_secrets(const json::Raw& row, std::string_view server,
                                                SecretNames& names);

// Returns whether a variable, header or parameter of this name usually has a secret value.
bool is_secret_key(std::string_view name);

}  // namespace fairlead::clients
