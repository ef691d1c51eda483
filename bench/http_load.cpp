// The load generator for HTTP servers: keep-alive connections with one request at a time on each, always the
// same bytes. Prints calls per second, latencies and, if the process of the server is known, its CPU time per
// call, as one JSON object.
//
//   http_load HOST PORT PATH [options]               a running server (HOST is an IP address)
//   http_load [options] --path PATH -- COMMAND ARG…  starts the server, whose first line of output is its port
//                                                    and which exits at the end of its input
//     --connections N (64)   --seconds S (1)   --warm-up N (2000 calls)   --body-file F   --body-bytes N
//     (200)
//     --header 'K: V'        may be repeated   --pid P   --own-core N   --server-core N   --show-stderr
//     --expect TEXT          must occur in every response
//     --session              begins an MCP session first and sends its id with every request
//     --calls N              stops after this many calls, instead of after --seconds
//     --spread N             see @SPREAD@
// In the body, `@ID@` is replaced by a number that is unique to the connection, and `@SPREAD@` by that number
// modulo N.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "accounting.hpp"
#include "child.hpp"

namespace {

using namespace bench;

constexpr unsigned kWatchdogSeconds = 120;
constexpr std::size_t kMaxSamples = 4u << 20;

struct Options {
  std::string host = "127.0.0.1";
  int port = 0;
  std::string path = "/";
  std::size_t connections = 64;
  double seconds = 1;
  std::uint64_t warm_up = 2000;
  std::uint64_t calls = 0;  // 0: as many as the time permits
  std::size_t spread = 1;
  std::string body = std::string(200, 'x');
  std::string headers;
  std::string expect;
  pid_t pid = 0;
  int own_core = -1;
  int server_core = -1;
  bool show_stderr = false;
  bool session = false;
  char** command = nullptr;
};

[[noreturn]] void usage(const std::string& about) {
  std::fprintf(stderr, "http_load: %s; see the head of bench/http_load.cpp\n", about.c_str());
  std::exit(2);
}

std::string read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) usage(std::string("cannot read ") + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void parse_option(Options& options, const std::string& flag, const char* value) {
  if (flag == "--path")
    options.path = value;
  else if (flag == "--connections")
    options.connections = std::strtoul(value, nullptr, 10);
  else if (flag == "--seconds")
    options.seconds = std::strtod(value, nullptr);
  else if (flag == "--warm-up")
    options.warm_up = std::strtoul(value, nullptr, 10);
  else if (flag == "--calls")
    options.calls = std::strtoul(value, nullptr, 10);
  else if (flag == "--spread")
    options.spread = std::max(1ul, std::strtoul(value, nullptr, 10));
  else if (flag == "--body-file")
    options.body = read_file(value);
  else if (flag == "--body-bytes")
    options.body.assign(std::strtoul(value, nullptr, 10), 'x');
  else if (flag == "--header")
    options.headers += std::string(value) + "\r\n";
  else if (flag == "--expect")
    options.expect = value;
  else if (flag == "--pid")
    options.pid = std::atoi(value);
  else if (flag == "--own-core")
    options.own_core = std::atoi(value);
  else if (flag == "--server-core")
    options.server_core = std::atoi(value);
  else
    usage("unknown option " + flag);
}

Options parse(int argc, char** argv) {
  Options options;
  std::vector<const char*> places;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--") {
      options.command = argv + i + 1;
      break;
    }
    if (flag == "--show-stderr") {
      options.show_stderr = true;
    } else if (flag == "--session") {
      options.session = true;
    } else if (!flag.starts_with("--")) {
      places.push_back(argv[i]);
    } else if (i + 1 == argc) {
      usage(flag + " needs a value");
    } else {
      parse_option(options, flag, argv[++i]);
    }
  }
  if (places.size() == 3) {
    options.host = places[0];
    options.port = std::atoi(places[1]);
    options.path = places[2];
  } else if (!places.empty() || !options.command) {
    usage("no server");
  }
  return options;
}

