// ServerTester: starts a server in a pool of its own, lists its tools, and stops it again. Private to the
// layer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "admin/admin.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/pool/pool.hpp"

namespace fairlead::admin {

struct TestStep {
  std::string_view name;  // "spawn" or "connect", "handshake", "list", "stop"
  bool ok = false;
  std::chrono::microseconds duration{0};

  json::Raw to_json() const;
};

struct TestOutcome {
  TestOutcome() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  bool ok = false;
  std::string revision;  // empty if the handshake has failed
  std::size_t tools = 0;
  std::vector<TestStep> steps;
  std::optional<Error> error;
  std::vector<std::string> stderr_lines;
  std::vector<std::string> stdout_lines;

  json::Raw to_json() const;
};

// Called while a test is in progress. Members may be null.
struct TestObserver {
  TestObserver() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::function<void(const TestStep&)> on_step;               // after each step
  std::function<void(std::string_view line)> on_stderr_line;  // of the process; secrets are redacted
};

// Writes {"code","message","remedy"}.
void write_failure(json::Writer& writer, const Error& error);

class ServerTester : public std::enable_shared_from_this<ServerTester> {
 public:
  // `options`: see AdminOptions::test_pool.
  ServerTester(Loop& loop, pool::PoolOptions options, std::size_t max_tests,
               std::chrono::milliseconds timeout)
      : loop_(loop), options_(std::move(options)), max_tests_(max_tests), timeout_(timeout) {}

  // Tests the server, with the secrets that `user` gets (see pool::SecretRequest). The process is stopped and
  // reaped when the task ends, also if the test fails, exceeds its timeout or is stopped. Fails with
  // `too_many_requests` if max_server_tests tests are in progress.
  static Task<Result<TestOutcome>> run(std::shared_ptr<ServerTester> self, pool::ServerSpec spec,
                                       std::string user, TestObserver observer, std::stop_token stop);
  // Stops the tests in progress; later ones fail.
  void close();

 private:
  class Test;

  Loop& loop_;
  pool::PoolOptions options_;
  std::size_t max_tests_;
  std::chrono::milliseconds timeout_;
  std::size_t running_ = 0;
  std::stop_source closed_;
};

}  // namespace fairlead::admin
