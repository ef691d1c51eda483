// ImportedServer: a server as a file of another program describes it, in the form of the registry: what every
// importer returns. Private to the library.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fairlead/json/raw.hpp"

namespace fairlead::clients {

// Something that could not be imported as it was, or that the user should know.
struct Remark {
  std::string pointer;  // JSON pointer of the member of `row` that it is about; empty: the whole server
  std::string message;
};

// A literal value of `row` that is probably secret. If the value is moved to the secret store under `name`,
// the string at `pointer` becomes `replacement`, which refers to it.
struct LiteralSecret {
  std::string pointer;      // JSON pointer of a string in `row`, such as "/config/headers/Authorization"
  std::string name;         // a name for the secret, valid for the secret store
  std::string value;        // the secret part, such as the token without "Bearer "
  std::string replacement;  // such as "Bearer ${secret:ISSUES_TOKEN}"
};

// A value that the user provides before the server can be used. `row` contains `placeholder` wherever the
// value belongs: ${secret:NAME} if it is secret, otherwise ${input:NAME}, which must be replaced.
struct ImportInput {
  std::string name;
  std::string description;
  std::string placeholder;
  std::string default_value;
  std::vector<std::string> choices;  // if not empty, the only values
  bool secret = false;
  bool required = true;       // if false, an empty value is a value
  std::string format;         // "number", "boolean", "filepath", "directory"; empty: any text
  std::optional<double> min;  // of a "number"
  std::optional<double> max;
  bool multiple = false;                    // there may be several values, see `parts`
  std::vector<std::string> default_values;  // instead of default_value if `multiple`
  // What exists for this value only: JSON pointers of members of `env` and `headers`, and of elements of
  // `args`. fill_inputs() removes them if there is no value, and repeats the elements for each of several.
  std::vector<std::string> parts;
};

struct ImportedServer {
  ImportedServer() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::string name;         // as the file has it
  std::string scope;        // where it was found in the file, such as "user" or the path of a project
  json::Raw row;            // the body for POST /mcp/servers; its name is valid, and may differ from `name`
  std::string skip_reason;  // if not empty, the server is not imported: our own entry, or an unknown kind
  std::vector<Remark> remarks;
  std::vector<LiteralSecret> literal_secrets;
  std::vector<ImportInput> inputs;
};

struct ImportedFile {
  std::string format;  // the id of the client, or "fairlead", "server.json", "mcpb"
  std::vector<ImportedServer> servers;
  std::vector<Remark> remarks;  // about the file
};

}  // namespace fairlead::clients
