// R4.4, R2.6: faults of child processes. Each fault causes a specific error, no operation hangs, and a new
// child process works afterwards.
#include <gtest/gtest.h>
#include <signal.h>

#include "fairlead/connection/connect.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/peer/peer.hpp"
#include "support/support.hpp"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

class ChildConnectionTest : public ::testing::Test {
 public:
  Loop loop;
  PeerOptions options;
  std::shared_ptr<Connection> connection;
  std::shared_ptr<Peer> peer;

  ChildConnectionTest() { options.malformed_frames = MalformedFramePolicy::skip; }

  // Starts `sh -c SCRIPT`, in which $SERVE is the command of a well-behaved server.
  void start(const std::string& script) {
    ProcessSpec spec;
    spec.command = "sh";
    spec.args = {"-c", script};
    spec.env["SERVE"] = FAIRLEAD_ECHO_SERVER;
    spec.stderr_mode = StderrMode::discard;
    StreamConnectOptions connect_options;
    connect_options.limits.stop_grace = 200ms;
    ConnectResult connected = loop.block_on(connect_child(loop, spec, connect_options));
    ASSERT_TRUE(connected) << connected.error().to_string();
    connection = *connected;
    peer = Peer::start(connection, nullptr, options);
  }

  Task<Result<json::Raw>> do_call(std::chrono::milliseconds timeout) {
    CallOptions call_options(timeout);
    Result<json::Raw> result = co_await peer->call("ping", json::Raw(), std::move(call_options));
    co_return result;
  }
  Result<json::Raw> call(std::chrono::milliseconds timeout = 10s) { return loop.block_on(do_call(timeout)); }

  Error failure(std::chrono::milliseconds timeout = 10s) {
    const Result<json::Raw> result = call(timeout);
    if (result) return Error(ErrorKind::io, "unexpected success: " + std::string(result->text()));
    return result.error();
  }

  void TearDown() override {
    if (connection) {
      connection->close();
      loop.block_on(connection->wait_closed());
    }
    expect_new_child_works();
  }

  void expect_new_child_works() {
    connection.reset();
    peer.reset();
    start("exec $SERVE");
    const Result<json::Raw> result = call();
    EXPECT_TRUE(result && result->text() == "\"pong\"");
    connection->close();
    loop.block_on(connection->wait_closed());
  }
};

TEST_F(ChildConnectionTest, BannerBeforeTheFirstMessageIsSkippedAndCounted) {
  start("echo 'Server 1.0 starting…'; echo; echo '{\"level\":\"info\"}'; exec $SERVE");
  const Result<json::Raw> result = call();
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(peer->stats().malformed_frames, 2u);
}

TEST_F(ChildConnectionTest, CallFailsWithProcessExitedWhenChildExitsImmediately) {
  start("exit 0");
  const Error error = failure();
  EXPECT_EQ(error.kind(), ErrorKind::process_exited) << error.to_string();
  EXPECT_EQ(error.detail().exit_status, 0);
}

TEST_F(ChildConnectionTest, ProcessExitedHasExitStatusAndStderrLines) {
  start("echo 'reading config' >&2; echo 'config.json: no such file' >&2; exit 3");
  const Error error = failure();
  EXPECT_EQ(error.kind(), ErrorKind::process_exited);
  EXPECT_EQ(error.detail().exit_status, 3);
  EXPECT_EQ(error.detail().stderr_lines,
            (std::vector<std::string>{"reading config", "config.json: no such file"}));
  EXPECT_NE(error.message().find("exited with status 3"), std::string::npos) << error.message();
}

TEST_F(ChildConnectionTest, ErrorHasLinesOfStdoutThatAreNoMessages) {
  start(
      "echo 'npm ERR! code E404'; echo; echo '{\"level\":\"info\"}'; echo "
      "'{\"jsonrpc\":\"2.0\",\"method\":\"m\"}';"
      "echo '[INFO] bye'; printf 'not ended'; exit 1");
  EXPECT_EQ(
      failure().detail().stdout_lines,
      (std::vector<std::string>{"npm ERR! code E404", "{\"level\":\"info\"}", "[INFO] bye", "not ended"}));
}

TEST_F(ChildConnectionTest, ChildReportsWhetherItExitedWithoutReading) {
  start("exit 1");
  EXPECT_EQ(failure().kind(), ErrorKind::process_exited);
  ASSERT_TRUE(connection->child());
  EXPECT_TRUE(connection->child()->exited_without_reading);
  start("read line; exit 1");
  EXPECT_EQ(failure().kind(), ErrorKind::process_exited);
  EXPECT_FALSE(connection->child()->exited_without_reading);
}

TEST_F(ChildConnectionTest, ConnectionAndPeerReportPidAndExitStatus) {
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

TEST_F(ChildConnectionTest, CallFailsWithSignalWhenChildIsKilledInTheMiddleOfAMessage) {
  start("read line; printf '{\"jsonrpc\":\"2.0\",\"id\":1,\"res'; kill -SEGV $$");
  const Error error = failure();
  EXPECT_EQ(error.kind(), ErrorKind::process_exited) << error.to_string();
  EXPECT_EQ(error.detail().exit_signal, SIGSEGV);
}

TEST_F(ChildConnectionTest, ResponseBeforeExitIsReceived) {
  start("read line; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"bye\"}'; exit 1");
  const Result<json::Raw> result = call();
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->text(), "\"bye\"");
  EXPECT_EQ(failure().kind(), ErrorKind::process_exited);
}

