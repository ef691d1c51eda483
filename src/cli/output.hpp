// Prints to stdout: data from servers with escapes on a terminal, byte for byte into a file or pipe. All
// commands print through these functions. A failed write is remembered, later output is discarded, and main()
// reports the failure with finish_output().
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/printable.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::cli {

// The following functions print to stdout at once, without a buffer. On a terminal they print control
// characters as visible escapes; otherwise they print the bytes unchanged.
void print_text(std::string_view text);
void print_text_line(std::string_view text);  // appends a line feed
void print_json(std::string_view json);       // appends a line feed; on a terminal prints equivalent JSON
void print_json_array(const std::vector<json::Raw>& entries);

// Returns the first line of a description, truncated to fit next to a name.
std::string summary(std::string_view description);

// Prints the rows, which have the same number of cells, as a Table without headers.
void print_table(const std::vector<std::vector<std::string>>& rows);

// Called once, when the program has printed everything. If a write to stdout has failed, prints an error to
// stderr and returns the exit status for it, unless `status` is already that of another failure. If the
// reader of stdout has closed a pipe, prints nothing and returns kOutputClosed.
int finish_output(int status);

}  // namespace fairlead::cli
