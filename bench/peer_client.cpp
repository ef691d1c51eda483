// A fairlead Peer, or an mcp::Client, as the client of the C echo server: the same two phases as the driver,
// with coroutines that co_await their calls. Prints the same keys.
//
//   peer_client [--client peer|mcp] --phase sequential|pipelined [--line-bytes N] [--in-flight N] [--seconds S] [--warm-up N]
//               [--own-core N] [--server-core N] -- C_ECHO
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "accounting.hpp"
#include "fairlead/connection/connect.hpp"
#include "fairlead/mcp/client.hpp"
#include "fairlead/peer/peer.hpp"

namespace {

using namespace fairlead;

constexpr unsigned kWatchdogSeconds = 60;
constexpr std::size_t kEnvelopeBytes = 105;  // a request without its text, as the driver builds it

struct Options {
  bool mcp = false;
  bool sequential = false;
  std::size_t line_bytes = 200;
  int in_flight = 64;
  double seconds = 1;
  std::uint64_t warm_up = 2000;
  int own_core = -1;
  std::string server_core = "0";
  std::string server;
};

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "peer_client: %s\n", message.c_str());
  std::exit(1);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    const char* value = argv[i + 1];
    if (flag == "--client") {
      options.mcp = std::string(value) == "mcp";
    } else if (flag == "--phase") {
      options.sequential = std::string(value) == "sequential";
    } else if (flag == "--line-bytes") {
      options.line_bytes = std::strtoul(value, nullptr, 10);
    } else if (flag == "--in-flight") {
      options.in_flight = std::atoi(value);
    } else if (flag == "--seconds") {
      options.seconds = std::strtod(value, nullptr);
    } else if (flag == "--warm-up") {
      options.warm_up = std::strtoul(value, nullptr, 10);
    } else if (flag == "--own-core") {
      options.own_core = std::atoi(value);
    } else if (flag == "--server-core") {
      options.server_core = value;
    } else if (flag == "--") {
      options.server = value;
    } else {
      fail("unknown option " + flag);
    }
  }
  if (options.server.empty()) fail("the server is missing");
  return options;
}

json::Raw parsed(const std::string& text) {
  const Result<json::Raw> value = json::Raw::parse(text);
  if (!value) fail(value.error().to_string());
  return json::Raw::trusted(value->bytes(), true);
}

std::string arguments_of(std::size_t line_bytes) {
  const std::string text(line_bytes > kEnvelopeBytes ? line_bytes - kEnvelopeBytes : 1, 'x');
  return R"({"message":")" + text + "\"}";
}

// The pending calls of one phase. It outlives its callers: run() waits for them.
struct Load {
  std::shared_ptr<Peer> peer;           // null: the calls are made by `client`
  json::Raw params;                     // of the peer's calls
  std::shared_ptr<mcp::Client> client;  // null: the calls are made by `peer`
  json::Raw arguments;                  // of the client's calls
  std::uint64_t until_ns = 0;
  std::uint64_t max_calls = UINT64_MAX;
  std::uint64_t calls = 0;
  int callers = 0;
  std::vector<double>* times = nullptr;  // of each call, in microseconds

  Connection& connection() const { return client ? client->connection() : peer->connection(); }
};

Task<void> caller(Load& load) {
  std::uint64_t before = bench::now_ns();
  while (before < load.until_ns && load.calls < load.max_calls) {
    if (load.client) {
      const Result<mcp::ToolResult> result = co_await load.client->call_tool("echo", load.arguments);
      if (!result) fail(result.error().to_string());
      if (result->content.size() != 1) fail("a result has no content");
    } else {
      const Result<json::Raw> answer = co_await load.peer->call("tools/call", load.params);
      if (!answer) fail(answer.error().to_string());
      if (answer->text().size() < 20) fail("a response is too short");
    }
    ++load.calls;
    const std::uint64_t after = bench::now_ns();
    if (load.times) load.times->push_back(static_cast<double>(after - before) / 1e3);
    before = after;
  }
  --load.callers;
}

void run(Loop& loop, Load& load, int callers, double seconds) {
  load.until_ns = bench::now_ns() + static_cast<std::uint64_t>(seconds * 1e9);
  load.callers = callers;
  for (int i = 0; i < callers; ++i) loop.spawn(caller(load));
  loop.run_until([&] { return load.callers == 0; });
}

std::shared_ptr<Connection> start_server(Loop& loop, const Options& options) {
  ProcessSpec spec;
  spec.command = options.server;
  spec.args = {"--core", options.server_core};
  auto connection = loop.block_on(connect_child(loop, std::move(spec)));
  if (!connection) fail(connection.error().to_string());
  return *connection;
}

// The name of a connection to a child process contains its PID: "c_echo (pid 12)".
pid_t server_pid(const Connection& connection) {
  const std::string name = connection.description();
  const std::size_t at = name.rfind("(pid ");
  return at == std::string::npos ? 0 : std::atoi(name.c_str() + at + 5);
}

void measure(Loop& loop, const Options& options, Load load) {
  std::vector<double> times;
  if (options.sequential) {
    times.reserve(1u << 20);
    load.times = &times;
  }
  bench::MeasurementWindow window(server_pid(load.connection()));
  run(loop, load, options.sequential ? 1 : options.in_flight, options.seconds);
  window.stop();
  const auto calls = static_cast<double>(load.calls);
  std::printf("{\"phase\":\"%s\",", options.sequential ? "sequential" : "pipelined");
  if (options.sequential) {
    const double p50 = bench::quantile(times, 0.5);
    std::printf("\"p50_us\":%.3f,\"p90_us\":%.3f,\"p99_us\":%.3f,", p50, bench::quantile(times, 0.9),
                bench::quantile(times, 0.99));
  }
  std::printf(
      "\"calls\":%.0f,\"calls_per_s\":%.1f,\"server_cpu_us\":%.4f,\"driver_cpu_us\":%.4f,\"foreign\":%.3f}\n",
      calls, calls / window.seconds(), window.server_cpu_us() / calls, window.own_cpu_us() / calls,
      window.foreign_cores());
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  alarm(kWatchdogSeconds);
  Loop loop;
  Load load;
  if (options.mcp) {
    auto client = loop.block_on(mcp::Client::connect_over(start_server(loop, options)));
    if (!client) fail(client.error().to_string());
    load.client = *client;
    load.arguments = parsed(arguments_of(options.line_bytes));
  } else {
    load.peer = Peer::start(start_server(loop, options));
    load.params = parsed(R"({"name":"echo","arguments":)" + arguments_of(options.line_bytes) + "}");
  }
  bench::pin_to_core(options.own_core);
  Load warm_up = load;
  warm_up.max_calls = options.warm_up;
  run(loop, warm_up, options.in_flight, 10);
  measure(loop, options, load);
  load.connection().close();
  loop.block_on(load.connection().wait_closed());
}
