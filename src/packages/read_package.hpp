// read_package(): reads a file that describes or contains an MCP server of the public registry:
// `server.json`, or a bundle (.mcpb, .dxt). Private to the library.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clients/imported_server.hpp"
#include "fairlead/base/result.hpp"
#include "packages/bundle_signature.hpp"

namespace fairlead::packages {

class Bundle;

struct PackageOptions {
  PackageOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  // The id of a choice (see Choice), the type of a package such as "npm", or "remote". Empty: the first
  // choice that can run on this machine.
  std::string package;
  // Returns whether a program such as "npx" can be started here. Unset: searches PATH.
  std::function<bool(const std::string& program)> has_program;
  // Where bundles are unpacked. Empty: default_bundles_directory().
  std::string bundles_directory;
  // Where bundles find certificates of issuers. Empty: those of the operating system.
  std::string certificates_directory;
  // Whether a named argument and its value become one argument (--name=value) instead of two.
  bool join_named_arguments = false;
};

// One way to run the server that the document describes.
struct Choice {
  std::string id;          // "npm", "oci", "streamable-http"; the second one of a kind is "npm-2"
  std::string summary;     // the command or URL, for people
  bool runs_here = false;  // if false, `problem` says why
  std::string problem;
};

struct Package {
  clients::ImportedFile file;   // format "server.json" or "mcpb"; one server, of the selected choice
  std::vector<Choice> choices;  // of a server.json
  std::size_t selected = 0;     // the index in `choices`
  // Of a bundle: who has signed it, its contents, and where install() unpacks it.
  std::optional<Signature> signature;
  std::string sha256;
  std::string directory;
  std::vector<std::string> tools;  // that the manifest names
  std::shared_ptr<const Bundle> bundle;
};

// Whether `bytes` (the beginning of a file, or all of it) belongs to such a file: a ZIP archive, or a JSON
// object with the members of a server.json.
bool is_package(std::string_view bytes);

// Reads the file at `path`. Does not write anything. Fails with `validation`; the message names the file.
Result<Package> read_package(const std::string& path, const PackageOptions& options = PackageOptions());
// The same for the text of a server.json, such as the answer of a registry.
Result<Package> read_server_json(std::string_view text, const PackageOptions& options = PackageOptions());

// Unpacks a bundle into its directory, unless it is there. Does nothing for a server.json.
Result<void> install(const Package& package);

// $XDG_DATA_HOME/fairlead/bundles, or the same below ~/.local/share.
std::string default_bundles_directory();

}  // namespace fairlead::packages
