// What an endpoint reads from HTTP requests, apart from the rules of MCP (request_rules.hpp). Private to
// src/transport.
#pragma once

#include <string>
#include <string_view>

#include "fairlead/http/server.hpp"
#include "fairlead/rpc/message.hpp"

namespace fairlead::transport {

// Returns an id of 192 random bits, in characters that are valid in headers and query strings.
std::string make_session_id();
http::Response method_not_allowed_response(std::string_view allow);
// Returns whether a comma-separated list contains the token, in upper or lower case.
bool contains_token(std::string_view list, std::string_view token);
bool requests_websocket(const http::Request& request);
// Returns the value of `name` in a query string, without percent-decoding, which session ids do not need.
std::string_view query_value(std::string_view query, std::string_view name);
// Returns name and version of the client that sends `initialize`, shortened; empty if it sends none.
std::string client_name(const rpc::Message& initialize);

}  // namespace fairlead::transport
