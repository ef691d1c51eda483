// What the tests of processes share: children started and talked to in plain sequence, processes watched
// through pidfds, and counts taken from /proc. Everything waits for an event, with a deadline.
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

// Generous: only a test that fails waits this long.
inline constexpr auto kPatience = 20s;

std::string fixture(std::string_view name);
ProcessSpec spec_of(std::string command, std::vector<std::string> args = {});
inline ProcessSpec spec_of_fixture(std::string_view name, std::vector<std::string> args = {}) {
  return spec_of(fixture(name), std::move(args));
}

// A child and our ends of its pipes.
struct Running {
  std::shared_ptr<Child> child;
  UniqueFd in;
  UniqueFd out;

  // Up to the newline, without it; nothing at EOF or after kPatience.
  std::optional<std::string> line() const;
  // The number in a line "<word> <number>".
  pid_t number(std::string_view word) const;
  void say(std::string_view text) const;
};

// Fails the test when it cannot be started.
Running start(Loop& loop, ProcessSpec spec, Limits limits = {}, Log log = {});
// The error of a spawn that must fail.
Error start_error(Loop& loop, ProcessSpec spec);
// Runs the loop until the child is gone.
ExitStatus wait_for(Loop& loop, Child& child);

// A process that need not be our child.
class Watched {
 public:
  explicit Watched(pid_t pid);
  pid_t pid() const { return pid_; }
  // Waits for its end (a zombie has ended). False when it is still there after `patience`.
  bool ends_within(std::chrono::milliseconds patience) const;
  bool alive() const { return !ends_within(0ms); }

 private:
  pid_t pid_;
  UniqueFd pidfd_;
};

// Until nothing is at /proc/<pid>: reaped too.
bool vanishes(pid_t pid);

// Until the only child of `parent` is `child`.
bool is_left_alone(pid_t parent, pid_t child);

pid_t parent_of(pid_t pid);
std::vector<pid_t> children_of(pid_t pid);
std::string read_file(const std::string& path);
// What each descriptor of a process points at.
std::map<int, std::string> descriptors_of(pid_t pid);
std::size_t own_descriptor_count();

// A directory that is removed, with what is in it, at the end of the test.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  const std::string& path() const { return path_; }
  // An executable script unless `mode` says otherwise.
  std::string write(const std::string& name, std::string_view content, unsigned mode = 0755) const;

 private:
  std::string path_;
};

// Sets a variable of ours for a while.
class TemporaryVariable {
 public:
  TemporaryVariable(const char* name, const char* value);  // null: unset
  ~TemporaryVariable();

 private:
  std::string name_;
  std::optional<std::string> before_;
};

// Runs `body` in a forked process and returns its exit status (-signal when it was killed). For what would
// change this process for good: limits, users.
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
