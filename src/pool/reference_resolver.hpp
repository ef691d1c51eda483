// Resolves the references of a server's spec, at each start of the server. Private to the layer.
#pragma once

#include <set>
#include <string>
#include <variant>
#include <vector>

#include "fairlead/loop/task.hpp"
#include "fairlead/pool/pool.hpp"

namespace fairlead::pool {

// How a server is reached, with values in place of references. Exists only while connecting.
struct ResolvedReach {
  ResolvedReach() {}  // NOLINT: not an aggregate, see ConnectOptions

  std::variant<Program, Address, NamedConnector> reach;
  std::vector<std::string> secrets;  // values that must not be seen
};

// Fails with kind connection_failed and code secret_unavailable; the message names the server, the key and
// what is missing. `spec` outlives the call.
Task<Result<ResolvedReach>> resolve_references(const ServerSpec& spec, SecretStore store);

// The environment variables that a spec refers to, but for those that every program expects (PATH, HOME, …).
std::set<std::string> referenced_variables(const ServerSpec& spec);

}  // namespace fairlead::pool
