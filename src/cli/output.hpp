// Output of what servers say: safe on a terminal, exact in a pipe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/printable.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::cli {

// These print to stdout and flush it. On a terminal control characters become visible escapes; elsewhere the
// bytes are printed as they are.
void print_text(std::string_view text);       // a result, as it is
void print_text_line(std::string_view text);  // and a line feed
void print_json(std::string_view json);       // a line; on a terminal equivalent JSON
void print_json_array(const std::vector<json::Raw>& entries);

// The first line of a description, cut to what fits beside a name.
std::string summary(std::string_view description);

// A table for people: columns padded, empty lines for nothing. Control characters become visible escapes
// wherever it is printed to, so that a cell stays in its place.
void print_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace fairlead::cli
