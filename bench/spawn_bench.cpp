// Measures the cost of starting child processes through the keeper, compared with a plain loop of
// posix_spawn: the time until all of them have echoed a line. Rounds of both are interleaved, so that a busy
// machine slows both. Then repeats the measurement with 1 GiB of touched memory in this process, which must
// make no difference.
//
//     spawn_bench [--json] [--children 50] [--rounds 15]
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "fairlead/process/child.hpp"

extern "C" char** environ;

namespace {

using namespace fairlead;

constexpr std::string_view kLine = "ready\n";

struct Options {
  bool json = false;
  int children = 50;
  int rounds = 15;
};

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "spawn_bench: %s\n", message.c_str());
  std::exit(1);
}

void write_line(int fd) {
  if (::write(fd, kLine.data(), kLine.size()) != static_cast<ssize_t>(kLine.size()))
    fail("cannot write to a child");
}

void read_line(int fd) {
  char echo[64];
  if (::read(fd, echo, sizeof echo) != static_cast<ssize_t>(kLine.size())) fail("a child did not echo");
}

// The baseline: three pipes and one posix_spawn for each child process.
struct BareChild {
  pid_t pid = 0;
  UniqueFd in, out, err;
};

BareChild spawn_bare() {
  int pipes[3][2];
  for (auto& ends : pipes) {
    if (::pipe2(ends, O_CLOEXEC) < 0) fail("no pipe");
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, pipes[0][0], 0);
  ::posix_spawn_file_actions_adddup2(&actions, pipes[1][1], 1);
  ::posix_spawn_file_actions_adddup2(&actions, pipes[2][1], 2);
  BareChild child;
  char name[] = "cat";
  char* const argv[] = {name, nullptr};
  if (::posix_spawnp(&child.pid, name, &actions, nullptr, argv, environ) != 0) fail("posix_spawn");
  ::posix_spawn_file_actions_destroy(&actions);
  for (const int fd : {pipes[0][0], pipes[1][1], pipes[2][1]}) ::close(fd);
  child.in = UniqueFd(pipes[0][1]);
  child.out = UniqueFd(pipes[1][0]);
  child.err = UniqueFd(pipes[2][0]);
  return child;
}

double bare_round(int count) {
  const auto start = Clock::now();
  std::vector<BareChild> children;
  for (int i = 0; i < count; ++i) {
    children.push_back(spawn_bare());
    write_line(children.back().in.get());
  }
  for (const BareChild& child : children) read_line(child.out.get());
  const double took = ms_since(start);
  for (BareChild& child : children) {
    child.in.reset();
    ::waitpid(child.pid, nullptr, 0);
  }
  return took;
}

struct Round {
  Loop& loop;
  std::vector<std::shared_ptr<Child>> children;
  int missing;
  Clock::time_point ready_at;
};

class Readable {
 public:
  explicit Readable(Descriptor& from) : from_(&from) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) {
    from_->when_readable([handle] { handle.resume(); });
  }
  void await_resume() const noexcept {}

 private:
  Descriptor* from_;
};

// `round` outlives this coroutine: fairlead_round() runs the loop until it has finished.
Task<void> start_child_and_echo(Round& round) {
  ProcessSpec spec;
  spec.command = "cat";
  Result<std::shared_ptr<Child>> child = co_await Child::spawn(round.loop, std::move(spec));
  if (!child) fail(child.error().to_string());
  const UniqueFd in = (*child)->release_stdin();
  write_line(in.get());
  Result<Descriptor> out = Descriptor::adopt(round.loop, (*child)->release_stdout());
  co_await Readable(*out);
  read_line(out->fd());
  round.children.push_back(*child);
  if (--round.missing == 0) round.ready_at = Clock::now();
  static_cast<void>(co_await (*child)->wait_exited());
}

double fairlead_round(Loop& loop, int count) {
  const auto start = Clock::now();
  Round round{loop, {}, count, {}};
  for (int i = 0; i < count; ++i) loop.spawn(start_child_and_echo(round));
  loop.run_until([&] { return round.missing == 0; });
  for (const auto& child : round.children) child->kill();
  loop.run_until([&] {
    return std::ranges::all_of(round.children, [](const auto& child) { return child.use_count() == 1; });
  });
  return std::chrono::duration<double, std::milli>(round.ready_at - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct RoundTimes {
  double bare_ms;
  double ours_ms;
  double ratio() const { return ours_ms / bare_ms; }
};

RoundTimes measure(Loop& loop, const Options& options) {
  std::vector<double> bare;
  std::vector<double> ours;
  for (int i = 0; i < options.rounds; ++i) {
    bare.push_back(bare_round(options.children));
    ours.push_back(fairlead_round(loop, options.children));
  }
  return {median(bare), median(ours)};
}

void print(const Options& options, double first, const RoundTimes& small, const RoundTimes& large) {
  if (options.json) {
    std::printf(
        "{\"bench\":\"spawn\",\"children\":%d,\"rounds\":%d,\"first_child_ms\":%.3f,"
        "\"small\":{\"bare_ms\":%.3f,\"ours_ms\":%.3f,\"ratio\":%.3f},"
        "\"with_1_gib\":{\"bare_ms\":%.3f,\"ours_ms\":%.3f,\"ratio\":%.3f}}\n",
        options.children, options.rounds, first, small.bare_ms, small.ours_ms, small.ratio(), large.bare_ms,
        large.ours_ms, large.ratio());
    return;
  }
  std::printf("%d children started and ready, median of %d rounds, milliseconds\n\n", options.children,
              options.rounds);
  std::printf("  %-22s %8s %8s %7s\n", "this process", "bare", "ours", "ratio");
  std::printf("  %-22s %8.2f %8.2f %7.2f\n", "small", small.bare_ms, small.ours_ms, small.ratio());
  std::printf("  %-22s %8.2f %8.2f %7.2f\n", "with 1 GiB touched", large.bare_ms, large.ours_ms,
              large.ratio());
  std::printf("\n  the first child, with its keeper: %.2f\n", first);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--json") {
      options.json = true;
    } else if (flag == "--children" && i + 1 < argc) {
      options.children = std::max(1, std::atoi(argv[++i]));
    } else if (flag == "--rounds" && i + 1 < argc) {
      options.rounds = std::max(1, std::atoi(argv[++i]));
    } else {
      fail("usage: spawn_bench [--json] [--children N] [--rounds N]");
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  Loop loop;
  const double first = fairlead_round(loop, 1);
  const RoundTimes small = measure(loop, options);
  constexpr std::size_t kLarge = 1u << 30;
  const auto memory = std::make_unique<char[]>(kLarge);
  std::memset(memory.get(), 1, kLarge);
  const RoundTimes large = measure(loop, options);
  print(options, first, small, large);
}
