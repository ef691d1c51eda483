// Translates the references of the gateway to those of a client. Private to the layer.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "clients/entry_format.hpp"

namespace fairlead::clients {

struct TranslatedText {
  std::string text;
  std::vector<std::string> problems;  // what the client cannot do, or what its user must do
};

// Translates a value of a row with references. Secrets that become inputs of the client (VS Code) or secrets
// of its keyring are added to `secrets`.
TranslatedText translate_for_client(std::string_view value, const VariableSyntax& syntax,
                                    std::set<std::string>& secrets);

// Returns the name of the variable in `value`, if it consists of one reference ${env:NAME} without a default,
// or of ${secret:NAME}; otherwise an empty string.
std::string only_variable(std::string_view value);
std::string only_secret(std::string_view value);

// The variable that stands for a secret where a client has no secrets: gh-token is GH_TOKEN.
std::string variable_for_secret(std::string_view name);

}  // namespace fairlead::clients
