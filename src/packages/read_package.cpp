#include "packages/read_package.hpp"

#include <cstdlib>

namespace fairlead::packages {

bool is_package(std::string_view bytes) {
  return bytes.starts_with("PK\x03\x04");
}

Result<Package> read_package(const std::string& path, const PackageOptions& options) {
  static_cast<void>(options);
  return Error(ErrorKind::validation, path + ": this kind of package is not supported");
}

Result<Package> read_server_json(std::string_view text, const PackageOptions& options) {
  static_cast<void>(text);
  return read_package("server.json", options);
}

Result<void> install(const Package& package) {
  static_cast<void>(package);
  return {};
}

std::string default_bundles_directory() {
  const char* const data = std::getenv("XDG_DATA_HOME");
  const char* const home = std::getenv("HOME");
  const std::string base = data && *data ? data : std::string(home ? home : "/") + "/.local/share";
  return base + "/fairlead/bundles";
}

}  // namespace fairlead::packages
