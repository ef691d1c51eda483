// Finds out whose file a document is, and where its servers are. Private to the layer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clients/client.hpp"
#include "clients/document.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::clients {

// Whose file it is. Exactly one of the two, or neither: a file that many clients could have.
struct Owner {
  const Client* client = nullptr;
  bool is_native = false;  // our own keys, as `fairlead serve --config` reads them
};

Owner recognise(json::View root, FileFormat format, std::string_view path);

// A map or list of servers in a file.
struct ServerTable {
  std::string scope;
  json::View servers;
};

// Returns the tables of servers of a file; empty if it has none.
std::vector<ServerTable> server_tables(json::View root, const Client* client);

}  // namespace fairlead::clients
