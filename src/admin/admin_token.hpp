// The administrator's token in a file: created when a gateway first starts with a database, and read by the
// command line. Private to the library.
#pragma once

#include <string>

#include "fairlead/base/result.hpp"

namespace fairlead::admin {

// Returns the directory of Fairlead's state: $XDG_STATE_HOME/fairlead, or ~/.local/state/fairlead. Fails with
// `validation` if neither variable is usable and the user has no home directory.
Result<std::string> state_directory();
// Creates the directory and its parents with mode 0700 if they do not exist.
Result<void> create_private_directory(const std::string& path);

// Returns the token in the file `path`. Creates the file with mode 0600 and a new token if it does not exist;
// if several gateways do so at the same time, all return the same token. Fails with `validation` if the file
// is readable or writable for other users, does not belong to this user, is not a regular file, or does not
// have a token of at least 16 characters.
Result<std::string> read_or_create_admin_token(const std::string& path);
// The same, but fails if the file does not exist.
Result<std::string> read_admin_token(const std::string& path);

}  // namespace fairlead::admin
