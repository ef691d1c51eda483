// Finds and reads the files that `fairlead servers import` imports.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "clients/imported_server.hpp"
#include "fairlead/base/result.hpp"
#include "packages/read_package.hpp"

namespace fairlead::cli {

struct ImportSource {
  std::string path;
  clients::ImportedFile file;
  std::optional<packages::Package> package;  // of a server.json or a bundle
};

struct ImportRequest {
  std::string source;   // a file, or the id of a client whose files are to be found
  std::string format;   // the id of the client that has written the file; empty: recognised
  std::string project;  // the directory of a project whose files are read too; may be empty
  std::string package;  // packages::PackageOptions::package
  std::vector<std::string> own_urls;
};

// Returns the files with their servers; at least one. Of the files of a client some may have no servers,
// which a remark says. Fails with `validation` if there is no file, one cannot be read, or none has servers.
Result<std::vector<ImportSource>> read_sources(const ImportRequest& request);

}  // namespace fairlead::cli
