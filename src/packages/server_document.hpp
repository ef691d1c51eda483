// server.json: the document of the public registry that describes a server. Private to the library.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "clients/imported_server.hpp"
#include "fairlead/base/result.hpp"
#include "packages/package_command.hpp"

namespace fairlead::packages {

inline constexpr std::size_t kMaxServerDocumentBytes = 1u << 20;  // max_server_document_bytes
inline constexpr std::size_t kMaxServerDocumentChoices = 64;      // max_server_document_choices

// One way to run the server: a package or a remote.
struct Candidate {
  std::string id;  // the type of the package or remote; the second one of a type is "npm-2"
  bool is_remote = false;
  std::string program;  // the command; empty for a remote
  std::string summary;  // the command line or URL
  clients::ImportedServer server;
};

struct ServerDocument {
  std::string name;
  std::string title;
  std::string description;
  std::string version;
  std::string website;
  std::vector<Candidate> candidates;  // packages first, in the order of the document
};

// Whether an object has the members of a server.json, or of the answer of a registry with one.
bool is_server_document(json::View object);

// Reads a server.json, {"server":…} or {"servers":[{"server":…}]}. Fails with `validation` if the text is
// none of them or has no way to run the server.
Result<ServerDocument> read_server_document(std::string_view text, CommandOptions options = CommandOptions());

}  // namespace fairlead::packages
