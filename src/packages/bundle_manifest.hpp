// The manifest of a bundle (manifest.json), versions 0.1 to 0.4. Private to the layer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "clients/imported_server.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::packages {

inline constexpr std::size_t kMaxManifestBytes = 1u << 20;  // max_manifest_bytes

struct BundleManifest {
  std::string name;
  std::string version;
  std::string title;
  std::string description;
  std::string author;
  std::vector<std::string> tools;
  json::Raw document;
};

// Directories that the manifest of a bundle can refer to.
struct BundlePlaces {
  std::string bundle;  // where it is unpacked
  std::string home;
};

// Reads the manifest, loosely: unknown members are ignored. Fails with `validation`.
Result<BundleManifest> read_manifest(std::string_view text);

// Returns the row that runs the bundle's server on this machine. `source` is stored in its metadata. A bundle
// that cannot run here has a `skip_reason`.
Result<clients::ImportedServer> server_of(const BundleManifest& manifest, const BundlePlaces& places,
                                          const json::Raw& source);

}  // namespace fairlead::packages
