// Handles the requests of the library.
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

// The descriptors that were received with a packet. The destructor closes them; the child has copies.
struct ReceivedDescriptors {
  int fds[kMaxRequestFds];
  int count = 0;

  void collect(msghdr& message) {
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
      if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
      count = static_cast<int>((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
      memcpy(fds, CMSG_DATA(part), static_cast<std::size_t>(count) * sizeof(int));
    }
  }
  ~ReceivedDescriptors() {
    for (int i = 0; i < count; ++i) close(fds[i]);
  }
};

// Stores pointers to `count` consecutive strings and a final null in `out`. Returns the position after them,
// or null if there are fewer.
char* split_strings(char* from, const char* end, char** out, std::size_t count) {
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

// Returns false if the library has closed the socket.
bool Keeper::read_requests() {
  static char packet[sizeof(Request) + kMaxInlinePayload];
  // At most 64 requests per call, so that children are reaped in between.
  for (int count = 0; count < 64 && unsent_reports_.empty() && pending_start_count_ < kMaxPendingStarts;
       ++count) {
    iovec buffer{packet, sizeof packet};
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxRequestFds * sizeof(int))];
    msghdr message{};
    message.msg_iov = &buffer;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = recvmsg(kSocketFd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    ReceivedDescriptors received;
    received.collect(message);
    handle_packet(packet, static_cast<std::size_t>(n), received.fds, received.count);
  }
  return true;
}

void Keeper::handle_packet(char* packet, std::size_t size, int* fds, int fd_count) {
  Request request;
  if (size < sizeof request) return;
  memcpy(&request, packet, sizeof request);
  if (request.version != kProtocolVersion) return report_refusal(request.token, SpawnStep::request, EPROTO);
  if (request.type == RequestType::signal) return handle_signal(request);
  if (request.type == RequestType::ping)
    return send_report({ReportType::alive, 0, request.token, 0, 0, 0, {}});
  const bool in_memfd = request.flags & payload_in_memfd;
  if (request.type != RequestType::spawn || (request.flags & ~kKnownFlags)) {
    return report_refusal(request.token, SpawnStep::request, EPROTO);
  }
  // If fewer descriptors arrived than were sent, the keeper's descriptor table is full.
  if (fd_count != (in_memfd ? 4 : 3)) return report_refusal(request.token, SpawnStep::descriptors, EMFILE);
  if (!in_memfd) {
    if (size != sizeof request + request.payload_size)
      return report_refusal(request.token, SpawnStep::request, EPROTO);
    return handle_spawn(request, packet + sizeof request, fds);
  }
  void* payload = mmap(nullptr, request.payload_size, PROT_READ, MAP_PRIVATE, fds[3], 0);
  if (payload == MAP_FAILED) return report_refusal(request.token, SpawnStep::process, errno);
  handle_spawn(request, static_cast<char*>(payload), fds);
  munmap(payload, request.payload_size);
}

void Keeper::handle_spawn(const Request& request, char* payload, const int* fds) {
  const char* end = payload + request.payload_size;
  const std::size_t count = std::size_t{request.arg_count} + request.env_count + request.rule_count;
  // Each string has at least its NUL byte, so a count above the payload size is invalid.
  if (count > request.payload_size) return report_refusal(request.token, SpawnStep::request, EPROTO);
  char** strings = static_cast<char**>(malloc((count + 3) * sizeof(char*)));
  if (!strings || !children_.reserve_one()) {
    free(strings);
    return report_refusal(request.token, SpawnStep::process, ENOMEM);
  }
  char** environment = strings + request.arg_count + 1;
  char** rules = environment + request.env_count + 1;
  char* head[3] = {};
  char* manifest[3] = {};
  char* cgroup[2] = {};
  char* rest = split_strings(payload, end, head, 2);
  if (rest) rest = split_strings(rest, end, strings, request.arg_count);
  if (rest) rest = split_strings(rest, end, environment, request.env_count);
  if (rest) rest = split_strings(rest, end, manifest, request.flags & with_manifest ? 2 : 0);
  if (rest) rest = split_strings(rest, end, cgroup, request.flags & with_cgroup ? 1 : 0);
  if (rest) rest = split_strings(rest, end, rules, request.rule_count);
  if (rest) {
    start_child({request, head[0], head[1], strings, environment, rules, manifest[0], manifest[1], -1, fds},
                cgroup[0]);
  } else {
    report_refusal(request.token, SpawnStep::request, EPROTO);
  }
  free(strings);
}

// Creates the cgroup, if one is requested, and the process.
void Keeper::start_child(const LaunchParams& params, const char* cgroup_path) {
  const Request& request = params.request;
  SpawnOutcome& outcome = unused_outcome();
  outcome = {};
  bool allowed = true;
  LaunchParams launch_params = params;
  if (cgroup_path) {
    launch_params.cgroup_fd = create_cgroup(cgroup_path);
    if (launch_params.cgroup_fd < 0) allowed = record_failure(request, with_cgroup, errno, outcome);
  }
  const auto set_cgroup_limit = [&](SpawnFlag flag, const char* file, std::uint64_t value) {
    if (!allowed || !(request.flags & flag)) return;
    const int error =
        launch_params.cgroup_fd < 0 ? ENOENT : write_cgroup_file(launch_params.cgroup_fd, file, value);
    if (error) allowed = record_failure(request, flag, error, outcome);
  };
  set_cgroup_limit(with_memory_max, "memory.max", request.memory_max);
  set_cgroup_limit(with_pids_max, "pids.max", request.pids_max);
  LaunchedChild child{0, -1, 0};
  if (allowed) child = launch(launch_params, outcome);
  if (launch_params.cgroup_fd >= 0) close(launch_params.cgroup_fd);
  if (child.pid == 0) {
    if (launch_params.cgroup_fd >= 0) remove_cgroup(cgroup_path);
    return allowed ? report_refusal(request.token, SpawnStep::process, child.error)
                   : report_refusal(request.token, outcome);
  }
  ChildRecord& record = children_.add(request.token, child.pid);
  // If strdup() fails, the record has no cgroup: the cgroup is not removed, and its processes are killed
  // through their process group only.
  if (launch_params.cgroup_fd >= 0) record.cgroup_path = strdup(cgroup_path);
  pending_starts_[pending_start_count_++] = {request.token, child.pid, child.exec_pipe, &outcome};
}

// Returns an element of outcomes_ that no pending start uses. One always exists, because no request is read
// while all are in use.
SpawnOutcome& Keeper::unused_outcome() {
  for (SpawnOutcome* outcome = outcomes_;; ++outcome) {
    bool used = false;
    for (std::size_t i = 0; i < pending_start_count_; ++i)
      used = used || pending_starts_[i].outcome == outcome;
    if (!used) return *outcome;
  }
}

// Reports the result of a pending start whose exec pipe has reached EOF or whose process has ended.
void Keeper::finish_start(std::size_t index) {
  const PendingStart child = pending_starts_[index];
  pending_starts_[index] = pending_starts_[--pending_start_count_];
  close(child.exec_pipe);
  const SpawnOutcome& outcome = *child.outcome;
  // A child that was killed before exec is also reported as started. Its end is then reported like that of
  // any other child.
  if (outcome.step == SpawnStep::none)
    return send_report({ReportType::started, 0, child.token, child.pid, 0, 0, outcome});
  report_refusal(child.token, outcome);
  if (ChildRecord* record = children_.find(child.token)) record->refused = true;
}

// Does nothing if the result has been reported already.
void Keeper::finish_start_of(std::uint64_t token) {
  for (std::size_t i = 0; i < pending_start_count_; ++i) {
    if (pending_starts_[i].token == token) return finish_start(i);
  }
}

void Keeper::report_refusal(std::uint64_t token, SpawnStep step, int error) {
  report_refusal(token, SpawnOutcome{step, error, 0, {}});
}

void Keeper::report_refusal(std::uint64_t token, const SpawnOutcome& outcome) {
  send_report({ReportType::refused, 0, token, 0, 0, 0, outcome});
}

void Keeper::handle_signal(const Request& request) {
  // A child that is not reaped yet keeps its pid and the number of its process group, so no other process can
  // get the signal.
  const ChildRecord* record = children_.find(request.token);
  if (!record || record->reaped) return;
  // A process that has just been forked has no group of its own yet.
  if (kill(-record->pid, request.signal) < 0) kill(record->pid, request.signal);
  // A stopped process handles no signal except SIGKILL until it is continued.
  if (request.signal == SIGTERM) kill(-record->pid, SIGCONT);
}

}  // namespace fairlead::keeper
