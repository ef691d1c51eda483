// Writes servers of the registry in the format of an MCP client. Private to the library.
#pragma once

#include <string>
#include <vector>

#include "clients/client.hpp"
#include "clients/imported_server.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::clients {

struct ExportedEntry {
  std::string name;
  // The entry as the client has it, as JSON; absent if the client cannot have such a server, which a remark
  // says. In a list (Client::is_list) it contains the name.
  json::Raw value;
  std::vector<Remark> remarks;  // what the format cannot express; pointers are those of the row
};

struct ExportedFile {
  std::string text;
  std::vector<Remark> remarks;  // the messages name the server
};

// Translates one row (registry::to_json()) to an entry of the client.
Result<ExportedEntry> write_entry(const Client& client, const json::Raw& row);

// Writes a whole file with all rows: the container and, where the client has them, the declarations of the
// secrets that the rows refer to. Values of secrets are never written: what the rows have as ${secret:NAME}
// becomes a reference of the client. Fails with `validation` if a row is not one, or if nothing can be
// written for the client (Roo Code and others that are only read can be written too: this is only a text).
Result<ExportedFile> write_client_file(const Client& client, const std::vector<json::Raw>& rows);

}  // namespace fairlead::clients
