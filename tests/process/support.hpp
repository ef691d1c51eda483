// Support for the tests of processes: starts children and communicates with them synchronously, watches
// processes through pidfds, and reads counts from /proc. Every wait is for an event and has a timeout.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/process/child.hpp"

namespace fairlead::test {

using namespace std::chrono_literals;

// Long, because only a failing test waits for it.
inline constexpr auto kTimeout = 20s;

std::string fixture(std::string_view name);
ProcessSpec spec_of(std::string command, std::vector<std::string> args = {});
inline ProcessSpec spec_of_fixture(std::string_view name, std::vector<std::string> args = {}) {
  return spec_of(fixture(name), std::move(args));
}

// A child and the test's ends of its pipes.
struct RunningChild {
  std::shared_ptr<Child> child;
  UniqueFd in;
  UniqueFd out;

  // Reads a line and returns it without the newline. Returns nullopt at EOF or after kTimeout.
  std::optional<std::string> read_line() const;
  // Reads a line "<word> <number>" and returns the number.
  pid_t read_number(std::string_view word) const;
  void write(std::string_view text) const;
};

// Fails the test if the child cannot be started.
RunningChild start(Loop& loop, ProcessSpec spec, Limits limits = {}, Log log = {});
// Returns the error of a spawn. Fails the test if the spawn succeeds.
Error start_error(Loop& loop, ProcessSpec spec);
// Runs the loop until the child has exited.
ExitStatus wait_for(Loop& loop, Child& child);

// ProcessWatch: observes a process that need not be a child of this one.
class ProcessWatch {
 public:
  explicit ProcessWatch(pid_t pid);
  pid_t pid() const { return pid_; }
  // Waits until the process has ended, if only as a zombie. Returns false after `timeout`.
  bool ends_within(std::chrono::milliseconds timeout) const;
  bool alive() const { return !ends_within(0ms); }

 private:
  pid_t pid_;
  UniqueFd pidfd_;
};

// Waits until /proc/<pid> does not exist, that is, until the process has been reaped. Returns false after
// kTimeout.
bool wait_until_reaped(pid_t pid);

// Waits until the only child of `parent` is `child`. Returns false after kTimeout.
bool wait_until_only_child(pid_t parent, pid_t child);

pid_t parent_of(pid_t pid);
std::vector<pid_t> children_of(pid_t pid);
std::string read_file(const std::string& path);
// Returns the target of each descriptor of a process.
std::map<int, std::string> descriptors_of(pid_t pid);
std::size_t own_descriptor_count();

// TemporaryDirectory: a directory that the destructor removes with its content.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  const std::string& path() const { return path_; }
  // Writes a file and returns its path. The file is executable unless `mode` is given.
  std::string write(const std::string& name, std::string_view content, unsigned mode = 0755) const;

 private:
  std::string path_;
};

// TemporaryVariable: sets an environment variable of this process; the destructor restores it.
class TemporaryVariable {
 public:
  TemporaryVariable(const char* name, const char* value);  // null: unsets the variable
  ~TemporaryVariable();

 private:
  std::string name_;
  std::optional<std::string> before_;
};

// Runs `body` in a forked process and returns its exit status, or -signal if it was killed. For changes that
// cannot be undone in this process, such as limits and users.
template <class Body>
int in_fork(Body body);

}  // namespace fairlead::test

#include <sys/wait.h>
#include <unistd.h>

namespace fairlead::test {

template <class Body>
int in_fork(Body body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace fairlead::test
