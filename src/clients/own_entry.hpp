// The entry by which a client uses the gateway. Private to the library.
#pragma once

#include <string>
#include <vector>

#include "clients/client.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::clients {

struct OwnEntry {
  OwnEntry() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  // Either the URL, with a token or the name of a variable with it, or the command and its arguments.
  std::string url;
  std::string token;
  std::string token_variable;
  std::vector<std::string> command;
};

// Returns the entry in the keys of the client, without a name. Fails with `validation` if the client has no
// reference to a variable for the token, and no URLs.
Result<json::Raw> make_own_entry(const Client& client, const OwnEntry& own);

// The keys of an entry that say how to connect: those that a new entry replaces.
bool is_connection_key(const Client& client, std::string_view key);

}  // namespace fairlead::clients
