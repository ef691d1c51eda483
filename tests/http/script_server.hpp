// ScriptServer: a server for tests of HTTP clients. It passes each request to a function of the test, which
// sends the response. Runs one thread per connection.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "fairlead/http/headers.hpp"
#include "fairlead/loop/descriptor.hpp"

namespace fairlead::test {

// A request that the server received.
struct ReceivedRequest {
  std::string method;
  std::string target;
  http::Headers headers;
  std::string body;
  int connection = 0;  // number of the connection, from 1
  std::chrono::steady_clock::time_point received_at;

  bool has(std::string_view text) const { return body.find(text) != std::string::npos; }
  // Returns the JSON text of the id of the message.
  std::string id() const {
    const std::size_t at_id = body.find("\"id\":");
    if (at_id == std::string::npos) return {};
    return body.substr(at_id + 5, body.find_first_of(",}", at_id) - at_id - 5);
  }
};

class Reply {
 public:
  explicit Reply(int fd) : fd_(fd) {}

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  void respond(int status, std::string_view type, std::string_view body,
               std::string_view extra_headers = {}) {
    send("HTTP/1.1 " + std::to_string(status) + " Whatever\r\n" +
         (type.empty() ? std::string() : "Content-Type: " + std::string(type) + "\r\n") +
         std::string(extra_headers) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body));
  }
  void json(int status, std::string_view body, std::string_view extra_headers = {}) {
    respond(status, "application/json", body, extra_headers);
  }
  // Sends the result of a JSON-RPC request.
  void result(const ReceivedRequest& request, std::string_view result, std::string_view extra_headers = {}) {
    json(200, R"({"jsonrpc":"2.0","id":)" + request.id() + R"(,"result":)" + std::string(result) + "}",
         extra_headers);
  }
  // Starts a chunked event stream.
  void begin_events(std::string_view extra_headers = {}) {
    send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n" +
         std::string(extra_headers) + "\r\n");
  }
  void chunk(std::string_view bytes) {
    char size[20];
    std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
    send(size + std::string(bytes) + "\r\n");
  }
  void end_events() { send("0\r\n\r\n"); }
  // Relays bytes to and from `port` until one side closes, as a proxy does.
  void relay(int port) {
    const UniqueFd other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(static_cast<std::uint16_t>(port));
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(other.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) != 0) return disconnect();
    pollfd ends[2] = {{fd_, POLLIN, 0}, {other.get(), POLLIN, 0}};
    char bytes[4096];
    while (::poll(ends, 2, 10'000) > 0) {
      for (int i = 0; i < 2; ++i) {
        if (ends[i].revents == 0) continue;
        const ssize_t n = ::recv(ends[i].fd, bytes, sizeof bytes, 0);
        if (n <= 0 || ::send(ends[1 - i].fd, bytes, static_cast<std::size_t>(n), MSG_NOSIGNAL) != n)
          return disconnect();
      }
    }
  }
  void disconnect() { ::shutdown(fd_, SHUT_RDWR); }
  // Waits up to ten seconds for the client to close the connection. Returns whether it has.
  bool wait_for_client_close() {
    char byte;
    pollfd watched{fd_, POLLIN, 0};
    return ::poll(&watched, 1, 10'000) == 1 && ::recv(fd_, &byte, 1, 0) <= 0;
  }

 private:
  int fd_;
};

class ScriptServer {
 public:
  using Script = std::function<void(const ReceivedRequest&, Reply&)>;

