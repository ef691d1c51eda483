// Shows what a change of a file would do.
#pragma once

#include <string>
#include <string_view>

namespace fairlead::cli {

// Returns the change of a text in the format of `diff -u`, as one hunk; empty if nothing changes.
std::string text_diff(std::string_view path, std::string_view before, std::string_view after);

}  // namespace fairlead::cli
