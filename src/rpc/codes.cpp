#include "fairlead/rpc/codes.hpp"

namespace fairlead::rpc {

Error invalid_request(std::string message) {
  return Error(ErrorKind::validation, std::move(message)).with([](ErrorDetail& d) {
    d.rpc_code = kInvalidRequest;
  });
}

Error method_not_found(std::string_view method) {
  return Error::rpc(kMethodNotFound, "Method not found: " + std::string(method));
}

Error invalid_params(std::string message) {
  return Error(ErrorKind::validation, std::move(message)).with([](ErrorDetail& d) {
    d.rpc_code = kInvalidParams;
  });
}

WireError to_wire(const Error& error) {
  const ErrorDetail& detail = error.detail();
  if (detail.rpc_code) {
    const bool is_frame_error =
        error.kind() == ErrorKind::parse || error.kind() == ErrorKind::frame_too_large;
    const char* prefix = !is_frame_error                   ? ""
                         : *detail.rpc_code == kParseError ? "Parse error: "
                                                           : "Invalid Request: ";
    return {*detail.rpc_code, prefix + error.message(), detail.rpc_data};
  }
  if (error.kind() == ErrorKind::validation) return {kInvalidParams, error.message(), {}};
  return {kInternalError, "Internal error", {}};
}

}  // namespace fairlead::rpc
