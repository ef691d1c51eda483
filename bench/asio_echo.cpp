// An echo server on Asio coroutines and simdjson only: the cost of a stdio server without any library on top.
// Like the others, it handles many lines with one read and one write.
#include <simdjson.h>
#include <unistd.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace asio = boost::asio;
using asio::posix::stream_descriptor;
using simdjson::ondemand::parser;

constexpr std::size_t kReadBytes = 64u << 10;
constexpr std::size_t kPadding = simdjson::SIMDJSON_PADDING;  // readable bytes after every text

struct Envelope {
  std::string_view id;
  std::string_view method;
  std::string_view params;
};

// A raw token of simdjson includes the white space after it.
std::string_view trimmed(std::string_view token) {
  while (!token.empty() && token.back() <= ' ') token.remove_suffix(1);
  return token;
}

bool read_envelope(std::string_view line, Envelope& out) {
  static parser envelopes;
  auto document = envelopes.iterate(line.data(), line.size(), line.size() + kPadding);
  simdjson::ondemand::object object;
  if (document.get_object().get(object)) return false;
  for (auto field : object) {
    std::string_view key;
    if (field.unescaped_key().get(key)) return false;
    if (key == "id") {
      out.id = trimmed(field.value().raw_json_token());
    } else if (key == "method") {
      if (field.value().get_string().get(out.method)) return false;
    } else if (key == "params") {
      simdjson::ondemand::object params;
      if (field.value().get_object().get(params) || params.raw_json().get(out.params)) return false;
    }
  }
  return true;
}

void append_call_response(std::string_view params, std::string& out) {
  static parser arguments;
  auto document = arguments.iterate(params.data(), params.size(), params.size() + kPadding);
  simdjson::ondemand::value message;
  if (document["arguments"]["message"].get(message)) {
    out += R"(,"error":{"code":-32602,"message":"message is missing"}})";
    return;
  }
  out += R"(,"result":{"content":[{"type":"text","text":)";
  out += trimmed(message.raw_json_token());
  out += "}]}}";
}

void append_response(std::string_view line, std::string& out) {
  Envelope envelope;
  if (!read_envelope(line, envelope) || envelope.id.empty()) return;
  out += R"({"jsonrpc":"2.0","id":)";
  out += envelope.id;
  if (envelope.method == "tools/call") {
    append_call_response(envelope.params, out);
  } else if (envelope.method == "initialize") {
    out += R"(,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},)"
           R"("serverInfo":{"name":"asio_echo","version":"1"}}})";
  } else {
    out += R"(,"result":{}})";
  }
  out += '\n';
}

asio::awaitable<void> serve(stream_descriptor in, stream_descriptor out) {
  std::vector<char> buffer(4 * kReadBytes);
  std::string responses;
  std::size_t size = 0;
  std::size_t scanned = 0;  // no newline before this
  while (true) {
    if (buffer.size() - size < kReadBytes + kPadding) buffer.resize(2 * buffer.size());
    const auto room = asio::buffer(buffer.data() + size, buffer.size() - size - kPadding);
    const std::size_t got = co_await in.async_read_some(room, asio::use_awaitable);
    size += got;
    std::size_t begin = 0;
    while (const void* newline = std::memchr(buffer.data() + scanned, '\n', size - scanned)) {
      const auto end = static_cast<std::size_t>(static_cast<const char*>(newline) - buffer.data());
      append_response(std::string_view(buffer.data() + begin, end - begin), responses);
      begin = scanned = end + 1;
    }
    std::memmove(buffer.data(), buffer.data() + begin, size - begin);
    size -= begin;
    scanned = size;
    if (!responses.empty()) co_await asio::async_write(out, asio::buffer(responses), asio::use_awaitable);
    responses.clear();
  }
}

// The end of the input is reported as an exception, which ends the program.
void ignore_end(std::exception_ptr) {}

}  // namespace

int main() {
  asio::io_context context(1);
  stream_descriptor in(context, dup(STDIN_FILENO));
  stream_descriptor out(context, dup(STDOUT_FILENO));
  asio::co_spawn(context, serve(std::move(in), std::move(out)), ignore_end);
  context.run();
}
