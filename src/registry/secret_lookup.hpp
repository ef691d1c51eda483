// Which secret a reference ${secret:NAME} of a server means, and what must be provided if there is none. Pure
// functions of the state. Private to the library.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "registry/state.hpp"

namespace fairlead::registry {

// Whose value a reference gets.
enum class SecretSource : std::uint8_t { user, server, system, missing };
std::string_view to_string(SecretSource source) noexcept;

struct FoundSecret {
  SecretSource source = SecretSource::missing;
  SecretPtr secret;  // null: missing
};

// Returns the value's row: that of the caller at this server, or else that of the server, or else that of the
// system. A server whose owner is not an administrator gets only its owner's own values at this server,
// because its owner decides where they are sent. `user` is the id of the caller; empty: none.
FoundSecret find_secret(const State& state, const Server& server, std::string_view user,
                        std::string_view name);

// Whether the owner of the server is a user who is not an administrator.
bool has_untrusted_owner(const State& state, const Server& server);

// Returns the names that a spec refers to.
std::set<std::string> referenced_secrets(const pool::ServerSpec& spec);
bool refers_to_secret(const pool::ServerSpec& spec, std::string_view name);

// Whether some user has a value of its own for a reference of this server, so that users need upstreams of
// their own.
bool has_user_values(const State& state, const Server& server);

// Returns who must provide a missing value and how, as a sentence: "Ann must provide it: run `fairlead
// secrets set …`."
std::string how_to_provide(const State& state, const Server& server, std::string_view name);

}  // namespace fairlead::registry
