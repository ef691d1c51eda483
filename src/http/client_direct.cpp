#include "http/client_direct.hpp"

#include <array>
#include <charconv>
#include <limits>

namespace fairlead::http {

namespace {

constexpr std::string_view kLengthName = "Content-Length";

// Ends the line of a field, and appends Content-Length and the empty line after it.
void append_length_and_end(std::string& head, std::size_t length) {
  constexpr std::string_view kField = "\r\nContent-Length: ";
  constexpr std::string_view kEnd = "\r\n\r\n";
  std::array<char, kField.size() + std::numeric_limits<std::size_t>::digits10 + 1 + kEnd.size()> text;
  char* const digits = text.data() + kField.copy(text.data(), kField.size());
  char* const digits_end = std::to_chars(digits, text.data() + text.size(), length).ptr;
  const char* const end = digits_end + kEnd.copy(digits_end, kEnd.size());
  head.append(text.data(), static_cast<std::size_t>(end - text.data()));
}

// Stores the head of a response of status 200 whose body is JSON, and after which the connection stays open.
// `response` are all bytes that `parser` has parsed.
void remember_json_head(RepeatedHead& repeated, const ResponseParser& parser, std::string_view response,
                        std::size_t body_size) {
  if (!parser.done() || !parser.keep_alive() || parser.head().status != 200) return;
  const Headers& headers = parser.head().headers;
  const Headers::Lookup length = headers.lookup(kLengthName);
  if (length.count != 1 || headers.has("Content-Encoding") ||
      !equals_ignore_case(media_type_of(headers), "application/json"))
    return;
  const std::string_view head = response.substr(0, response.size() - body_size);
  if (head.find("\r\n\r\n") + 4 != head.size()) return;  // an interim response precedes it
  // The text of all fields is contiguous in `headers`, as it is in `head`.
  const auto offset = static_cast<std::size_t>(length.value.data() - (*headers.begin()).first.data());
  repeated.assign(head, head.substr(head.find('\n') + 1 + offset, length.value.size()));
}

}  // namespace

bool DirectExchange::supports(const HttpClient& client) noexcept {
  const ClientOptions& options = client.options();
  return !options.authorization.headers && !options.authorization.on_challenge &&
         options.response_timeout.count() == 0 && !options.headers.has(kLengthName);
}

bool DirectExchange::start(HttpClient& client, const Url& url, std::string_view fields,
                           std::span<const Bytes> body) {
  if (client.exchanges_in_progress_ >= client.options_.max_exchanges) return false;
  std::unique_ptr<HttpClientConnection> connection = client.acquire_idle(url);
  if (!connection) return false;
  std::size_t size = 0;
  for (const Bytes& part : body) size += part.size();
  std::string& head = connection->head_buffer();
  head = fields;
  append_length_and_end(head, size);
  connection->set_input_handler(this);
  connection->start_write(body, client.options_.limits.write_stall);
  connection_ = std::move(connection);
  permit_.emplace(client.shared_from_this());
  return true;
}

bool DirectExchange::request_written() const noexcept {
  return !connection_->writing() && !connection_->write_error();
}

DirectExchange::Received DirectExchange::receive(std::size_t max_bytes, std::string_view& body) {
  const std::optional<std::string_view> input = connection_->read_once();
  if (!input) {
    connection_->wait_for_input();
    return Received::nothing;
  }
  HttpClient& client = permit_->client();
  const std::optional<std::string_view> json = client.repeated_head_.body_of(*input);
  if (json && json->size() <= max_bytes) {
    body = *json;
    connection_->set_input_handler(nullptr);
    client.add_idle(std::move(connection_));
    permit_.reset();
    return Received::json;
  }
  begun_ = std::make_unique<BegunExchange>();
  begun_->parsed = begun_->parser.feed(*input, begun_->body);
  if (begun_->parsed) remember_json_head(client.repeated_head_, begun_->parser, *input, begun_->body.size());
  return Received::anything_else;
}

std::unique_ptr<BegunExchange> DirectExchange::extract() {
  if (!in_progress()) return nullptr;
  if (!begun_) begun_ = std::make_unique<BegunExchange>();
  connection_->set_input_handler(nullptr);
  begun_->connection = std::move(connection_);
  permit_.reset();
  return std::move(begun_);
}

}  // namespace fairlead::http
