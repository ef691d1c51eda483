// The gateway file of an SQLite database, DATABASE.gateway: names the gateway that serves the database, so
// that other programs of the same user find it. It counts only while DATABASE.lock is locked. Private to the
// library.
#pragma once

#include <optional>
#include <string>

#include "fairlead/base/result.hpp"

namespace fairlead::admin {

struct ServingGateway {
  // "http://127.0.0.1:8808/mcp", "https://…", or "unix:/PATH" for HTTP on a Unix socket, with MCP at /mcp.
  std::string url;
  long pid = 0;
};

// Returns the canonical path of the file of "sqlite:PATH"; empty if the address is another one or the file
// does not exist.
std::string sqlite_file_of(const std::string& address);

// Write and remove the gateway file of the database `path`. Called by the gateway that has locked the
// database. `url` is GatewayServer::url(). An address that stands for all interfaces is written as that of
// the loopback interface. The file has mode 0600.
Result<void> write_gateway_file(const std::string& path, std::string url);
void remove_gateway_file(const std::string& path);

// Returns whether a gateway could not be opened because another one serves its database.
bool is_database_in_use(const Error& error);
// Returns whether a gateway has locked the database `path`.
bool is_database_locked(const std::string& path);
// Returns the gateway that serves the database `path`; nullopt if there is none, if it has not published its
// address yet, or if the file is not one of this user.
std::optional<ServingGateway> find_serving_gateway(const std::string& path);

}  // namespace fairlead::admin
