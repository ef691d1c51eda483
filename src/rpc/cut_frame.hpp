// What can be made out of a message of which only the beginning and the end are there: whose it is, so that
// whoever waits for it, or for an answer to it, is told.
#pragma once

#include <cstddef>
#include <string_view>

namespace fairlead::rpc {

inline constexpr std::size_t kCutHead = 256;  // as much of the beginning is kept
inline constexpr std::size_t kCutTail = 64;   // and of the end

struct CutFrame {
  bool is_message = false;  // a request, a notification or an answer
  std::string_view method;  // inside of the string, as spelled
  std::string_view id;      // as spelled; empty when it does not stand ahead of what is cut
};
// `head` is the beginning of one JSON object.
CutFrame read_cut_frame(std::string_view head);
// The number that is the last member `id` of the object that ends with `tail`, perhaps before its `jsonrpc`;
// empty when there is none.
std::string_view id_at_end(std::string_view tail);

}  // namespace fairlead::rpc
