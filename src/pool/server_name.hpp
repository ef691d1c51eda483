// The rules for names of servers, which are parts of the names that clients see. Private to the library.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace fairlead::pool {

inline constexpr std::size_t kMaxServerNameBytes = 32;

// Returns why a server's name is invalid; nullopt if it is valid. A name consists of letters, digits, `-`,
// and single `_` that are neither first nor last. So the first `__` in a public name follows the server's
// name.
std::optional<std::string> server_name_problem(std::string_view server);

}  // namespace fairlead::pool
