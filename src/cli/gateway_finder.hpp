// find_gateway(): decides which gateway a command talks to, and with which token.
#pragma once

#include "cli/admin_client.hpp"

namespace fairlead::cli {

// Returns the value of a variable of the environment; empty if it is not set.
std::string environment_value(const char* name);

// A gateway, or a database whose gateway is to be found, or which is to be opened by this process.
struct GatewayTarget {
  GatewayAddress address;            // without a URL if `database` is set
  std::string database;              // "sqlite:PATH" or "postgresql://…"
  bool is_default_database = false;  // the one that `fairlead serve` uses without options
};

// Fails with `validation` if the options contradict each other, or a token or a context cannot be read.
Result<GatewayTarget> find_gateway(const GatewayChoice& choice);

// Returns whether find_gateway() would run the command of a context for a token.
Result<bool> needs_token_command(const GatewayChoice& choice);

// Returns the gateway on this machine that serves the database of `target`; nullopt if there is none, or if
// it has not published its address yet.
std::optional<GatewayAddress> serving_gateway(const GatewayTarget& target);
// Returns whether a database could not be opened because another process uses it.
bool is_database_in_use(const Error& error);

}  // namespace fairlead::cli
