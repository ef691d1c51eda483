// From errno to a sentence: why a program could not be started. All are of kind `spawn` and carry the errno.
#pragma once

#include <string>
#include <string_view>

#include "fairlead/base/error.hpp"
#include "fairlead/process/containment.hpp"
#include "process/keeper/protocol.hpp"

namespace fairlead::process {

Error spawn_error(std::string_view code, std::string message, int os_error);

// Something was missing on our side: descriptors, processes, memory, or `what` itself.
Error explain_shortage(const std::string& name, std::string_view what, int os_error);

// The keeper could not do it. `path`, `cwd` and `manifest` as it was told.
Error explain_refusal(const std::string& name, const std::string& path, const std::string& cwd,
                      const std::string& manifest, const keeper::Outcome& outcome);

// Why a manifest cannot be written: "… is a symbolic link".
std::string explain_manifest(const std::string& path, int os_error);
// Why a belt is not there. Not for the manifest.
std::string explain_belt(Belt belt, int os_error);
// A belt was required and is not there.
Error belt_error(const std::string& name, Belt belt, const std::string& why_not, int os_error);

}  // namespace fairlead::process
