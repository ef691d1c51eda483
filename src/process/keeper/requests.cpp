// What the library asks of the keeper.
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>

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
  // One that has just been forked has no group yet.
  if (kill(-record->pid, request.signal) < 0) kill(record->pid, request.signal);
  // A stopped process takes no signal but KILL until it goes on.
  if (request.signal == SIGTERM) kill(-record->pid, SIGCONT);
}

}  // namespace fairlead::keeper
