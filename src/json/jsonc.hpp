// JSON as people write it into configuration files: with a byte order mark, comments and trailing commas.
// Private to the library.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"

namespace fairlead::json {

// Replaces a byte order mark, comments (// and /* */) and trailing commas by spaces; line breaks stay. Every
// other byte keeps its offset, so that positions in the result are positions in `text`. A comment or string
// that is not terminated is left as it is, for the scanner to report.
std::string blank_comments(std::string_view text);

// Returns blank_comments(text) if that is valid JSON; otherwise fails with `validation` and a message that
// begins with the line: "line 3: …".
Result<std::string> strict_json(std::string_view text, std::size_t max_depth);

// Returns the number of the line of `offset`; the first is 1.
std::size_t line_at(std::string_view text, std::size_t offset);

}  // namespace fairlead::json
