// Resolves the references in the spec of a server. Used at each start of the server. Private to the layer.
#pragma once

#include <set>
#include <string>
#include <variant>
#include <vector>

#include "fairlead/loop/task.hpp"
#include "fairlead/pool/pool.hpp"

namespace fairlead::pool {

// The transport of a server with its references expanded. It exists only while the server is being connected,
// because it contains secrets.
struct ResolvedTransport {
  ResolvedTransport() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::variant<Program, Address, ConnectorName> transport;
  std::vector<std::string> secrets;  // expanded values that must be redacted
  std::vector<std::string>
      shared_secrets;  // those that are redacted also in logs and errors of other servers
};

// Expands the references of `spec`. Fails with `connection_failed` and code `secret_unavailable`; the message
// names the server, the key and the missing value, or the secret of a caller that would determine the host.
// `user`: see SecretRequest. REQUIRES: `spec` outlives the
// call.
Task<Result<ResolvedTransport>> resolve_references(const ServerSpec& spec, SecretStore store,
                                                   std::string user = std::string());

// Returns the environment variables that a spec refers to, except those that every program expects (PATH,
// HOME, …).
std::set<std::string> referenced_variables(const ServerSpec& spec);

}  // namespace fairlead::pool
