// What an import would do to the servers of a registry. Private to the library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "clients/fill_inputs.hpp"
#include "clients/imported_server.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::clients {

enum class ImportAction : std::uint8_t {
  add,
  update,     // a server of this name exists, and it or its secrets are changed
  unchanged,  // a server of this name exists and is equal; its secrets cannot be compared
  differs,    // a server of this name exists and differs, but changes were not asked for
  skip,       // see PlannedServer::reason
};

struct ImportChoices {
  ImportChoices() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::vector<std::string> names;  // patterns of the servers to import; empty: all
  bool update = false;             // change servers that exist and differ
  bool move_secrets = false;       // literal secrets are moved to the secret store
  bool disabled = false;           // new servers are added disabled
  // Servers whose inputs have no values are planned with <NAME> in place of the values, to be shown only.
  bool dry_run = false;
  InputValues inputs;
};

// A secret that is to be stored for a server.
struct PlannedSecret {
  std::string name;
  std::string value;
};

struct PlannedServer {
  PlannedServer() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::string name;  // of the row
  ImportAction action = ImportAction::skip;
  json::Raw body;           // add: the new row
  json::Raw patch;          // update: the merge patch; `{}` if only secrets are to be stored
  std::string existing_id;  // of the row that exists
  std::string existing_etag;
  std::string reason;  // skip: why
  // What is added or changed, one line for each value, such as `config.args[1]: "a" -> "b"`. Literal values
  // of env and headers, and literal secrets, are redacted.
  std::vector<std::string> changes;
  // To be stored when the row has been written. With `unchanged`, those that an update would store again.
  std::vector<PlannedSecret> secrets;
  // Secrets that the row refers to and that the import does not provide.
  std::vector<ImportInput> missing_secrets;
  // Other inputs that need a value. Unless this is a dry run, the server is skipped because of them.
  std::vector<ImportInput> missing_inputs;
  std::vector<Remark> remarks;
};

// Plans the import of `file` into a registry that has the rows `existing` (their JSON form in the admin API).
// Fails with `validation` if an input has a value that is not accepted, such as one that is not one of its
// choices. A server with a required input without a value is skipped.
Result<std::vector<PlannedServer>> plan_import(const ImportedFile& file,
                                               const std::vector<json::Raw>& existing,
                                               const ImportChoices& choices);

// Returns the servers of `file` that choices.names selects and that are not skipped.
std::vector<const ImportedServer*> selected_servers(const ImportedFile& file, const ImportChoices& choices);

}  // namespace fairlead::clients
