// TruncatedFrame: the method and the id of an oversized message, found in its beginning and its end, which
// are all that was kept of it. With them, the call or the request fails with an error instead of a timeout.
#pragma once

#include <cstddef>
#include <string_view>

namespace fairlead::rpc {

inline constexpr std::size_t kKeptHeadBytes = 256;  // bytes kept from the beginning of the frame
inline constexpr std::size_t kKeptTailBytes = 64;   // bytes kept from its end

struct TruncatedFrame {
  bool is_message = false;  // certainly a request, a notification or a response
  std::string_view method;  // without its quotes, in the original spelling
  std::string_view id;      // original spelling; empty if it is not within the beginning
};
// Reads the beginning of a frame. If `head` is not the beginning of a JSON object, `is_message` is false.
TruncatedFrame read_truncated_frame(std::string_view head);
// Reads the end of a frame. Returns the id if it is a number and the last member of the message, or the last
// but one before `jsonrpc`. Otherwise returns an empty string.
std::string_view trailing_id(std::string_view tail);

}  // namespace fairlead::rpc
