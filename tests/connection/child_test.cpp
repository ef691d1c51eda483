// R4.4, R2.6 and the faults of children: each ends in the error that names it, nothing hangs, the next use
// works.
#include <gtest/gtest.h>
#include <signal.h>

#include "fairlead/connection/connect.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/peer/peer.hpp"
#include "support/support.hpp"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

class ChildFaults : public ::testing::Test {
 public:
  Loop loop;
  PeerOptions options;
  std::shared_ptr<Connection> connection;
  std::shared_ptr<Peer> peer;

  ChildFaults() { options.noise = Noise::skip; }

  // `sh -c SCRIPT`, in which $PING is the command line of a well-behaved server.
  void start(const std::string& script) {
    ProcessSpec spec;
    spec.command = "sh";
    spec.args = {"-c", script};
    spec.env["SERVE"] = FAIRLEAD_ECHO_SERVER;
    spec.stderr_mode = StderrMode::discard;
    ConnectOptions connect_options;
    connect_options.limits.stop_grace = 200ms;
    ConnectResult made = loop.block_on(connect_child(loop, spec, connect_options));
    ASSERT_TRUE(made) << made.error().to_string();
    connection = *made;
    peer = Peer::start(connection, nullptr, options);
  }

  Task<Result<json::Raw>> do_call(std::chrono::milliseconds timeout) {
    CallOptions call_options(timeout);
    Result<json::Raw> got = co_await peer->call("ping", json::Raw(), std::move(call_options));
    co_return got;
  }
  Result<json::Raw> call(std::chrono::milliseconds timeout = 10s) { return loop.block_on(do_call(timeout)); }

  Error failure(std::chrono::milliseconds timeout = 10s) {
    const Result<json::Raw> got = call(timeout);
    if (got) return Error(ErrorKind::io, "unexpected success: " + std::string(got->text()));
    return got.error();
  }

  void TearDown() override {
    if (connection) {
      connection->close();
      loop.block_on(connection->settled());
    }
    expect_next_use_works();
  }

  void expect_next_use_works() {
    connection.reset();
    peer.reset();
    start("exec $SERVE");
    const Result<json::Raw> got = call();
    EXPECT_TRUE(got && got->text() == "\"pong\"");
    connection->close();
    loop.block_on(connection->settled());
  }
};

TEST_F(ChildFaults, BannerBeforeTheFirstMessageIsSkippedAndCounted) {
  start("echo 'Server 1.0 starting…'; echo; echo '{\"level\":\"info\"}'; exec $SERVE");
  const Result<json::Raw> got = call();
  ASSERT_TRUE(got) << got.error().to_string();
  EXPECT_EQ(peer->stats().noise, 2u);
}

TEST_F(ChildFaults, ExitsAtOnceWithStatusZero) {
  start("exit 0");
  const Error error = failure();
  EXPECT_EQ(error.kind(), ErrorKind::process_exited) << error.to_string();
  EXPECT_EQ(error.detail().exit_status, 0);
}

TEST_F(ChildFaults, ExitCarriesStatusAndLastWords) {
  start("echo 'reading config' >&2; echo 'config.json: no such file' >&2; exit 3");
  const Error error = failure();
  EXPECT_EQ(error.kind(), ErrorKind::process_exited);
  EXPECT_EQ(error.detail().exit_status, 3);
  EXPECT_EQ(error.detail().stderr_lines,
            (std::vector<std::string>{"reading config", "config.json: no such file"}));
  EXPECT_NE(error.message().find("exited with status 3"), std::string::npos) << error.message();
}

TEST_F(ChildFaults, PidAndExitStatusAreReachableFromConnectionAndPeer) {
  start("read line; exit 3");
  const std::optional<ChildInfo> running = peer->child();
  ASSERT_TRUE(running);
  EXPECT_GT(running->pid, 0);
  EXPECT_TRUE(running->is_running);
  EXPECT_FALSE(running->exit_code);
  EXPECT_EQ(failure().kind(), ErrorKind::process_exited);
  const std::optional<ChildInfo> ended = connection->child();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->pid, running->pid);
  EXPECT_FALSE(ended->is_running);
  EXPECT_EQ(ended->exit_code, 3);
  EXPECT_FALSE(ended->signal);
}

TEST_F(ChildFaults, DiesBySignalInTheMiddleOfAMessage) {
  start("read line; printf '{\"jsonrpc\":\"2.0\",\"id\":1,\"res'; kill -SEGV $$");
  const Error error = failure();
  EXPECT_EQ(error.kind(), ErrorKind::process_exited) << error.to_string();
  EXPECT_EQ(error.detail().exit_signal, SIGSEGV);
}

TEST_F(ChildFaults, LastAnswerBeforeTheExitStillArrives) {
  start("read line; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"bye\"}'; exit 1");
  const Result<json::Raw> got = call();
  ASSERT_TRUE(got) << got.error().to_string();
  EXPECT_EQ(got->text(), "\"bye\"");
  EXPECT_EQ(failure().kind(), ErrorKind::process_exited);
}