  explicit ScriptServer(Script script, const char* host = "127.0.0.1")
      : script_(std::move(script)), host_(host) {
    const bool v6 = host_.find(':') != std::string::npos;
    listener_ = UniqueFd(::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_storage name{};
    socklen_t size = 0;
    if (v6) {
      auto* address = reinterpret_cast<sockaddr_in6*>(&name);
      address->sin6_family = AF_INET6;
      address->sin6_addr = in6addr_loopback;
      size = sizeof *address;
    } else {
      auto* address = reinterpret_cast<sockaddr_in*>(&name);
      address->sin_family = AF_INET;
      address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      size = sizeof *address;
    }
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&name), size) != 0 ||
        ::listen(listener_.get(), 64) != 0)
      throw std::runtime_error("cannot listen");
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&name), &size);
    port_ = ntohs(v6 ? reinterpret_cast<sockaddr_in6*>(&name)->sin6_port
                     : reinterpret_cast<sockaddr_in*>(&name)->sin_port);
    acceptor_ = std::jthread([this] { accept_all(); });
  }
  ~ScriptServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    acceptor_ = std::jthread();
    for (const auto& fd : sockets_) ::shutdown(fd->get(), SHUT_RDWR);
    threads_.clear();
  }

  int port() const { return port_; }
  std::string url(const std::string& path = "/mcp") const {
    return "http://" + (host_.find(':') == std::string::npos ? host_ : "[" + host_ + "]") + ":" +
           std::to_string(port_) + path;
  }
  std::vector<ReceivedRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  // Returns the requests whose method is `pattern`, or whose body contains it.
  std::vector<ReceivedRequest> requests(std::string_view pattern) const {
    std::vector<ReceivedRequest> found;
    for (const ReceivedRequest& request : requests()) {
      if (request.method == pattern || request.has(pattern)) found.push_back(request);
    }
    return found;
  }
  int connection_count() const { return connections_; }

 private:
  void accept_all() {
    while (true) {
      const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      sockets_.push_back(std::make_unique<UniqueFd>(fd));
      const int number = ++connections_;
      threads_.emplace_back([this, fd, number] { serve(fd, number); });
    }
  }

  void serve(int fd, int number) {
    std::string buffer;
    while (true) {
      ReceivedRequest request;
      if (!read_request(fd, buffer, request)) return static_cast<void>(::shutdown(fd, SHUT_RDWR));
      request.connection = number;
      request.received_at = std::chrono::steady_clock::now();
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      Reply reply(fd);
      script_(request, reply);
    }
  }

  static bool receive_more(int fd, std::string& buffer) {
    char bytes[4096];
    const ssize_t n = ::recv(fd, bytes, sizeof bytes, 0);
    if (n <= 0) return false;
    buffer.append(bytes, static_cast<std::size_t>(n));
    return true;
  }

  static bool read_request(int fd, std::string& buffer, ReceivedRequest& request) {
    std::size_t end;
    while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
      if (!receive_more(fd, buffer)) return false;
    }
    std::string head = buffer.substr(0, end + 2);
    buffer.erase(0, end + 4);
    std::size_t line_end = head.find("\r\n");
    const std::string first = head.substr(0, line_end);
    request.method = first.substr(0, first.find(' '));
    request.target = first.substr(first.find(' ') + 1, first.rfind(' ') - first.find(' ') - 1);
    for (std::size_t at = line_end + 2; at < head.size(); at = line_end + 2) {
      line_end = head.find("\r\n", at);
      const std::string line = head.substr(at, line_end - at);
      const std::size_t colon = line.find(':');
      request.headers.add(line.substr(0, colon), line.substr(colon + 1));
    }
    const std::size_t length =
        static_cast<std::size_t>(std::atol(std::string(request.headers.get("Content-Length")).c_str()));
    while (buffer.size() < length) {
      if (!receive_more(fd, buffer)) return false;
    }
    request.body = buffer.substr(0, length);
    buffer.erase(0, length);
    return true;
  }

  Script script_;
  std::string host_;
  UniqueFd listener_;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<ReceivedRequest> requests_;
  std::atomic<int> connections_ = 0;
  std::vector<std::unique_ptr<UniqueFd>> sockets_;  // used by the acceptor thread until it has ended
  std::vector<std::jthread> threads_;
  std::jthread acceptor_;
};

}  // namespace fairlead::test
