#include "process/support.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fairlead::test {

namespace {

bool wait_until_readable(int fd, std::chrono::milliseconds timeout) {
  pollfd ready{fd, POLLIN, 0};
  return ::poll(&ready, 1, static_cast<int>(timeout.count())) > 0;
}

// Polls the condition, because there is no event for a process that another process reaps.
template <class Condition>
bool wait_until(Condition condition) {
  const auto deadline = Clock::now() + kTimeout;
  while (!condition()) {
    if (Clock::now() > deadline) return false;
    ::usleep(500);
  }
  return true;
}

}  // namespace

std::string fixture(std::string_view name) {
  return std::string(FAIRLEAD_FIXTURE_DIR) + '/' + std::string(name);
}

ProcessSpec spec_of(std::string command, std::vector<std::string> args) {
  ProcessSpec spec;
  spec.command = std::move(command);
  spec.args = std::move(args);
  return spec;
}

std::optional<std::string> RunningChild::read_line() const {
  std::string text;
  for (char c = 0;; text += c) {
    if (!wait_until_readable(out.get(), kTimeout)) return std::nullopt;
    const ssize_t n = ::read(out.get(), &c, 1);
    if (n <= 0) return std::nullopt;
    if (c == '\n') return text;
  }
}

pid_t RunningChild::read_number(std::string_view word) const {
  const std::string text = read_line().value_or("nothing");
  EXPECT_TRUE(text.starts_with(word)) << "got `" << text << "` instead of " << word;
  const auto space = text.find(' ');
  return space == std::string::npos ? 0 : std::atoi(text.c_str() + space);
}

void RunningChild::write(std::string_view text) const {
  EXPECT_EQ(::write(in.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

RunningChild start(Loop& loop, ProcessSpec spec, Limits limits, Log log) {
  auto child = loop.block_on(Child::spawn(loop, std::move(spec), limits, std::move(log)));
  if (!child) {
    ADD_FAILURE() << child.error().to_string();
    throw std::runtime_error("no child");
  }
  RunningChild running;
  running.child = *child;
  running.in = (*child)->release_stdin();
  running.out = (*child)->release_stdout();
  return running;
}

Error start_error(Loop& loop, ProcessSpec spec) {
  auto child = loop.block_on(Child::spawn(loop, std::move(spec)));
  if (!child) return child.error();
  ADD_FAILURE() << "it was started";
  return Error(ErrorKind::validation, "it was started");
}

ExitStatus wait_for(Loop& loop, Child& child) {
  return loop.block_on(child.wait_exited());
}

ProcessWatch::ProcessWatch(pid_t pid)
    : pid_(pid), pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {
  EXPECT_TRUE(pidfd_) << "no process " << pid;
}

bool ProcessWatch::ends_within(std::chrono::milliseconds timeout) const {
  return wait_until_readable(pidfd_.get(), timeout);
}

bool wait_until_reaped(pid_t pid) {
  const std::string entry = "/proc/" + std::to_string(pid);
  return wait_until([&] { return ::access(entry.c_str(), F_OK) != 0; });
}

bool wait_until_only_child(pid_t parent, pid_t child) {
  return wait_until([&] { return children_of(parent) == std::vector<pid_t>{child}; });
}

std::string read_file(const std::string& path) {
  const std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

pid_t parent_of(pid_t pid) {
  const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = stat.rfind(") ");
  return name_end == std::string::npos ? 0 : std::atoi(stat.c_str() + name_end + 4);
}

std::vector<pid_t> children_of(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children";
  std::istringstream text(read_file(path));
  std::vector<pid_t> children;
  for (pid_t child; text >> child;) children.push_back(child);
  return children;
}

std::map<int, std::string> descriptors_of(pid_t pid) {
  std::map<int, std::string> found;
  const std::string path = "/proc/" + std::to_string(pid) + "/fd";
  DIR* dir = ::opendir(path.c_str());
  const int own = dir && pid == ::getpid() ? ::dirfd(dir) : -1;
  while (const dirent* entry = dir ? ::readdir(dir) : nullptr) {
    if (entry->d_name[0] == '.' || std::atoi(entry->d_name) == own) continue;
    char target[512] = {};
    if (::readlink((path + '/' + entry->d_name).c_str(), target, sizeof target - 1) > 0) {
      found[std::atoi(entry->d_name)] = target;
    }
  }
  if (dir) ::closedir(dir);
  return found;
}

std::size_t own_descriptor_count() {
  return descriptors_of(::getpid()).size();
}

TemporaryDirectory::TemporaryDirectory() {
  path_ = (std::filesystem::temp_directory_path() / "fairlead-XXXXXX").string();
  if (!::mkdtemp(path_.data())) throw std::runtime_error("no temporary directory");
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryDirectory::write(const std::string& name, std::string_view content,
                                      unsigned mode) const {
  const std::string file = path_ + '/' + name;
  std::filesystem::create_directories(std::filesystem::path(file).parent_path());
  std::ofstream(file) << content;
  ::chmod(file.c_str(), mode);
  return file;
}

TemporaryVariable::TemporaryVariable(const char* name, const char* value) : name_(name) {
  if (const char* before = std::getenv(name)) before_ = before;
  value ? ::setenv(name, value, 1) : ::unsetenv(name);
}

TemporaryVariable::~TemporaryVariable() {
  before_ ? ::setenv(name_.c_str(), before_->c_str(), 1) : ::unsetenv(name_.c_str());
}

}  // namespace fairlead::test
