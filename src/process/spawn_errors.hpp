// Errors about programs that could not be started. All are of kind `spawn` and carry the errno.
#pragma once

#include <string>
#include <string_view>

#include "fairlead/base/error.hpp"
#include "fairlead/process/containment.hpp"
#include "process/keeper/protocol.hpp"

namespace fairlead::process {

// Returns an error of kind `spawn` with the failure code `code`.
Error spawn_error(std::string_view code, std::string message, int os_error);

// Returns the error for a system call that failed while `name` was being started. The failure code
// distinguishes whether descriptors, processes or memory are exhausted. `detail` is added to the message.
Error start_error_from_errno(const std::string& name, std::string_view detail, int os_error);

// Returns the error for a start that the keeper reported as failed. `path`, `cwd` and `manifest` are those of
// the request.
Error spawn_failure_error(const std::string& name, const std::string& path, const std::string& cwd,
                          const std::string& manifest, const keeper::SpawnOutcome& outcome);

// Returns why a manifest cannot be written, for example "… is a symbolic link".
std::string explain_manifest_error(const std::string& path, int os_error);
// Returns why a containment measure is not in force. Not for ContainmentMeasure::manifest.
std::string explain_measure_error(ContainmentMeasure measure, int os_error);
// Returns the error for a required containment measure that is unavailable.
Error measure_unavailable_error(const std::string& name, ContainmentMeasure measure,
                                const std::string& reason, int os_error);

}  // namespace fairlead::process