TEST_F(ChildConnectionTest, ResponseAfterManyNotificationsIsReceivedAfterExit) {
  start(R"(read line; yes '{"jsonrpc":"2.0","method":"n"}' | head -n 50000
           echo '{"jsonrpc":"2.0","id":1,"result":"last"}')");
  const Result<json::Raw> result = call();
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->text(), "\"last\"");
}

TEST_F(ChildConnectionTest, CallFailsWithClosedWhenRunningChildClosesStdout) {
  start("exec 1>&-; sleep 1000");
  const Error error = failure();
  EXPECT_EQ(error.kind(), ErrorKind::closed);
  EXPECT_NE(error.message().find("its process is still running"), std::string::npos) << error.message();
}

TEST_F(ChildConnectionTest, CallFailsWithClosedWhenChildClosesStdin) {
  start("exec 0<&-; sleep 1000");
  // The child may close its stdin after the first write, which then succeeds. So the call is repeated until
  // it fails with the expected error.
  Error error = failure(50ms);
  const auto until = Clock::now() + 10s;
  while (error.kind() == ErrorKind::timeout && Clock::now() < until) error = failure(50ms);
  EXPECT_EQ(error.kind(), ErrorKind::closed) << error.to_string();
}

TEST_F(ChildConnectionTest, SuspendedChildTimesOutAndIsReapedOnClose) {
  start("exec $SERVE");
  ASSERT_TRUE(call());
  const std::string description = connection->description();
  const pid_t pid = std::stoi(description.substr(description.find("pid ") + 4));
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  EXPECT_EQ(failure(100ms).kind(), ErrorKind::timeout);
  connection->close();
  loop.block_on(connection->wait_closed());
  EXPECT_NE(::kill(pid, 0), 0);  // the process has ended and is reaped
}

TEST_F(ChildConnectionTest, FloodOnStderrDoesNotBlockCalls) {
  start("head -c 20000000 /dev/zero | tr '\\0' 'x' >&2; exec $SERVE");
  ASSERT_TRUE(call(30s));
}

TEST_F(ChildConnectionTest, CallsTimeOutWhenChildNeverReads) {
  options.limits.max_backlog_bytes = 1u << 20;
  start("sleep 1000");
  const json::Raw big = json::string(std::string(400'000, 'x'));
  auto body = [](ChildConnectionTest* self, json::Raw params) -> Task<std::vector<ErrorKind>> {
    std::vector<ErrorKind> kinds;
    for (int i = 0; i < 6; ++i) {
      const json::Raw array = test::raw("[" + std::string(params.text()) + "]");
      CallOptions call_options(20ms);
      const Result<json::Raw> result = co_await self->peer->call("x", array, std::move(call_options));
      kinds.push_back(result ? ErrorKind::io : result.error().kind());
    }
    co_return kinds;
  };
  const std::vector<ErrorKind> kinds = loop.block_on(body(this, big));
  EXPECT_EQ(kinds.front(), ErrorKind::timeout);
  EXPECT_EQ(kinds.back(), ErrorKind::resource_exhausted);  // the queue has reached its limit
}

TEST_F(ChildConnectionTest, CallFailsAfterExitAlthoughGrandchildKeepsPipesOpen) {
  start("setsid sleep 1000 & exit 5");
  const Error error = failure();
  EXPECT_EQ(error.kind(), ErrorKind::process_exited) << error.to_string();
  EXPECT_EQ(error.detail().exit_status, 5);
}

TEST_F(ChildConnectionTest, ChildMayWriteToStdoutWhileShuttingDown) {
  const test::TempDir dir;
  const std::string marker = dir / "written";
  // After end of file on its stdin, the child writes more than a pipe can buffer and then creates the marker
  // file.
  start("cat >/dev/null; head -c 300000 /dev/zero && echo ok > " + marker);
  connection->close();
  loop.block_on(connection->wait_closed());
  std::string written;
  std::ifstream(marker) >> written;
  EXPECT_EQ(written, "ok");
}

TEST(ChildConnectionReuseTest, DescriptorsAndThreadsDoNotLeak) {
  Loop loop;
  auto once = [](Loop& on) -> Task<void> {
    ProcessSpec spec;
    spec.command = "cat";
    ConnectResult connected = co_await connect_child(on, spec);
    EXPECT_TRUE(connected);
    if (!connected) co_return;
    const Result<void> sent = co_await (*connected)->send(test::rope("{}"));
    EXPECT_TRUE(sent);
    const Result<rpc::Message> result = co_await (*connected)->receive();
    EXPECT_TRUE(result);
    (*connected)->close();
    co_await (*connected)->wait_closed();
  };
  loop.block_on(once(loop));  // the first child starts the keeper, which stays
  const std::size_t descriptors = test::open_descriptor_count();
  const std::size_t threads = test::thread_count();
  for (int i = 0; i < 50; ++i) loop.block_on(once(loop));
  EXPECT_EQ(test::open_descriptor_count(), descriptors);
  EXPECT_EQ(test::thread_count(), threads);
}

}  // namespace
}  // namespace fairlead
