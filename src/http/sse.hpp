// Server-sent events, the writing half: messages as events, ready to send and to keep. Private to the layer.
#pragma once

#include <chrono>
#include <string_view>
#include <vector>

#include "fairlead/base/bytes.hpp"
#include "fairlead/http/server.hpp"
#include "fairlead/rpc/rope.hpp"

namespace fairlead::http::sse {

using Parts = std::vector<Bytes>;

// The head of an answer that is a stream of events.
Response head();
// One message. An empty `id` leaves the field out.
Parts message(const rpc::Rope& message, std::string_view id = {});
// An event without data: it gives the client an id to come back with, and says when to.
Parts priming(std::string_view id, std::chrono::milliseconds retry);
// HTTP+SSE: where to post to.
Parts endpoint(std::string_view uri);
// Nobody reads it; it shows both sides and what is between them that the stream lives.
Parts comment();

}  // namespace fairlead::http::sse

namespace fairlead::http {

// A message without raw line breaks, as an event (and many a reader of JSON answers) must have it.
rpc::Rope one_line(const rpc::Rope& message);
// 200 with that message, or another status.
Response json_response(int status, const rpc::Rope& message);

}  // namespace fairlead::http
