// Addresses of PostgreSQL databases, and the passwords in them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/result.hpp"

namespace fairlead::sql {

struct PostgresAddress {
  std::string uri;                   // for libpq; may contain a password
  std::vector<std::string> secrets;  // the passwords in the address, decoded
};

// Fails with `validation` if libpq does not accept the address, or if libpq could mistake a part of a
// password for a host or a port, which its messages contain. The message contains no part of the address.
Result<PostgresAddress> parse_postgres_address(std::string_view uri);

// Returns `message` on one line, with the secrets replaced by ***.
std::string without_secrets(std::string_view message, const std::vector<std::string>& secrets);

}  // namespace fairlead::sql
