// A Beast server with a constant response: the cost of an HTTP server on Beast only, with callbacks, one
// thread and no timeouts. Prints its port; exits at the end of its input.
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cstdio>
#include <memory>
#include <string>

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

constexpr const char* kResponse =
    R"({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}]}})";

class Session : public std::enable_shared_from_this<Session> {
 public:
  explicit Session(tcp::socket socket) : socket_(std::move(socket)) {}

  void read() {
    request_ = {};
    http::async_read(socket_, buffer_, request_,
                     [self = shared_from_this()](beast::error_code problem, std::size_t) {
                       if (!problem) self->answer();
                     });
  }

 private:
  void answer() {
    response_ = {};
    response_.version(request_.version());
    response_.keep_alive(request_.keep_alive());
    response_.set(http::field::content_type, "application/json");
    response_.body() = kResponse;
    response_.prepare_payload();
    http::async_write(socket_, response_,
                      [self = shared_from_this()](beast::error_code problem, std::size_t) {
                        if (!problem && self->response_.keep_alive()) self->read();
                      });
  }

  tcp::socket socket_;
  beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  http::response<http::string_body> response_;
};

void accept(tcp::acceptor& acceptor) {
  acceptor.async_accept([&acceptor](boost::system::error_code problem, tcp::socket socket) {
    if (problem) return;
    socket.set_option(tcp::no_delay(true));
    std::make_shared<Session>(std::move(socket))->read();
    accept(acceptor);
  });
}

}  // namespace

int main() {
  asio::io_context context(1);
  tcp::acceptor acceptor(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  std::printf("%d\n", acceptor.local_endpoint().port());
  std::fflush(stdout);
  asio::posix::stream_descriptor input(context, dup(STDIN_FILENO));
  input.async_wait(asio::posix::descriptor_base::wait_read, [&](const auto&) { context.stop(); });
  accept(acceptor);
  context.run();
}
