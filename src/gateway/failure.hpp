// Errors that the gateway sends to its clients as JSON-RPC error responses. The `data` of each error has a
// stable failure code and a remedy (docs/errors.md).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "fairlead/base/error.hpp"
#include "fairlead/base/principal.hpp"

namespace fairlead::gateway {

// FailurePolicy: decides which clients receive the details of a server's failure: command line, PATH, stderr
// and addresses. All other clients receive the failure code, a short description and the remedy.
class FailurePolicy {
 public:
  // If `everyone` is true, all clients receive details; otherwise only clients with the role "admin". Copies
  // of a policy share this setting.
  explicit FailurePolicy(bool everyone) : everyone_(std::make_shared<bool>(everyone)) {}
  void set_everyone(bool everyone) noexcept { *everyone_ = everyone; }
  bool shows_details_to(const Principal& reader) const noexcept {
    return *everyone_ || reader.has_role(kAdminRole);
  }

 private:
  std::shared_ptr<bool> everyone_;
};

// Returns the error for a call that failed because of `server`: -32603, whose data has the server's name and
// the error kind, failure code and remedy of `cause`; if `with_details`, also the message, command line, PATH
// and stderr of `cause`.
Error server_failure_error(const std::string& server, const Error& cause, bool with_details);
// Returns the error for a request that the gateway itself rejects. `failure_code` is one of those in
// process/failure.hpp.
Error refusal_error(std::int64_t rpc_code, std::string message, std::string_view failure_code);

}  // namespace fairlead::gateway