TEST_F(ChildFaults, AnswerBehindManyNotificationsStillArrivesAfterTheExit) {
  start(R"(read line; yes '{"jsonrpc":"2.0","method":"n"}' | head -n 50000
           echo '{"jsonrpc":"2.0","id":1,"result":"last"}')");
  const Result<json::Raw> got = call();
  ASSERT_TRUE(got) << got.error().to_string();
  EXPECT_EQ(got->text(), "\"last\"");
}

TEST_F(ChildFaults, ClosesStdoutButLives) {
  start("exec 1>&-; sleep 1000");
  const Error error = failure();
  EXPECT_EQ(error.kind(), ErrorKind::closed);
  EXPECT_NE(error.message().find("its process is still running"), std::string::npos) << error.message();
}

TEST_F(ChildFaults, ClosesStdin) {
  start("exec 0<&-; sleep 1000");
  // The first write may come before the child has closed its end, so call until it is known.
  Error error = failure(50ms);
  const auto until = Clock::now() + 10s;
  while (error.kind() == ErrorKind::timeout && Clock::now() < until) error = failure(50ms);
  EXPECT_EQ(error.kind(), ErrorKind::closed) << error.to_string();
}

TEST_F(ChildFaults, StoppedChildTimesOutAndIsStillEnded) {
  start("exec $SERVE");
  ASSERT_TRUE(call());
  const std::string description = connection->description();
  const pid_t pid = std::stoi(description.substr(description.find("pid ") + 4));
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  EXPECT_EQ(failure(100ms).kind(), ErrorKind::timeout);
  connection->close();
  loop.block_on(connection->settled());
  EXPECT_NE(::kill(pid, 0), 0);  // gone, and reaped
}

TEST_F(ChildFaults, FloodOnStderrBlocksNothing) {
  start("head -c 20000000 /dev/zero | tr '\\0' 'x' >&2; exec $SERVE");
  ASSERT_TRUE(call(30s));
}

TEST_F(ChildFaults, NeverReadingChildLetsCallsTimeOutAndCloseWorks) {
  options.limits.max_backlog_bytes = 1u << 20;
  start("sleep 1000");
  const json::Raw big = json::string(std::string(400'000, 'x'));
  auto body = [](ChildFaults* self, json::Raw params) -> Task<std::vector<ErrorKind>> {
    std::vector<ErrorKind> kinds;
    for (int i = 0; i < 6; ++i) {
      const json::Raw array = test::raw("[" + std::string(params.text()) + "]");
      CallOptions call_options(20ms);
      const Result<json::Raw> got = co_await self->peer->call("x", array, std::move(call_options));
      kinds.push_back(got ? ErrorKind::io : got.error().kind());
    }
    co_return kinds;
  };
  const std::vector<ErrorKind> kinds = loop.block_on(body(this, big));
  EXPECT_EQ(kinds.front(), ErrorKind::timeout);
  EXPECT_EQ(kinds.back(), ErrorKind::resource_exhausted);  // and not more memory
}

TEST_F(ChildFaults, GrandchildHoldingThePipesDoesNotHoldUsUp) {
  start("setsid sleep 1000 & exit 5");
  const Error error = failure();
  EXPECT_EQ(error.kind(), ErrorKind::process_exited) << error.to_string();
  EXPECT_EQ(error.detail().exit_status, 5);
}

TEST_F(ChildFaults, LastWordsOnStdoutWhileShuttingDownDoNotKillIt) {
  const test::TempDir dir;
  const std::string marker = dir / "written";
  // Writes more than a pipe holds after its stdin has ended, then says so.
  start("cat >/dev/null; head -c 300000 /dev/zero && echo ok > " + marker);
  connection->close();
  loop.block_on(connection->settled());
  std::string said;
  std::ifstream(marker) >> said;
  EXPECT_EQ(said, "ok");
}

TEST(ChildCycles, DescriptorsAndThreadsAreTheSameAfterManyUses) {
  Loop loop;
  auto once = [](Loop& on) -> Task<void> {
    ProcessSpec spec;
    spec.command = "cat";
    Task<ConnectResult> connecting = connect_child(on, spec);
    ConnectResult made = co_await connecting;
    EXPECT_TRUE(made);
    if (!made) co_return;
    const Result<void> sent = co_await (*made)->send(test::rope("{}"));
    EXPECT_TRUE(sent);
    const Result<rpc::Message> got = co_await (*made)->receive();
    EXPECT_TRUE(got);
    (*made)->close();
    Task<void> settling = (*made)->settled();
    co_await settling;
  };
  loop.block_on(once(loop));  // the keeper starts with the first child and stays
  const std::size_t descriptors = test::open_descriptors();
  const std::size_t threads = test::running_threads();
  for (int i = 0; i < 50; ++i) loop.block_on(once(loop));
  EXPECT_EQ(test::open_descriptors(), descriptors);
  EXPECT_EQ(test::running_threads(), threads);
}

}  // namespace
}  // namespace fairlead
