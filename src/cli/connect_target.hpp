// How a client is to reach the gateway: what `fairlead connect` enters into its file.
#pragma once

#include <string>

#include "cli/admin_client.hpp"
#include "clients/client.hpp"
#include "clients/own_entry.hpp"
#include "fairlead/base/result.hpp"

namespace fairlead::cli {

struct ConnectChoice {
  std::string url;           // --url
  std::string endpoint;      // --endpoint
  std::string token_file;    // --token-file
  std::string token_env;     // --token-env
  std::string create_token;  // --create-token: name of the user
  bool stdio = false;        // --stdio: by a command also where the client connects to URLs
};

struct ConnectTarget {
  ConnectTarget() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  clients::OwnEntry entry;
  std::string url;            // of MCP at the gateway, also if the entry has a command
  bool answers = true;        // false: the entry has a URL at which no gateway answers
  GatewayChoice admin;        // the same gateway, for its admin API
  std::string created_token;  // the id of the token that was created; empty: none
};

// Returns the absolute path of this program.
Result<std::string> own_program_path();

// Returns whether two URLs of MCP lead to the same gateway, at any of its endpoints.
bool is_same_gateway(const std::string& url, const std::string& own_url);
// Returns the path of a URL of MCP below /mcp, such as "e/discover"; empty for /mcp itself.
std::string endpoint_of(const std::string& url);

// Returns how `client` reaches the gateway: by the URL that was given, that of FAIRLEAD_GATEWAY or of the
// context in use, that of the gateway that serves the default database, or the default address. A client that
// does not connect to URLs starts this program, which attaches to the gateway. Fails with `validation` if the
// gateway needs a token and none is given. With `probe`, sends a request to the gateway to find out, and
// creates the token that was asked for.
Result<ConnectTarget> connect_target(const clients::Client& client, const ConnectChoice& choice, bool probe);

// Revokes the token that connect_target() has created, because it was not written. Prints an error if it
// cannot be revoked.
void revoke_created_token(const ConnectTarget& target);

}  // namespace fairlead::cli