// Returns the length of the first response in `bytes`, or 0 if it is not complete.
std::size_t response_length(std::string_view bytes) {
  const std::size_t head = bytes.find("\r\n\r\n");
  if (head == std::string_view::npos) return 0;
  const std::string_view fields = bytes.substr(0, head);
  for (std::size_t line = fields.find("\r\n"); line != std::string_view::npos;
       line = fields.find("\r\n", line + 2)) {
    const char* name = fields.data() + line + 2;
    if (strncasecmp(name, "content-length:", 15) == 0) {
      const std::size_t whole = head + 4 + std::strtoul(name + 15, nullptr, 10);
      return bytes.size() >= whole ? whole : 0;
    }
    if (strncasecmp(name, "transfer-encoding:", 18) == 0) {
      const std::size_t end = bytes.find("\r\n0\r\n\r\n", head + 2);
      return end == std::string_view::npos ? 0 : end + 7;
    }
  }
  return head + 4;
}

struct Connection {
  int fd = -1;
  std::string request;
  std::string buffer;
  std::uint64_t sent_ns = 0;
};

class Load {
 public:
  Load(const Options& options, int port) : options_(options), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    head_ = "POST " + options.path + " HTTP/1.1\r\nHost: " + options.host + ":" + std::to_string(port) +
            "\r\n" + options.headers;
    if (options.session) begin_session(port);
    connections_.resize(options.connections);
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      connections_[i].request = request(options.body, i);
      connections_[i].fd = connect_to(options.host, port);
      epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
      if (epoll_ctl(epoll_, EPOLL_CTL_ADD, connections_[i].fd, &event) != 0) fail("epoll_ctl");
    }
    samples_.reserve(kMaxSamples);
  }

  // All connections send requests until the time is over or enough were sent; then waits for pending
  // responses.
  std::uint64_t run(double seconds, std::uint64_t max_calls) {
    const std::uint64_t end = now_ns() + static_cast<std::uint64_t>(seconds * 1e9);
    std::uint64_t sent_count = 0;
    std::uint64_t response_count = 0;
    samples_.clear();
    for (Connection& connection : connections_) {
      send_request(connection);
      ++sent_count;
    }
    bool over = false;
    std::vector<epoll_event> events(256);
    while (response_count < sent_count) {
      const int ready = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
      for (int i = 0; i < ready; ++i) {
        Connection& connection = connections_[events[static_cast<std::size_t>(i)].data.u64];
        if (!read_response(connection)) continue;
        ++response_count;
        over = over || sent_count >= max_calls || now_ns() >= end;
        if (over) continue;
        send_request(connection);
        ++sent_count;
      }
    }
    return response_count;
  }
  std::vector<double>& samples() { return samples_; }

 private:
  static int connect_to(const std::string& host, int port) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) usage(host + " is not an IPv4 address");
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("cannot connect");
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
  }

  void send_request(Connection& connection) {
    connection.sent_ns = now_ns();
    send_all(connection.fd, connection.request);
  }

  static void send_all(int fd, std::string_view left) {
    while (!left.empty()) {
      const ssize_t n = send(fd, left.data(), left.size(), MSG_NOSIGNAL);
      if (n <= 0) fail("cannot send");
      left.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  static void replace(std::string& text, std::string_view placeholder, std::size_t number) {
    if (const auto at = text.find(placeholder); at != std::string::npos)
      text.replace(at, placeholder.size(), std::to_string(number));
  }

  std::string request(std::string body, std::size_t number) const {
    replace(body, "@ID@", 100'000 + number);
    replace(body, "@SPREAD@", number % options_.spread);
    return head_ + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  std::string exchange(int fd, const std::string& body) const {
    send_all(fd, request(body, 0));
    std::string answer;
    char piece[4096];
    while (response_length(answer) == 0) {
      const ssize_t n = recv(fd, piece, sizeof piece, 0);
      if (n <= 0) fail("the server closed the connection in the handshake");
      answer.append(piece, static_cast<std::size_t>(n));
    }
    return answer;
  }

  void begin_session(int port) {
    const int fd = connect_to(options_.host, port);
    const std::string answer = exchange(
        fd,
        R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"http_load","version":"1"}}})");
    for (std::size_t at = 0; at < answer.size(); ++at) {
      if (strncasecmp(answer.data() + at, "\r\nmcp-session-id:", 17) != 0) continue;
      const std::size_t value = answer.find_first_not_of(' ', at + 17);
      head_ += "Mcp-Session-Id: " + answer.substr(value, answer.find('\r', value) - value) + "\r\n";
      break;
    }
    exchange(fd, R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
    close(fd);
  }

  // Returns whether a response is complete.
  bool read_response(Connection& connection) {
    static char piece[1 << 20];
    const ssize_t n = recv(connection.fd, piece, sizeof piece, 0);
    if (n <= 0) fail("the server closed the connection");
    std::string_view seen(piece, static_cast<std::size_t>(n));
    if (!connection.buffer.empty()) {
      connection.buffer += seen;
      seen = connection.buffer;
    }
    const std::size_t whole = response_length(seen);
    if (whole == 0) {
      if (connection.buffer.empty()) connection.buffer = seen;
      return false;
    }
    if (whole != seen.size() || !seen.starts_with("HTTP/1.1 2") ||
        seen.find(options_.expect) == std::string_view::npos) {
      std::fprintf(stderr, "http_load: an unexpected response: %.*s\n",
                   static_cast<int>(std::min<std::size_t>(seen.size(), 600)), seen.data());
      std::exit(1);
    }
    connection.buffer.clear();
    if (samples_.size() < kMaxSamples)
      samples_.push_back(static_cast<double>(now_ns() - connection.sent_ns) / 1e3);
    return true;
  }

  const Options& options_;
  int epoll_;
  std::string head_;
  std::vector<Connection> connections_;
  std::vector<double> samples_;
};

int read_port(int from) {
  std::string line;
  for (char c = 0; read(from, &c, 1) == 1 && c != '\n';) line += c;
  if (line.empty()) fail("the server printed no port");
  return std::atoi(line.c_str() + (line.rfind(':') == std::string::npos ? 0 : line.rfind(':') + 1));
}

void raise_descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int argc, char** argv) {
  Options options = parse(argc, argv);
  alarm(kWatchdogSeconds);
  raise_descriptor_limit();
  Child child;
  if (options.command) {
    child = start_child(options.command, options.server_core, options.show_stderr);
    options.port = read_port(child.stdout_fd);
    options.pid = child.pid;
  }
  pin_to_core(options.own_core);
  Load load(options, options.port);
  load.run(10, options.warm_up);
  MeasurementWindow window(options.pid);
  const auto calls = static_cast<double>(options.calls ? load.run(kWatchdogSeconds, options.calls)
                                                       : load.run(options.seconds, ~std::uint64_t{0}));
  window.stop();
  std::vector<double>& times = load.samples();
  std::printf("{\"connections\":%zu,\"p50_us\":%.3f,\"p90_us\":%.3f,\"p99_us\":%.3f,", options.connections,
              quantile(times, 0.5), quantile(times, 0.9), quantile(times, 0.99));
  std::printf(
      "\"calls\":%.0f,\"calls_per_s\":%.1f,\"server_cpu_us\":%.4f,\"driver_cpu_us\":%.4f,\"foreign\":%.3f}\n",
      calls, calls / window.seconds(), window.server_cpu_us() / calls, window.own_cpu_us() / calls,
      window.foreign_cores());
  if (options.command && !end_child(child)) {
    std::fprintf(stderr, "http_load: the server did not exit with status 0 at the end of its input\n");
  }
}
