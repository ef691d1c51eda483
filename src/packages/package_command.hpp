// Turns a package or a remote of a server.json into a row. Private to the layer.
#pragma once

#include <string>

#include "fairlead/json/view.hpp"
#include "packages/row_builder.hpp"

namespace fairlead::packages {

struct CommandOptions {
  bool join_named_arguments = false;  // --name=value instead of two arguments
};

// Adds the command that runs the package, with its arguments and variables. Sets RowBuilder::skip_reason if
// it cannot be run.
void add_package(RowBuilder& row, json::View package, CommandOptions options);

// Adds the URL and the headers.
void add_remote(RowBuilder& row, json::View remote);

}  // namespace fairlead::packages
