// The keeper: a small process beside each loop that starts children. It starts them for us, is the parent or
// the subreaper of everything they start, and outlives us just long enough to kill it all. docs/processes.md
// says what that buys. One thread, no exceptions, and it holds one socket to us and nothing else of ours.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "process/keeper/launch.hpp"
#include "process/keeper/orphans.hpp"
#include "process/keeper/table.hpp"

namespace fairlead::keeper {

namespace {

// How long the report of a child's end waits for what the child started to be gone too.
constexpr std::int64_t kLingerMs = 200;

std::int64_t now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

class Keeper {
 public:
  Keeper(int signals, int parent, bool scan) : signals_(signals), parent_(parent), scan_(scan) {}
  // Until the library is gone.
  void serve();
  // Kills all there is and all that becomes our child, until there is none.
  void end();

 private:
  bool take_requests();
  void take(char* packet, std::size_t size, int* fds, int count);
  void spawn(const Request& request, char* payload, const int* fds);
  void signal_group(const Request& request);
  void refuse(std::uint64_t token, Step step, int error);
  void settle(std::size_t index);
  void settle_child(std::uint64_t token);

  bool reap();
  void reap_one(const siginfo_t& info);
  void sweep();
  void claim_orphans();
  void report_ended();
  int timeout();

  void say(const Report& report);
  bool flush();

  int signals_;
  int parent_;
  bool scan_;
  pid_t self_ = getpid();
  bool dead_since_sweep_ = false;
  // Children on their way to their program. No request is read while there is no room for another.
  struct Pending {
    std::uint64_t token;
    pid_t pid;
    int status;
  };
  static constexpr std::size_t kMaxPending = 64;
  Pending pending_[kMaxPending];
  std::size_t pending_count_ = 0;
  Table table_;
  // Reports the socket did not take. While there are any, no request is read.
  Report* backlog_ = nullptr;
  std::size_t backlog_size_ = 0;
  std::size_t backlog_capacity_ = 0;
};

void Keeper::serve() {
  for (;;) {
    const short socket_events = !flush() ? POLLOUT : pending_count_ < kMaxPending ? POLLIN : 0;
    pollfd wait[3 + kMaxPending] = {{kSocket, socket_events, 0}, {signals_, POLLIN, 0}, {parent_, POLLIN, 0}};
    for (std::size_t i = 0; i < pending_count_; ++i) wait[3 + i] = {pending_[i].status, POLLIN, 0};
    const int ready = poll(wait, 3 + pending_count_, timeout());
    if (ready < 0 && errno != EINTR) return;
    if (wait[2].revents) return;
    for (std::size_t i = pending_count_; i-- > 0;) {
      if (wait[3 + i].revents) settle(i);
    }
    if (wait[1].revents) reap();
    if (ready == 0 || dead_since_sweep_) sweep();
    if (wait[0].revents & (POLLIN | POLLHUP | POLLERR) && !take_requests()) return;
  }
}

// Descriptors that came with a packet. Closed again once the child has them.
struct Received {
  int fds[kMaxDescriptors];
  int count = 0;

