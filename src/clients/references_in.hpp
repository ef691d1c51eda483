// Translates the references of clients (`${VAR}`, `{env:VAR}`, `${{ secrets.VAR }}`, …) to those of the
// gateway. Private to the layer.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "clients/entry_format.hpp"

namespace fairlead::clients {

struct ReferenceContext {
  ReferenceContext() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  VariableSyntax syntax;
  std::string project;  // empty: not known
  // Returns the placeholder of a value that the user has to provide: an input of the file, or a variable that
  // only an editor knows.
  std::function<std::string(std::string_view id)> input;
  // Returns the placeholder of a secret of the client that the user has to provide.
  std::function<std::string(std::string_view name)> secret;
  // Returns whether a variable of the client is a secret of its keyring.
  std::function<bool(std::string_view name)> is_secret;
};

// Returns `text` with references of the gateway; every other `$` is doubled. What looks like a reference but
// is none for this client stays literal; `problems` says so.
std::string translate_references(std::string_view text, const ReferenceContext& context,
                                 std::vector<std::string>& problems);

// Returns a name for the secret store that is similar to `text`: letters, digits, `_`, `-` and `.`.
std::string secret_name_of(std::string_view text);

bool is_variable_name(std::string_view name) noexcept;

}  // namespace fairlead::clients
