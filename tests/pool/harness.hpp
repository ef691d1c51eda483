// A pool on a loop of its own, with servers that are real processes: tests/fixtures/mcp_server.c.
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

// Generous: only a test that fails waits this long.
inline constexpr auto kPatience = 20s;

inline rpc::Message message(const std::string& text) {
  return rpc::Message::parse(Bytes::copy_of(text));
}
// A call of a tool, under an id as a client may have it.
inline rpc::Message tool_call(const std::string& tool, const std::string& meta = "") {
  return message(R"({"jsonrpc":"2.0","id":"x-7","method":"tools/call","params":{"name":")" + tool +
                 R"(","arguments":{})" + (meta.empty() ? "" : R"(,"_meta":)" + meta) + "}}");
}

inline constexpr std::string_view kEcho =
    R"({ "content" : [{"type":"text","text":"\u00fc"}], "n": 12345678901234567890.10e0 })";

// A result's text, or the error in angle brackets.
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

  const std::string gate = directory / "gate";

  void SetUp() override { ASSERT_EQ(::mkfifo(gate.c_str(), 0600), 0); }

  void open_pool() {
    options.handlers.changed = [this](const std::shared_ptr<Upstream>& upstream, const Transition& t) {
      changes.push_back(upstream->spec().name + " " + std::string(to_string(t.from)) + ">" +
                        std::string(to_string(t.to)));
    };
    pool = Pool::create(loop, options);
  }

  // Nothing may be left, whatever the test did.
  void TearDown() override {
    if (pool) {
      loop.block_on(pool->shutdown(0ms));
      EXPECT_EQ(pool->processes(), 0u);
    }
    EXPECT_EQ(survivors(), 0u);
  }

  ServerSpec spec(const std::string& name, const std::string& mode = "serve") {
    Program process;
    process.command = std::string(FAIRLEAD_FIXTURE_DIR) + "/mcp_server";
    process.args = {mode, journal(name), gate};
    process.env["FAIRLEAD_POOL_TEST"] = cookie.substr(cookie.find('=') + 1);
    process.stderr_mode = StderrMode::discard;
    ServerSpec made;
    made.name = name;
    made.reach = process;
    made.restart.initial = 1ms;
    return made;
  }
  // Has `given` connected by `connector`. Call it before add().
  void connect_by(ServerSpec& given, Connector connector) {
    if (!pool) open_pool();
    given.reach = NamedConnector{given.name};
    pool->set_connector(given.name, std::move(connector));
  }
  void add(ServerSpec given) {
    if (!pool) open_pool();
    const Result<void> added = pool->add(std::move(given));
    EXPECT_TRUE(added) << added.error().to_string();
  }

  Result<rpc::Message> call(const std::string& server, const std::string& tool, ForwardOptions how = {},
                            const std::string& session = "", const std::string& user = "") {
    return loop.block_on(pool->call(Target(server, session, user), tool_call(tool), std::move(how)));
  }
  // The pid of the process that serves.
  pid_t pid_of(const std::string& server, const std::string& session = "", const std::string& user = "") {
    const std::string text = text_of(call(server, "pid", {}, session, user));
    EXPECT_EQ(text.find_first_not_of("0123456789"), std::string::npos) << text;
    return std::atoi(text.c_str());
  }
  UpstreamStatus status(const std::string& server) {
    for (UpstreamStatus& one : pool->status())
      if (one.server == server) return one;
    return {};
  }
  template <class Condition>
  bool comes_true(Condition condition) {
    return loop.block_on(eventually(loop, std::move(condition), kPatience));
  }
  bool reaches(const std::string& server, State state) {
    return comes_true([&] { return status(server).state == state; });
  }

  // A call that goes on beside the test.
  struct Beside {
    std::optional<Result<rpc::Message>> answer;
  };
  static Task<void> run_beside(std::shared_ptr<Pool> in, Target target, rpc::Message request,
                               ForwardOptions how, std::shared_ptr<Beside> beside) {
    Task<Result<rpc::Message>> calling = in->call(std::move(target), std::move(request), std::move(how));
    beside->answer = co_await calling;
  }
  std::shared_ptr<Beside> begin(const std::string& server, const std::string& tool, ForwardOptions how = {},
                                const std::string& session = "") {
    auto beside = std::make_shared<Beside>();
    loop.spawn(run_beside(pool, Target(server, session), tool_call(tool), std::move(how), beside));
    return beside;
  }
  std::string finish(const std::shared_ptr<Beside>& beside) {
    return comes_true([&] { return beside->answer.has_value(); }) ? text_of(*beside->answer) : "<never>";
  }

  std::string journal(const std::string& server) { return directory / (server + ".journal"); }
  std::size_t noted(const std::string& server, const std::string& what) {
    std::ifstream file(journal(server));
    std::size_t count = 0;
    for (std::string text; std::getline(file, text);) count += text.starts_with(what);
    return count;
  }
  std::size_t starts(const std::string& server) { return noted(server, "start "); }
  // Lets one process through the gate. Opening it blocks nobody: it is tried until somebody waits there.
  void open_gate() {
    EXPECT_TRUE(comes_true([&] {
      const int fd = ::open(gate.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
      if (fd >= 0) ::close(fd);
      return fd >= 0;
    }));
  }

  // Processes that were started by this test and are still there, zombies not counted: they have no
  // environment.
  std::size_t survivors() const {
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
  ForwardOptions how;
  how.repeatable = true;
  return how;
}

}  // namespace fairlead::pool
