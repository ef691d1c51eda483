// keeper_image: the keeper program, embedded in the library so that applications need no second file.
#pragma once

#include <string_view>

namespace fairlead::process {

// Returns the bytes of the executable file.
std::string_view keeper_image() noexcept;

}  // namespace fairlead::process
