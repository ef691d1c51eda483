// The keeper program, carried within the library so that a program using it needs no second file.
#pragma once

#include <string_view>

namespace fairlead::process {

std::string_view keeper_image() noexcept;

}  // namespace fairlead::process
