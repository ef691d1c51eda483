// PoolTest: a fixture with a pool on its own loop, whose servers are real processes
// (tests/fixtures/mcp_server.c).
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fairlead/json/view.hpp"
#include "fairlead/pool/pool.hpp"
#include "support/support.hpp"

namespace fairlead::pool {

using namespace std::chrono_literals;
using test::eventually;

// Generous, because only a failing test waits this long.
inline constexpr auto kTestTimeout = 20s;

inline rpc::Message message(const std::string& text) {
  return rpc::Message::parse(Bytes::copy_of(text));
}
// Returns a tools/call request with the id of a client.
inline rpc::Message tool_call(const std::string& tool, const std::string& meta = "") {
  return message(R"({"jsonrpc":"2.0","id":"x-7","method":"tools/call","params":{"name":")" + tool +
                 R"(","arguments":{})" + (meta.empty() ? "" : R"(,"_meta":)" + meta) + "}}");
}

inline constexpr std::string_view kEcho =
    R"({ "content" : [{"type":"text","text":"\u00fc"}], "n": 12345678901234567890.10e0 })";

// Returns the text of a result, or the error in angle brackets.
inline std::string text_of(const Result<rpc::Message>& answer) {
  if (!answer) return "<" + answer.error().to_string() + ">";
  return json::View(answer->result_text())["content"][std::size_t{0}]["text"].as_string().value_or(
      std::string(answer->frame().view()));
}

class PoolTest : public ::testing::Test {
 protected:
  Loop loop;
  test::TempDir directory;
  const std::string cookie = "FAIRLEAD_POOL_TEST=" + std::to_string(::getpid()) + "." +
                             ::testing::UnitTest::GetInstance()->current_test_info()->name();
  PoolOptions options;
  std::shared_ptr<Pool> pool;
  std::vector<std::string> changes;  // "server from>to"

  // A FIFO: the tool `gate` and a server in mode `gated` block on it until open_gate().
  const std::string gate = directory / "gate";

  void SetUp() override { ASSERT_EQ(::mkfifo(gate.c_str(), 0600), 0); }

  void open_pool() {
    options.handlers.on_state_changed = [this](const std::shared_ptr<Upstream>& upstream,
                                               const Transition& t) {
      changes.push_back(upstream->spec().name + " " + std::string(to_string(t.from)) + ">" +
                        std::string(to_string(t.to)));
    };
    pool = Pool::create(loop, options);
  }

  // Shuts down the pool, and checks that no process of the test is left.
  void TearDown() override {
    if (pool) {
      loop.block_on(pool->shutdown(0ms));
      EXPECT_EQ(pool->process_count(), 0u);
    }
    EXPECT_EQ(surviving_process_count(), 0u);
  }

  ServerSpec spec(const std::string& name, const std::string& mode = "serve") {
    Program process;
    process.command = std::string(FAIRLEAD_FIXTURE_DIR) + "/mcp_server";
    process.args = {mode, journal(name), gate};
    process.env["FAIRLEAD_POOL_TEST"] = cookie.substr(cookie.find('=') + 1);
    process.stderr_mode = StderrMode::discard;
    ServerSpec server;
    server.name = name;
    server.transport = process;
    server.restart.initial = 1ms;
    return server;
  }
  // Makes the pool connect `server` with `connector`. To be called before add().
  void connect_by(ServerSpec& server, Connector connector) {
    if (!pool) open_pool();
    server.transport = ConnectorName{server.name};
    pool->set_connector(server.name, std::move(connector));
  }
  void add(ServerSpec server) {
    if (!pool) open_pool();
    const Result<void> added = pool->add(std::move(server));
    EXPECT_TRUE(added) << added.error().to_string();
  }

  Result<rpc::Message> call(const std::string& server, const std::string& tool,
                            ForwardOptions call_options = {}, const std::string& session = "",
                            const std::string& user = "") {
    return loop.block_on(pool->call(Target(server, session, user), tool_call(tool), std::move(call_options)));
  }
  // Returns the pid of the process that serves this session or user. Starts the process if necessary.
  pid_t pid_of(const std::string& server, const std::string& session = "", const std::string& user = "") {
    const std::string text = text_of(call(server, "pid", {}, session, user));
    EXPECT_EQ(text.find_first_not_of("0123456789"), std::string::npos) << text;
    return std::atoi(text.c_str());
  }
  UpstreamStatus status(const std::string& server) {
    for (UpstreamStatus& upstream : pool->status())
      if (upstream.server == server) return upstream;
    return {};
  }
  template <class Condition>
  bool wait_until(Condition condition) {
    return loop.block_on(eventually(loop, std::move(condition), kTestTimeout));
  }
  bool reaches(const std::string& server, UpstreamState state) {
    return wait_until([&] { return status(server).state == state; });
  }

  // A call that runs while the test continues.
  struct BackgroundCall {
    std::optional<Result<rpc::Message>> answer;
  };
  static Task<void> run_in_background(std::shared_ptr<Pool> pool, Target target, rpc::Message request,
                                      ForwardOptions call_options,
                                      std::shared_ptr<BackgroundCall> background) {
    background->answer = co_await pool->call(std::move(target), std::move(request), std::move(call_options));
  }
  std::shared_ptr<BackgroundCall> begin_call(const std::string& server, const std::string& tool,
                                             ForwardOptions call_options = {},
                                             const std::string& session = "") {
    auto background = std::make_shared<BackgroundCall>();
    loop.spawn(run_in_background(pool, Target(server, session), tool_call(tool), std::move(call_options),
                                 background));
    return background;
  }
  // Waits for the response and returns its text_of().
  std::string finish_call(const std::shared_ptr<BackgroundCall>& background) {
    return wait_until([&] { return background->answer.has_value(); }) ? text_of(*background->answer)
                                                                      : "<never>";
  }

  std::string journal(const std::string& server) { return directory / (server + ".journal"); }
  // Returns the number of journal lines of the server that start with `prefix`.
  std::size_t journal_lines(const std::string& server, const std::string& prefix) {
    std::ifstream file(journal(server));
    std::size_t count = 0;
    for (std::string text; std::getline(file, text);) count += text.starts_with(prefix);
    return count;
  }
  std::size_t start_count(const std::string& server) { return journal_lines(server, "start "); }
  // Unblocks one process that waits at the gate. Opens the FIFO without blocking, and retries until a process
  // waits there.
  void open_gate() {
    EXPECT_TRUE(wait_until([&] {
      const int fd = ::open(gate.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
      if (fd >= 0) ::close(fd);
      return fd >= 0;
    }));
  }

  // Returns the number of processes that were started by this test and still exist. Zombies are not counted,
  // because they have no environment.
  std::size_t surviving_process_count() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "environ");
      const std::string environment((std::istreambuf_iterator<char>(file)), {});
      if (environment.find(cookie + '\0') != std::string::npos) ++count;
    }
    return count;
  }
};

inline ForwardOptions repeatable_call() {
  ForwardOptions call_options;
  call_options.repeatable = true;
  return call_options;
}

}  // namespace fairlead::pool
