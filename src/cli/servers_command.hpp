// Shared by the commands `fairlead servers …`.
#pragma once

#include <string>

#include "cli/admin_command.hpp"

namespace fairlead::cli {

inline constexpr char kServersDescription[] = "Manage the MCP servers of a gateway";

// The columns of `fairlead servers list`. `state_of` returns the state of a server by its name.
RowType server_rows(std::function<std::string(const std::string& name)> state_of);
RowType server_rows();

// Each adds some of the commands to the group.
void add_server_rows_commands(CLI::App& servers, int& status);       // list, show, add, edit, remove, …
void add_server_operation_commands(CLI::App& servers, int& status);  // refresh, restart, stop, tools
void add_server_test_commands(CLI::App& servers, int& status);       // test, logs
void add_server_import_command(CLI::App& servers, int& status);
void add_server_export_command(CLI::App& servers, int& status);

}  // namespace fairlead::cli
