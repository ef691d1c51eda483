// Reading a manifest in order to act on it.
#pragma once

#include <string>

#include "fairlead/base/result.hpp"
#include "process/belongings.hpp"
#include "process/manifest_entry.hpp"

namespace fairlead::process {

// Kind validation when it is no manifest or others could have written it, io when it cannot be read.
Result<ManifestText> read_manifest(const std::string& path);

// This system and this process.
Whereabouts whereabouts();

}  // namespace fairlead::process
