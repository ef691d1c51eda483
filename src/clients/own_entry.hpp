// The entry by which a client uses the gateway. Private to the library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "clients/client.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/json/view.hpp"

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

// What happens to a key of an entry that a new entry replaces.
enum class KeyRole : std::uint8_t {
  connection,   // says how to connect: only the new entry has it
  environment,  // variables of the command: those of the new entry are added
  other,        // belongs to the user: only added if the old entry lacks it
};
// `is_remote`: the new entry has a URL, so that keys about a process are of no use, or even errors.
KeyRole role_of_key(const Client& client, std::string_view key, bool is_remote);
// Returns whether an entry sends a token, in a header or in FAIRLEAD_TOKEN, that is written out in it.
bool has_token(const Client& client, json::View entry);
bool is_remote_entry(const Client& client, json::View entry);

}  // namespace fairlead::clients
