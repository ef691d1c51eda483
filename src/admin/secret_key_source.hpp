// Finds the key that encrypts the secrets of a gateway. Private to the library.
#pragma once

#include <string>

#include "admin/registry_gateway.hpp"

namespace fairlead::admin {

// Returns the value of FAIRLEAD_SECRET_KEY; null if it is not set. Overwrites it in the environment, because
// servers of the same user could read it in /proc.
std::shared_ptr<const registry::SecretText> take_secret_key_variable();

// Runs the command of `source` if it has one. Fails with `timeout` after 30 s, and with `validation` if the
// command fails or prints more than max_secret_key_file_bytes; messages do not contain its output.
// REQUIRES: `source` and `database` outlive the task.
Task<Result<registry::SecretKeyOptions>> secret_key_options(Loop& loop, const SecretKeySource& source,
                                                            const std::string& database);

}  // namespace fairlead::admin
