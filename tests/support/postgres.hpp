// PostgresServer: a PostgreSQL server for tests, started by tests/support/postgres.py. It ends with the
// process. A test that needs it fails if PostgreSQL is not installed.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

namespace fairlead::test {

class PostgresServer {
 public:
  PostgresServer() {
    start_program();
    address_ = read_line();
    if (!address_.starts_with("postgresql://")) throw std::runtime_error("PostgreSQL does not start");
  }
  ~PostgresServer() {
    commands_.reset();  // the end of file stops the server
    ::waitpid(pid_, nullptr, 0);
  }
  PostgresServer(const PostgresServer&) = delete;

  // Returns the server of this test program, started at the first call.
  static PostgresServer& shared() {
    static PostgresServer server;
    return server;
  }

  // Creates a database with `options` of CREATE DATABASE, and returns its address.
  std::string create_database(const std::string& options = "") {
    return command("create test" + std::to_string(++database_count_) + " " + options);
  }
  void stop() { command("stop"); }    // ends the connections
  void crash() { command("crash"); }  // ends the processes without a checkpoint
  void start() { command("start"); }
  void suspend() { command("suspend"); }  // SIGSTOP: connections stay open, and nothing answers
  void resume() { command("resume"); }

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, CloseFile>;

  void start_program() {
    std::array<int, 2> input{};
    std::array<int, 2> output{};
    if (::pipe2(input.data(), O_CLOEXEC) < 0 || ::pipe2(output.data(), O_CLOEXEC) < 0)
      throw std::runtime_error("no pipe");
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    std::string program = "python3";
    std::string script = FAIRLEAD_SOURCE_DIR "/tests/support/postgres.py";
    std::string mode = "--serve";
    char* const arguments[] = {program.data(), script.data(), mode.data(), nullptr};
    const int failed = ::posix_spawnp(&pid_, "python3", &actions, nullptr, arguments, environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(input[0]);
    ::close(output[1]);
    commands_.reset(::fdopen(input[1], "w"));
    results_.reset(::fdopen(output[0], "r"));
    if (failed) throw std::runtime_error("python3 does not start");
  }
  std::string command(const std::string& line) {
    std::fputs((line + "\n").c_str(), commands_.get());
    std::fflush(commands_.get());
    return read_line();
  }
  std::string read_line() {
    std::array<char, 1024> line{};
    if (!std::fgets(line.data(), line.size(), results_.get()))
      throw std::runtime_error("tests/support/postgres.py has failed");
    std::string text = line.data();
    text.pop_back();
    return text;
  }

  pid_t pid_ = -1;
  File commands_;
  File results_;
  std::string address_;
  int database_count_ = 0;
};

}  // namespace fairlead::test
