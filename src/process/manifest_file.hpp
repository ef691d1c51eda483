// Reads a manifest file, and what match_processes() needs to match its entries with processes.
#pragma once

#include <string>

#include "fairlead/base/result.hpp"
#include "process/manifest_entry.hpp"
#include "process/manifest_matches.hpp"

namespace fairlead::process {

// Fails with kind `validation` if the file is not a manifest or other users can write it, and with kind `io`
// if it cannot be read.
Result<ParsedManifest> read_manifest(const std::string& path);

// Returns the context for match_processes() on this system and in this process.
MatchContext current_match_context();

}  // namespace fairlead::process
