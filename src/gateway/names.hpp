// The names under which a gateway offers what its servers have: `{server}__{tool}`. A pure function of the
// two, so that a name never changes because another server came or went, and what hangs on names
// (authorization, a model's habits) holds.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fairlead::gateway {

inline constexpr std::size_t kMostNameBytes = 64;  // what the strictest of the models' interfaces takes
inline constexpr std::size_t kMostServerNameBytes = 32;

// What is wrong with a server's name; nullopt when nothing is. Letters, digits, `-` and single `_` inside: so
// the first `__` of an offered name is where the server's part ends.
std::optional<std::string> server_name_problem(std::string_view server);

// At most 64 of `A-Za-z0-9_-`. What does not fit is cut or replaced, and then ends in a digest of the real
// name.
std::string offered_name(std::string_view server, std::string_view name);

}  // namespace fairlead::gateway
