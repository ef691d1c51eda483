// Measures the memory of an idle peer. A server process has a peer for each connection on a Unix socket. This
// process opens many connections with plain sockets and requests the heap size of the server before and
// after. Each connection has carried one request before it becomes idle, so that what a peer keeps allocated
// is counted.
//
//   idle_peers [--peers N]
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "child.hpp"
#include "fairlead/connection/listen.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/peer/peer.hpp"

namespace {

using namespace fairlead;

constexpr unsigned kWatchdogSeconds = 120;
constexpr rlim_t kSpareDescriptors = 64;

// ---- the server ------------------------------------------------------------------------------------------

Answer heap_in_use(const Request&) {
  const struct mallinfo2 heap = mallinfo2();
  return json::Raw::trusted(Bytes::adopt(std::to_string(heap.uordblks + heap.hblkhd)), true);
}

Answer ping(const Request&) {
  return json::Raw::trusted(Bytes::constant("{}"), true);
}

[[noreturn]] void serve(const std::string& path, std::size_t peers, int ready) {
  Loop loop;
  auto methods = std::make_shared<Methods>();
  methods->on("heap", heap_in_use).on("ping", ping);
  StreamConnectOptions options;
  options.limits.max_connections = 2 * peers;
  const Result<Uri> uri = Uri::parse("unix:" + path);
  if (!uri) bench::fail(uri.error().message().c_str());
  const auto listener = Listener::listen(loop, *uri, options, [&](std::shared_ptr<Connection> connection) {
    Peer::start(std::move(connection), methods);
  });
  if (!listener) bench::fail(listener.error().message().c_str());
  if (write(ready, "!", 1) != 1) bench::fail("cannot report that the server is ready");
  loop.run();
  std::exit(0);
}

// ---- the clients -----------------------------------------------------------------------------------------

int open_client(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    bench::fail("cannot connect to the server");
  }
  return fd;
}

// Reads the line of a response. A response this short arrives in one piece.
std::string call(int fd, const std::string& method) {
  const std::string line = R"({"jsonrpc":"2.0","id":1,"method":")" + method + "\"}\n";
  char answer[256];
  if (write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) bench::fail("cannot write");
  const ssize_t n = read(fd, answer, sizeof answer);
  if (n <= 0) bench::fail("the server closed the connection");
  return std::string(answer, static_cast<std::size_t>(n));
}

double heap_of_server(int fd) {
  constexpr std::string_view kResult = "\"result\":";
  const std::string answer = call(fd, "heap");
  const std::size_t at = answer.find(kResult);
  if (at == std::string::npos) bench::fail("the response has no heap size");
  return std::strtod(answer.c_str() + at + kResult.size(), nullptr);
}

double resident_mib(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("VmRSS:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  }
  return 0;
}

void raise_descriptor_limit(std::size_t peers) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, peers + kSpareDescriptors);
  limit.rlim_max = std::max(limit.rlim_max, limit.rlim_cur);
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) bench::fail("cannot raise the descriptor limit");
}

void measure(const std::string& path, pid_t server, std::size_t peers) {
  const int control = open_client(path);
  heap_of_server(control);
  const double heap_before = heap_of_server(control);
  const double resident_before = resident_mib(server);
  std::vector<int> clients;
  clients.reserve(peers);
  for (std::size_t i = 0; i < peers; ++i) clients.push_back(open_client(path));
  for (const int client : clients) call(client, "ping");
  const auto count = static_cast<double>(peers);
  std::printf("{\"peers\":%zu,\"heap_bytes\":%.0f,\"resident_mib\":%.1f,\"resident_before_mib\":%.1f}\n",
              peers, (heap_of_server(control) - heap_before) / count, resident_mib(server), resident_before);
}

}  // namespace

int main(int argc, char** argv) {
  const bool given = argc == 3 && std::strcmp(argv[1], "--peers") == 0;
  const std::size_t peers = given ? std::strtoul(argv[2], nullptr, 10) : 10'000;
  raise_descriptor_limit(peers);
  const char* scratch = std::getenv("TMPDIR");
  std::string directory = std::string(scratch ? scratch : P_tmpdir) + "/idle_peers.XXXXXX";
  if (!mkdtemp(directory.data())) bench::fail("no scratch directory");
  const std::string path = directory + "/socket";
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) bench::fail("no pipe");
  const pid_t server = fork();
  if (server == 0) {
    alarm(kWatchdogSeconds);
    serve(path, peers, ready[1]);
  }
  alarm(kWatchdogSeconds);
  close(ready[1]);
  char started = 0;
  if (read(ready[0], &started, 1) == 1) measure(path, server, peers);
  kill(server, SIGTERM);
  waitpid(server, nullptr, 0);
  unlink(path.c_str());
  rmdir(directory.c_str());
}