  void collect(msghdr& message) {
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
      if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
      count = static_cast<int>((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
      memcpy(fds, CMSG_DATA(part), static_cast<std::size_t>(count) * sizeof(int));
    }
  }
  ~Received() {
    for (int i = 0; i < count; ++i) close(fds[i]);
  }
};

// False when the library is gone.
bool Keeper::take_requests() {
  static char packet[sizeof(Request) + kMaxInlinePayload];
  // Bounded, so that the dead are reaped in between.
  for (int taken = 0; taken < 64 && backlog_size_ == 0 && pending_count_ < kMaxPending; ++taken) {
    iovec where{packet, sizeof packet};
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
    msghdr message{};
    message.msg_iov = &where;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = recvmsg(kSocket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    Received received;
    received.collect(message);
    take(packet, static_cast<std::size_t>(n), received.fds, received.count);
  }
  return true;
}

void Keeper::take(char* packet, std::size_t size, int* fds, int count) {
  Request request;
  if (size < sizeof request) return;
  memcpy(&request, packet, sizeof request);
  if (request.version != kVersion) return refuse(request.token, Step::request, EPROTO);
  if (request.verb == Verb::signal) return signal_group(request);
  const bool in_memfd = request.flags & payload_in_memfd;
  if (request.verb != Verb::spawn || (request.flags & ~payload_in_memfd)) {
    return refuse(request.token, Step::request, EPROTO);
  }
  // Fewer than were sent: our own table of descriptors is full.
  if (count != (in_memfd ? 4 : 3)) return refuse(request.token, Step::descriptors, EMFILE);
  if (!in_memfd) {
    if (size != sizeof request + request.payload_size) return refuse(request.token, Step::request, EPROTO);
    return spawn(request, packet + sizeof request, fds);
  }
  void* payload = mmap(nullptr, request.payload_size, PROT_READ, MAP_PRIVATE, fds[3], 0);
  if (payload == MAP_FAILED) return refuse(request.token, Step::process, errno);
  spawn(request, static_cast<char*>(payload), fds);
  munmap(payload, request.payload_size);
}

// Points `out` at `count` strings, one after the other, and ends it with a null. Returns what follows, or
// null.
char* point_at(char* from, const char* end, char** out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    char* nul = static_cast<char*>(memchr(from, '\0', static_cast<std::size_t>(end - from)));
    if (!nul) return nullptr;
    out[i] = from;
    from = nul + 1;
  }
  out[count] = nullptr;
  return from;
}

void Keeper::spawn(const Request& request, char* payload, const int* fds) {
  const char* end = payload + request.payload_size;
  const std::size_t pointers = std::size_t{request.arg_count} + request.env_count + 2;
  // Each string has at least its NUL, so counts beyond that are not true.
  if (pointers > std::size_t{request.payload_size} + 2) return refuse(request.token, Step::request, EPROTO);
  char** strings = static_cast<char**>(malloc(pointers * sizeof(char*)));
  if (!strings || !table_.reserve()) {
    free(strings);
    return refuse(request.token, Step::process, ENOMEM);
  }
  char* head[3];
  char** environment = strings + request.arg_count + 1;
  char* rest = point_at(payload, end, head, 2);
  if (rest) rest = point_at(rest, end, strings, request.arg_count);
  if (rest) rest = point_at(rest, end, environment, request.env_count);
  if (!rest) {
    free(strings);
    return refuse(request.token, Step::request, EPROTO);
  }
  const Launching child = launch({head[0], head[1], strings, environment, fds});
  free(strings);
  if (child.pid == 0) return refuse(request.token, Step::process, child.error);
  table_.add(request.token, child.pid);
  pending_[pending_count_++] = {request.token, child.pid, child.status};
}

// One that was on its way has arrived, or failed.
void Keeper::settle(std::size_t index) {
  const Pending child = pending_[index];
  pending_[index] = pending_[--pending_count_];
  const Outcome result = outcome(child.status);
  if (result.step == Step::none) return say({Event::started, Step::none, child.token, child.pid, 0, 0, 0});
  refuse(child.token, result.step, result.error);
  // It ends by itself, and is reaped as one that nobody knows.
  if (Record* record = table_.find(child.token)) table_.remove(*record);
}

void Keeper::settle_child(std::uint64_t token) {
  for (std::size_t i = 0; i < pending_count_; ++i) {
    if (pending_[i].token == token) return settle(i);
  }
}

void Keeper::refuse(std::uint64_t token, Step step, int error) {
  say({Event::refused, step, token, 0, error, 0, 0});
}

void Keeper::signal_group(const Request& request) {
  // Not reaped yet, so its pid and its group's number are still its own.
  const Record* record = table_.find(request.token);
  if (!record || record->reaped) return;
  kill(-record->pid, request.signal);
  // A stopped process takes no signal but KILL until it goes on.
  if (request.signal == SIGTERM) kill(-record->pid, SIGCONT);
}

// Reaps every zombie there is. True when there are children left.
bool Keeper::reap() {
  signalfd_siginfo ignored;
  while (read(signals_, &ignored, sizeof ignored) > 0) {
  }
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0) return errno != ECHILD;
    if (info.si_pid == 0) return true;
    reap_one(info);
  }
}

void Keeper::reap_one(const siginfo_t& info) {
  const pid_t pid = info.si_pid;
  Record* record = table_.running(pid);
  if (record) settle_child(record->token);
  record = table_.running(pid);
  // While the leader is a zombie nobody else can get its group's number.
  if (record) kill(-pid, SIGKILL);
  siginfo_t ignored;
  waitid(P_PID, static_cast<id_t>(pid), &ignored, WEXITED);
  dead_since_sweep_ = true;
  if (!record) return;
  const bool exited = info.si_code == CLD_EXITED;
  record->reaped = true;
  record->deadline = now_ms() + kLingerMs;
  record->report = {Event::ended,
                    Step::none,
                    record->token,
                    pid,
                    0,
                    exited ? info.si_status : -1,
                    exited ? 0 : info.si_status};
  table_.remember_gone(*record);
}

// Kills the orphans of children that are gone, and reports those children of which nothing is left. What
// dies here brings another SIGCHLD, and so another sweep that finds what it had started.
void Keeper::sweep() {
  dead_since_sweep_ = false;
  for (Record& record : table_) {
    record.lingering = record.reaped && (kill(-record.pid, 0) == 0 || errno == EPERM);
  }
  claim_orphans();
  report_ended();
}

void Keeper::claim_orphans() {
  const ChildList children(scan_);
  if (children.size() == table_.running_count()) return;  // each is one we started
  for (const pid_t pid : children) {
    if (table_.running(pid)) continue;
    const Claim owner = claim(table_, self_, pid);
    if (owner.owner != Owner::gone) continue;
    kill(pid, SIGKILL);
    if (Record* record = table_.find(owner.token)) record->lingering = true;
  }
}

void Keeper::report_ended() {
  const std::int64_t now = now_ms();
  for (std::size_t i = table_.size(); i-- > 0;) {
    Record& record = table_.begin()[i];
    if (!record.reaped || (record.lingering && now < record.deadline)) continue;
    say(record.report);
    table_.remove(record);
  }
}

int Keeper::timeout() {
  std::int64_t first = -1;
  for (const Record& record : table_) {
    if (record.reaped && (first < 0 || record.deadline < first)) first = record.deadline;
  }
  if (first < 0) return -1;
  const std::int64_t left = first - now_ms();
  return left < 0 ? 0 : static_cast<int>(left);
}

void Keeper::say(const Report& report) {
  if (backlog_size_ == 0 && send(kSocket, &report, sizeof report, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return;
  if (backlog_size_ == backlog_capacity_) {
    const std::size_t wanted = backlog_capacity_ ? backlog_capacity_ * 2 : 64;
    void* grown = realloc(backlog_, wanted * sizeof(Report));
    if (!grown) return;
    backlog_ = static_cast<Report*>(grown);
    backlog_capacity_ = wanted;
  }
  backlog_[backlog_size_++] = report;
}

// True when nothing is left to say.
bool Keeper::flush() {
  std::size_t done = 0;
  while (done < backlog_size_ &&
         send(kSocket, backlog_ + done, sizeof(Report), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
    ++done;
  }
  backlog_size_ -= done;
  if (done) memmove(backlog_, backlog_ + done, backlog_size_ * sizeof(Report));
  return backlog_size_ == 0;
}

void Keeper::end() {
  close(kSocket);
  for (const Record& record : table_) {
    if (!record.reaped) kill(-record.pid, SIGKILL);
  }
  for (;;) {
    const ChildList children(scan_);
    for (const pid_t pid : children) kill(pid, SIGKILL);
    if (!children.valid()) return;
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) < 0 && errno != EINTR) return;
    if (!reap()) return;
  }
}

void stand_apart() {
  prctl(PR_SET_NAME, "fairlead-keeper");
  close_range(kSocket + 1, ~0u, 0);
  fcntl(kSocket, F_SETFD, FD_CLOEXEC);
  // 0, 1 and 2 stay taken, so that no descriptor a child is to get lands there.
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; ++fd) dup3(null < 0 ? kSocket : null, fd, O_CLOEXEC);
  if (null > kSocket) close(null);
}

// Blocked, not ignored: what is ignored would stay ignored in the children, what is blocked they unblock.
// A service manager that signals the whole cgroup does not reach the children through us.
void ignore_signals() {
  char defaults[256] = {};  // the kernel's struct sigaction with SIG_DFL, whatever its size
  for (int signal = 1; signal <= 64; ++signal) {
    // By system call, as libc does not touch the two signals it reserves (and posix_spawn ignores them).
    syscall(SYS_rt_sigaction, signal, defaults, nullptr, 8);
  }
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
}

int run(int argc, char** argv) {
  if (argc < 2) return 2;
  const pid_t parent = atoi(argv[1]);
  const bool scan = argc > 2 && strcmp(argv[2], "--scan-proc") == 0;
  ignore_signals();
  stand_apart();
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) return 3;
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  const int signals = signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
  // The socket ends with us unless a process we forked holds it too; the pidfd ends with us in any case.
  const int parent_fd = static_cast<int>(syscall(SYS_pidfd_open, parent, 0));
  if (signals < 0 || getppid() != parent) return 3;
  static Keeper keeper(signals, parent_fd, scan);
  keeper.serve();
  keeper.end();
  return 0;
}

}  // namespace

}  // namespace fairlead::keeper

int main(int argc, char** argv) {
  return fairlead::keeper::run(argc, argv);
}
