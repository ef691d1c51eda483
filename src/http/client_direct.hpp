// DirectExchange: an exchange of HttpClient without a coroutine, for the usual case: there is an idle
// connection, and the response is a small JSON message that arrives in one piece, with the same head as an
// earlier response. HttpClient::send() continues the exchange in all other cases. Not thread-safe: it is used
// on the loop thread. Private to src/http and src/transport.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "http/client.hpp"

namespace fairlead::http {

// A class that derives from it handles on_readable(), which is called when receive() may return a response.
class DirectExchange : public HttpClientConnection::InputHandler {
 public:
  DirectExchange() = default;
  DirectExchange(const DirectExchange&) = delete;

  // Returns whether requests of this client can be sent without HttpClient::send(): they have no
  // authorization and no response timeout.
  static bool supports(const HttpClient& client) noexcept;
  // Sends a request over an idle connection, without waiting. `fields` is the head of the request up to
  // the value of its last field; Content-Length is appended. Returns false, and sends nothing, if there is no
  // idle connection or if max_exchanges requests are in progress. REQUIRES: supports(client), and the
  // exchange is not in progress.
  bool start(HttpClient& client, const Url& url, std::string_view fields, std::span<const Bytes> body);
  // Returns whether the exchange was started, and has not ended with a response or been extracted.
  bool in_progress() const noexcept { return permit_.has_value(); }
  // Returns whether the whole request has been written to the socket. If not, writing it is in progress or
  // has failed. REQUIRES: in_progress().
  bool request_written() const noexcept;

  enum class Received : std::uint8_t {
    nothing,        // on_readable() will be called again
    json,           // the response is complete, and the exchange has ended
    anything_else,  // the exchange can only be continued by HttpClient::send()
  };
  // Reads once. Stores the body of a JSON response of at most `max_bytes` in `body`, which is valid until the
  // current callback returns. REQUIRES: on_readable() was called.
  Received receive(std::size_t max_bytes, std::string_view& body);
  // Returns the exchange, for ClientRequest::begun; null if it is not in progress.
  std::unique_ptr<BegunExchange> extract();

 protected:
  // Closes the connection of an exchange in progress.
  ~DirectExchange() = default;

 private:
  std::optional<ExchangePermit> permit_;
  std::unique_ptr<BegunExchange> begun_;  // what receive() has read; null before that
  std::unique_ptr<HttpClientConnection> connection_;
};

}  // namespace fairlead::http
