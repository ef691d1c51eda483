// WriterProcess: the program registry_writer, which is killed while it writes.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>
#include <thread>

namespace fairlead::registry::test {

class WriterProcess {
 public:
  WriterProcess(const std::string& address, const std::string& seed) {
    std::array<int, 2> output{};
    if (::pipe2(output.data(), O_CLOEXEC) < 0) throw std::runtime_error("no pipe");
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    std::string program = FAIRLEAD_REGISTRY_WRITER;
    std::string to = address;
    std::string with = seed;
    char* const arguments[] = {program.data(), to.data(), with.data(), nullptr};
    const int failed = ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(output[1]);
    output_ = output[0];
    if (failed) throw std::runtime_error("the writer does not start");
  }
  ~WriterProcess() { ::close(output_); }

  // Reads until the process has reported this many changes, kills it after `delay`, and returns all that it
  // has written.
  std::string kill_after(int changes, std::chrono::microseconds delay) {
    while (std::ranges::count(text_, '\n') < 2 * changes && read_some()) {
    }
    std::this_thread::sleep_for(delay);
    ::kill(pid_, SIGKILL);
    while (read_some()) {
    }
    ::waitpid(pid_, &status_, 0);
    return text_;
  }
  bool was_killed() const { return WIFSIGNALED(status_); }

 private:
  bool read_some() {
    std::array<char, 4096> buffer{};
    const ssize_t count = ::read(output_, buffer.data(), buffer.size());
    if (count > 0) text_.append(buffer.data(), static_cast<std::size_t>(count));
    return count > 0;
  }

  pid_t pid_ = -1;
  int output_ = -1;
  int status_ = 0;
  std::string text_;
};

}  // namespace fairlead::registry::test
