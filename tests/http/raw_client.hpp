// Helpers of HTTP tests: a server on its own thread, and a blocking client that sends raw bytes.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "fairlead/http/server.hpp"
#include "fairlead/loop/descriptor.hpp"
#include "fairlead/loop/loop.hpp"

namespace fairlead::test {

// A blocking client connection for raw bytes. Sends and reads time out after ten seconds.
class RawClient {
 public:
  explicit RawClient(const std::string& address) {
    const int family = address.starts_with("unix:") ? AF_UNIX : address.starts_with('[') ? AF_INET6 : AF_INET;
    fd_ = UniqueFd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval limit{10, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    const std::uint16_t port =
        htons(static_cast<std::uint16_t>(std::atoi(address.c_str() + address.rfind(':') + 1)));
    int result = -1;
    if (family == AF_UNIX) {
      sockaddr_un name{};
      name.sun_family = AF_UNIX;
      std::strncpy(name.sun_path, address.c_str() + 5, sizeof name.sun_path - 1);
      result = ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&name), sizeof name);
    } else if (family == AF_INET6) {
      sockaddr_in6 name{};
      name.sin6_family = AF_INET6;
      name.sin6_port = port;
      name.sin6_addr = in6addr_loopback;
      result = ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&name), sizeof name);
    } else {
      sockaddr_in name{};
      name.sin_family = AF_INET;
      name.sin_port = port;
      name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      result = ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&name), sizeof name);
    }
    if (result != 0) throw std::runtime_error("cannot connect to " + address + ": " + std::strerror(errno));
  }

  // Sends the bytes. Returns whether all were sent.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  void shutdown_output() { ::shutdown(fd_.get(), SHUT_WR); }
  // Closes the connection with RST instead of FIN.
  void reset() {
    const linger hard{1, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    fd_.reset();
  }
  void close() { fd_.reset(); }
  int fd() const { return fd_.get(); }

  // A response. Its body is delimited by Content-Length, by chunks, or by the end of the connection.
  struct Response {
    int status = 0;  // 0: no response
    std::string head;
    std::string body;
    bool has(std::string_view line) const { return head.find(line) != std::string::npos; }
  };
  Response read_response(bool head_only = false) {
    Response response;
    std::size_t end = 0;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
      if (!receive_more()) return response;
    }
    response.head = buffer_.substr(0, end + 2);
    response.status = std::atoi(response.head.c_str() + 9);
    buffer_.erase(0, end + 4);
    if (head_only || response.status < 200 || response.status == 204 || response.status == 304)
      return response;
    const std::size_t length = response.head.find("Content-Length: ");
    if (length != std::string::npos) {
      response.body = read_bytes(std::strtoul(response.head.c_str() + length + 16, nullptr, 10));
    } else if (response.has("Transfer-Encoding: chunked")) {
      for (std::string piece = read_chunk(); !piece.empty(); piece = read_chunk()) response.body += piece;
    } else {
      response.body = read_to_end();
    }
    return response;
  }
  Response request(std::string_view bytes) { return send(bytes) ? read_response() : Response(); }

  // Reads one chunk of a chunked body. Returns an empty string for the last chunk.
  std::string read_chunk() {
    std::size_t end = 0;
    while ((end = buffer_.find("\r\n")) == std::string::npos) {
      if (!receive_more()) throw std::runtime_error("the chunks end too early");
    }
    const std::size_t size = std::strtoul(buffer_.c_str(), nullptr, 16);
    buffer_.erase(0, end + 2);
    std::string piece = read_bytes(size + 2);
    piece.resize(size);
    return piece;
  }
  std::string read_bytes(std::size_t size) {
    while (buffer_.size() < size) {
      if (!receive_more()) break;
    }
    std::string bytes = buffer_.substr(0, size);
    buffer_.erase(0, bytes.size());
    return bytes;
  }
  // Reads until the connection ends. Returns all bytes that were not returned before.
  std::string read_to_end() {
    while (receive_more()) continue;
    return std::exchange(buffer_, {});
  }
  // Returns whether the server has closed the connection without sending more.
  bool closed_by_server() { return buffer_.empty() && !receive_more() && !timed_out_; }
  const std::string& buffered() const { return buffer_; }
  bool receive_more() {
    char piece[65536];
    const ssize_t n = ::recv(fd_.get(), piece, sizeof piece, 0);
    timed_out_ = n < 0 && errno == EAGAIN;
    if (n <= 0) return false;
    buffer_.append(piece, static_cast<std::size_t>(n));
    return true;
  }

 private:
  UniqueFd fd_;
  std::string buffer_;
  bool timed_out_ = false;
};

// Runs a loop on its own thread. run() calls `work` on that thread and returns its result.
class LoopThread {
 public:
  LoopThread() : thread_([this] { loop_.run(); }) {}
  ~LoopThread() {
    loop_.stop();
    thread_.join();
  }
  Loop& loop() { return loop_; }
  template <class Work>
  auto run(Work work) {
    std::promise<decltype(work())> promise;
    loop_.post([&] {
      if constexpr (std::is_void_v<decltype(work())>) {
        work();
        promise.set_value();
      } else {
        promise.set_value(work());
      }
    });
    return promise.get_future().get();
  }

 private:
  Loop loop_;
  std::thread thread_;
};

class HttpServer {
 public:
  explicit HttpServer(http::ServerOptions options = http::ServerOptions(),
                      const std::string& address = "127.0.0.1:0") {
    server_ = thread_.run([&] {
      auto server = http::Server::listen(thread_.loop(), address, std::move(options));
      if (!server) throw std::runtime_error(server.error().to_string());
      return *server;
    });
  }
  ~HttpServer() {
    thread_.run([&] {
      server_->close();
      server_.reset();
    });
  }
  void route(const std::string& path, http::Handler handler) {
    thread_.run([&] { server_->route(path, std::move(handler)); });
  }
  std::string address() const { return server_->address(); }
  http::Server& operator*() { return *server_; }
  http::Server* operator->() { return server_.get(); }
  LoopThread& thread() { return thread_; }
  std::size_t connection_count() {
    return thread_.run([&] { return server_->connection_count(); });
  }
  RawClient client() const { return RawClient(address()); }

 private:
  LoopThread thread_;
  std::shared_ptr<http::Server> server_;
};

// Polls `condition` until it is true. Returns false if it is still false after `limit`. For conditions that
// no event reports.
template <class Condition>
bool wait_until(Condition condition, std::chrono::milliseconds limit = std::chrono::seconds(10)) {
  const auto deadline = Clock::now() + limit;
  while (!condition()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace fairlead::test
