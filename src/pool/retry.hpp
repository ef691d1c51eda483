// Decides which failed calls can be retried, and marks the results of retried calls. Private to the layer.
#pragma once

#include "fairlead/base/error.hpp"
#include "fairlead/rpc/message.hpp"

namespace fairlead::pool {

// Returns whether `error` means that the connection was lost before the response arrived, as opposed to an
// error response, a timeout, or a limit of the pool.
bool is_connection_loss(const Error& error) noexcept;

// Returns the response with kRetriedKey added to the `_meta` of its result; all other bytes are unchanged.
// Returns the response unchanged if it is an error, if its result or `_meta` is not an object, or if the
// result has more members than json::MemberIndex::kMaxMembers.
rpc::Message mark_retried(const rpc::Message& answer, unsigned attempts, const Error& reason);

}  // namespace fairlead::pool
