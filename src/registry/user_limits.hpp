// Limits on the rows that users create, which administrators set in the configuration. Private to the
// library.
#pragma once

#include "registry/write_context.hpp"

namespace fairlead::registry {

// Fails with kForbidden if the actor is not an administrator and `after` would be one server too many of its
// owner (registry.max_user_servers).
Result<void> check_server_count(WriteContext& context, const Server& after);

// Fails with kForbidden if the actor is not an administrator and the user of the token has too many that are
// neither revoked nor expired (auth.max_user_tokens).
Result<void> check_token_count(WriteContext& context, const Token& token);

// Fails with kInvalidRow if the token would be valid for longer than auth.max_token_lifetime.
Result<void> check_lifetime(const Configuration& configuration, const Token& token, Time now);

}  // namespace fairlead::registry
