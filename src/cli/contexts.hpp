// Contexts: the gateways that a user works with, each with the way to get its token. They are stored in
// $XDG_CONFIG_HOME/fairlead/contexts.json, mode 0600.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "fairlead/base/result.hpp"

namespace fairlead::cli {

struct GatewayContext {
  std::string gateway;   // the URL, or empty with `database`
  std::string database;  // "sqlite:PATH"
  // At most one of these is set. None: the token of a gateway without a context.
  std::string token_file;
  std::string token_variable;  // of the environment
  std::string token_command;   // for /bin/sh; prints the token
  std::string ca_file;

  bool operator==(const GatewayContext&) const = default;
};

struct Contexts {
  std::string current;  // empty: none
  std::map<std::string, GatewayContext> all;
};

inline constexpr std::size_t kMaxContexts = 1000;

// Returns the path of the file. Fails with `validation` if the user has no home directory.
Result<std::string> contexts_path();
// Returns no contexts if the file does not exist. Fails with `validation` if its content is not valid.
Result<Contexts> load_contexts();
// Loads the contexts, lets `change` change them, and replaces the file atomically. Other changes wait
// meanwhile. Fails with the error of `change`; then nothing is changed.
Result<void> change_contexts(const std::function<Result<void>(Contexts&)>& change);
// Returns the context; fails with `validation` and a suggestion if there is none of that name.
Result<GatewayContext> find_context(const Contexts& contexts, const std::string& name);

// Returns the token of a context; empty if it names none. May run the context's command.
Result<std::string> context_token(const std::string& name, const GatewayContext& context);

}  // namespace fairlead::cli
