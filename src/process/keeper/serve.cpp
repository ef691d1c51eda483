// The keeper's loop, and what it says.
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "process/keeper/keeper.hpp"

namespace fairlead::keeper {

void Keeper::serve() {
  for (;;) {
    const short from_library = !flush() ? POLLOUT : pending_count_ < kMaxPending ? POLLIN : 0;
    pollfd wait[3 + kMaxPending] = {{kSocket, from_library, 0}, {signals_, POLLIN, 0}, {parent_, POLLIN, 0}};
    for (std::size_t i = 0; i < pending_count_; ++i) wait[3 + i] = {pending_[i].arrival, POLLIN, 0};
    const int ready = poll(wait, 3 + pending_count_, milliseconds_to_deadline());
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0 || wait[0].revents & (POLLHUP | POLLERR) || wait[2].revents) return;
    // From behind: one that is settled gives its place to the last.
    for (std::size_t i = pending_count_; i-- > 0;) {
      if (wait[3 + i].revents) settle(i);
    }
    if (wait[1].revents) reap();
    if (ready == 0 || dead_since_sweep_) sweep();
    if (wait[0].revents & POLLIN && !take_requests()) return;
  }
}

void Keeper::say(const Report& report) {
  if (backlog_.empty() && send(kSocket, &report, sizeof report, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return;
  backlog_.add(report);
}

// True when nothing is left to say.
bool Keeper::flush() {
  std::size_t done = 0;
  while (done < backlog_.size() &&
         send(kSocket, &backlog_[done], sizeof(Report), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
    ++done;
  }
  backlog_.remove_first(done);
  return backlog_.empty();
}

}  // namespace fairlead::keeper
