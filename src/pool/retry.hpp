// When a call may be sent again, and how its result says that it was. Private to the layer.
#pragma once

#include "fairlead/base/error.hpp"
#include "fairlead/rpc/message.hpp"

namespace fairlead::pool {

// The connection ended before the answer came: not the server's answer, not a clock, not a limit of ours.
bool cut_off(const Error& error) noexcept;

// The answer with kRetriedKey in its result's `_meta`, every other byte as it was. An answer that is an
// error, whose result has no room for it, or more members than are indexed, is returned as it is.
rpc::Message mark_retried(const rpc::Message& answer, unsigned attempts, const Error& reason);

}  // namespace fairlead::pool
