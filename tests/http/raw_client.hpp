// What HTTP tests need: a server on a thread of its own, and a client that sends bytes as they are and
// blocks.
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

// A connection of raw bytes. Waits at most ten seconds for anything.
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

  // Returns whether all of it was taken.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  void shut_output() { ::shutdown(fd_.get(), SHUT_WR); }
  // Ends with RST and not with FIN.
  void reset() {
    const linger hard{1, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    fd_.reset();
  }
  void close() { fd_.reset(); }
  int fd() const { return fd_.get(); }

  // One answer: with a Content-Length or in chunks, or else up to the end.
  struct Answer {
    int status = 0;  // 0: none came
    std::string head;
    std::string body;
    bool has(std::string_view line) const { return head.find(line) != std::string::npos; }
  };
  Answer answer(bool to_head = false) {
    Answer answer;
    std::size_t end = 0;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
      if (!more()) return answer;
    }
    answer.head = buffer_.substr(0, end + 2);
    answer.status = std::atoi(answer.head.c_str() + 9);
    buffer_.erase(0, end + 4);
    if (to_head || answer.status < 200 || answer.status == 204 || answer.status == 304) return answer;
    const std::size_t length = answer.head.find("Content-Length: ");
    if (length != std::string::npos) {
      answer.body = take(std::strtoul(answer.head.c_str() + length + 16, nullptr, 10));
    } else if (answer.has("Transfer-Encoding: chunked")) {
      for (std::string piece = chunk(); !piece.empty(); piece = chunk()) answer.body += piece;
    } else {
      answer.body = rest();
    }
    return answer;
  }
  Answer ask(std::string_view request) { return send(request) ? answer() : Answer(); }

  // One chunk of a chunked body; empty: the last one.
  std::string chunk() {
    std::size_t end = 0;
    while ((end = buffer_.find("\r\n")) == std::string::npos) {
      if (!more()) throw std::runtime_error("the chunks end too early");
    }
    const std::size_t size = std::strtoul(buffer_.c_str(), nullptr, 16);
    buffer_.erase(0, end + 2);
    std::string piece = take(size + 2);
    piece.resize(size);
    return piece;
  }
  std::string take(std::size_t size) {
    while (buffer_.size() < size) {
      if (!more()) break;
    }
    std::string taken = buffer_.substr(0, size);
    buffer_.erase(0, taken.size());
    return taken;
  }
  // All up to the end of the connection.
  std::string rest() {
    while (more()) continue;
    return std::exchange(buffer_, {});
  }
  // Whether the server has closed, without sending anything more.
  bool ended() { return buffer_.empty() && !more() && !timed_out_; }
  const std::string& buffered() const { return buffer_; }
  bool more() {
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

// A loop on a thread of its own, and things done on it.
class LoopThread {
 public:
  LoopThread() : thread_([this] { loop_.run(); }) {}
  ~LoopThread() {
    loop_.stop();
    thread_.join();
  }
  Loop& loop() { return loop_; }
  template <class Do>
  auto run(Do work) {
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
      auto made = http::Server::listen(thread_.loop(), address, std::move(options));
      if (!made) throw std::runtime_error(made.error().to_string());
      return *made;
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
  std::size_t connections() {
    return thread_.run([&] { return server_->connections(); });
  }
  RawClient client() const { return RawClient(address()); }

 private:
  LoopThread thread_;
  std::shared_ptr<http::Server> server_;
};

// Looks until it holds; for what no event announces.
template <class Condition>
bool holds_soon(Condition condition, std::chrono::milliseconds limit = std::chrono::seconds(10)) {
  const auto until = Clock::now() + limit;
  while (!condition()) {
    if (Clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace fairlead::test
