// Errors that the gateway answers its clients with. Each has a stable code and a remedy in its data
// (docs/errors.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fairlead/base/error.hpp"
#include "fairlead/base/principal.hpp"

namespace fairlead::gateway {

// Who is told how a server failed in detail: its command line, PATH, stderr, and addresses. Clients that are
// not get the code, a sentence and the remedy.
class FailurePolicy {
 public:
  explicit FailurePolicy(bool everyone) noexcept : everyone_(everyone) {}
  bool tells_details(const Principal& reader) const noexcept {
    return everyone_ || reader.has_role(kAdminRole);
  }

 private:
  bool everyone_;
};

// The failure of a server: -32603, with the server, the kind of error, its code and remedy as data; with
// `details` also the error's own message, command line, PATH and stderr.
Error failure_of(const std::string& server, const Error& failed, bool details);
// A refusal of the gateway's own. `code` is one of process/failure.hpp.
Error refusal_of(std::int64_t rpc_code, std::string message, std::string_view code);

}  // namespace fairlead::gateway
