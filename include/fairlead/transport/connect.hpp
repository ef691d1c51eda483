// transport::connect(): opens a connection to an address of any supported scheme.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "fairlead/http/client_options.hpp"

namespace fairlead::transport {

// Limits how often the client of an http: connection reconnects after an event stream was interrupted.
struct ReconnectLimits {
  std::size_t max_resumptions = 5;  // consecutive reconnects of one stream without any event in between
  // Minimum delay before a reconnect, even if the `retry` field of the server requests a shorter one. After
  // reconnect_burst reconnects of a stream within a minute, the minimum is at least one second.
  std::chrono::milliseconds min_reconnect_delay{100};
  std::size_t reconnect_burst = 30;
  // Reconnects the stream of a legacy server that belongs to no request without end, with growing delays up
  // to 30 s; if the server has lost the session, begins a new one for it.
  bool keep_server_stream = false;
  // Called when a new session has replaced one that the server had lost. The subscriptions and the log level
  // of the old one are lost.
  std::function<void()> on_session_renewed;
};

// Options of connect(). `framing` and `on_framing_error` apply to stdio:, tcp: and unix: addresses; the
// options that http::ClientOptions and ReconnectLimits add apply to the other addresses.
struct ConnectOptions : http::ClientOptions, ReconnectLimits {
  ConnectOptions() {}  // NOLINT: not defaulted, see fairlead::StreamConnectOptions
};

// Connects to a stdio:, tcp:, unix:, http:, https:, ws: or wss: address (see Uri). An http: or https:
// connection is established when the first message is sent; the server may respond with JSON or an event
// stream. A ws: or wss: server must respond with 101. Fails with `validation` for an invalid address,
// `spawn`, `connection_failed`, or `timeout` (limits.connect_timeout).
Task<ConnectResult> connect(Loop& loop, std::string uri, ConnectOptions options = ConnectOptions());

}  // namespace fairlead::transport
