// What the library asks of the keeper.
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>

#include "process/keeper/cgroup.hpp"
#include "process/keeper/keeper.hpp"
#include "process/keeper/launch.hpp"

namespace fairlead::keeper {

namespace {

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

}  // namespace

// False when the library is gone.
bool Keeper::take_requests() {
  static char packet[sizeof(Request) + kMaxInlinePayload];
  // Bounded, so that the dead are reaped in between.
  for (int taken = 0; taken < 64 && backlog_.empty() && pending_count_ < kMaxPending; ++taken) {
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
  if (request.verb == Verb::ping) return say({Event::alive, 0, request.token, 0, 0, 0, {}});
  const bool in_memfd = request.flags & payload_in_memfd;
  if (request.verb != Verb::spawn || (request.flags & ~kKnownFlags)) {
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

void Keeper::spawn(const Request& request, char* payload, const int* fds) {
  const char* end = payload + request.payload_size;
  const std::size_t count = std::size_t{request.arg_count} + request.env_count + request.rule_count;
  // Each string has at least its NUL, so counts beyond that are not true.
  if (count > request.payload_size) return refuse(request.token, Step::request, EPROTO);
  char** strings = static_cast<char**>(malloc((count + 3) * sizeof(char*)));
  if (!strings || !table_.reserve()) {
    free(strings);
    return refuse(request.token, Step::process, ENOMEM);
  }
  char** environment = strings + request.arg_count + 1;
  char** rules = environment + request.env_count + 1;
  char* head[3] = {};
  char* manifest[3] = {};
  char* cgroup[2] = {};
  char* rest = point_at(payload, end, head, 2);
  if (rest) rest = point_at(rest, end, strings, request.arg_count);
  if (rest) rest = point_at(rest, end, environment, request.env_count);
  if (rest) rest = point_at(rest, end, manifest, request.flags & with_manifest ? 2 : 0);
  if (rest) rest = point_at(rest, end, cgroup, request.flags & with_cgroup ? 1 : 0);
  if (rest) rest = point_at(rest, end, rules, request.rule_count);
  if (rest) {
    start({request, head[0], head[1], strings, environment, rules, manifest[0], manifest[1], -1, fds},
          cgroup[0]);
  } else {
    refuse(request.token, Step::request, EPROTO);
  }
  free(strings);
}

// Makes the cgroup, unless there is to be none, and the process.
void Keeper::start(const Launch& what, const char* cgroup) {
  const Request& request = what.request;
  Outcome& outcome = free_outcome();
  outcome = {};
  bool wanted = true;
  Launch in_cgroup = what;
  if (cgroup) {
    in_cgroup.cgroup = make_cgroup(cgroup);
    if (in_cgroup.cgroup < 0) wanted = note(request, with_cgroup, errno, outcome);
  }
  const auto limit = [&](Flag flag, const char* file, std::uint64_t value) {
    if (!wanted || !(request.flags & flag)) return;
    const int error = in_cgroup.cgroup < 0 ? ENOENT : set_cgroup(in_cgroup.cgroup, file, value);
    if (error) wanted = note(request, flag, error, outcome);
  };
  limit(with_memory_max, "memory.max", request.memory_max);
  limit(with_pids_max, "pids.max", request.pids_max);
  Launching child{0, -1, 0};
  if (wanted) child = launch(in_cgroup, outcome);
  if (in_cgroup.cgroup >= 0) close(in_cgroup.cgroup);
  if (child.pid == 0) {
    if (in_cgroup.cgroup >= 0) remove_cgroup(cgroup);
    return wanted ? refuse(request.token, Step::process, child.error) : refuse(request.token, outcome);
  }
  Record& record = table_.add(request.token, child.pid);
  // Without memory for its name it is not removed; what is in it is killed as any group is.
  if (in_cgroup.cgroup >= 0) record.cgroup = strdup(cgroup);
  pending_[pending_count_++] = {request.token, child.pid, child.arrival, &outcome};
}

// One that no child on its way uses. There is one: no request is read when all are used.
Outcome& Keeper::free_outcome() {
  for (Outcome* outcome = outcomes_;; ++outcome) {
    bool used = false;
    for (std::size_t i = 0; i < pending_count_; ++i) used = used || pending_[i].outcome == outcome;
    if (!used) return *outcome;
  }
}

// One that was on its way has arrived, or failed.
void Keeper::settle(std::size_t index) {
  const Pending child = pending_[index];
  pending_[index] = pending_[--pending_count_];
  close(child.arrival);
  const Outcome& outcome = *child.outcome;
  // One that was killed on its way has arrived nowhere; its end is reported as that of any child.
  if (outcome.step == Step::none) return say({Event::started, 0, child.token, child.pid, 0, 0, outcome});
  refuse(child.token, outcome);
  if (Record* record = table_.find(child.token)) record->refused = true;
}

void Keeper::settle_child(std::uint64_t token) {
  for (std::size_t i = 0; i < pending_count_; ++i) {
    if (pending_[i].token == token) return settle(i);
  }
}

void Keeper::refuse(std::uint64_t token, Step step, int error) {
  refuse(token, Outcome{step, error, 0, {}});
}

void Keeper::refuse(std::uint64_t token, const Outcome& outcome) {
  say({Event::refused, 0, token, 0, 0, 0, outcome});
}

void Keeper::signal_group(const Request& request) {
  // Not reaped yet, so its pid and its group's number are still its own.
  const Record* record = table_.find(request.token);
  if (!record || record->reaped) return;
  // One that has just been forked has no group yet.
  if (kill(-record->pid, request.signal) < 0) kill(record->pid, request.signal);
  // A stopped process takes no signal but KILL until it goes on.
  if (request.signal == SIGTERM) kill(-record->pid, SIGCONT);
}

}  // namespace fairlead::keeper
