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

// Fails with kForbidden if the actor is not an administrator and the user of the secret has too many of them
// (registry.max_user_secrets), and for everybody with kInvalidRow if the registry has too many secrets
// (max_secrets, max_secrets_bytes) with one more of `bytes`.
Result<void> check_secret_count(WriteContext& context, const Secret& secret, std::int64_t bytes);

// Fails with kInvalidRow if the token would be valid for longer than auth.max_token_lifetime.
Result<void> check_lifetime(const Configuration& configuration, const Token& token, Time now);

}  // namespace fairlead::registry
