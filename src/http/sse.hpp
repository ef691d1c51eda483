// Serializes messages as server-sent events, which can be sent and stored as they are. Private to src/http
// and src/transport.
#pragma once

#include <chrono>
#include <string_view>
#include <vector>

#include "fairlead/base/bytes.hpp"
#include "fairlead/http/server.hpp"
#include "fairlead/rpc/rope.hpp"

namespace fairlead::http::sse {

// The bytes of one serialized event, in parts.
using EncodedEvent = std::vector<Bytes>;

// Returns the head of a response that is an event stream.
Response response_head();
// Returns the event with one message as its data. The event has no id field if `id` is empty.
EncodedEvent message_event(const rpc::Rope& message, std::string_view id = {});
// Returns a priming event. It has no data; it tells the client from which event id it can resume the stream,
// and how long to wait before it reconnects.
EncodedEvent priming_event(std::string_view id, std::chrono::milliseconds retry);
// Returns the first event of the HTTP+SSE transport, which names the URI to which the client sends POST
// requests.
EncodedEvent endpoint_event(std::string_view uri);
// Returns a comment, which clients ignore. It keeps the client, the server and proxies from closing an idle
// connection.
EncodedEvent keep_alive_comment();

}  // namespace fairlead::http::sse

namespace fairlead::http {

// Returns the message without line breaks between its JSON tokens. Events require that, and many clients
// require it of JSON responses.
rpc::Rope to_one_line(const rpc::Rope& message);
// Returns a response with `message` as its JSON body.
Response json_response(int status, const rpc::Rope& message);
// Responds with `message` as the JSON body.
void respond_with_json(Exchange& exchange, int status, const rpc::Rope& message);

}  // namespace fairlead::http
