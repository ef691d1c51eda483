// The keeper's event loop, and its queue of reports.
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "process/keeper/keeper.hpp"

namespace fairlead::keeper {

void Keeper::serve() {
  for (;;) {
    const short socket_events = !flush_reports()                           ? POLLOUT
                                : pending_start_count_ < kMaxPendingStarts ? POLLIN
                                                                           : 0;
    pollfd polled[3 + kMaxPendingStarts] = {
        {kSocketFd, socket_events, 0}, {signal_fd_, POLLIN, 0}, {parent_pidfd_, POLLIN, 0}};
    for (std::size_t i = 0; i < pending_start_count_; ++i)
      polled[3 + i] = {pending_starts_[i].exec_pipe, POLLIN, 0};
    const int ready = poll(polled, 3 + pending_start_count_, milliseconds_to_report_deadline());
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0 || polled[0].revents & (POLLHUP | POLLERR) || polled[2].revents) return;
    // Iterates backwards, because finish_start() moves the last element of pending_starts_ to the place of
    // the finished one.
    for (std::size_t i = pending_start_count_; i-- > 0;) {
      if (polled[3 + i].revents) finish_start(i);
    }
    if (polled[1].revents) reap_all();
    if (ready == 0 || cleanup_due_) clean_up_ended();
    if (polled[0].revents & POLLIN && !read_requests()) return;
  }
}

void Keeper::send_report(const Report& report) {
  if (unsent_reports_.empty() && send(kSocketFd, &report, sizeof report, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
    return;
  unsent_reports_.add(report);
}

// Returns whether all reports have been sent.
bool Keeper::flush_reports() {
  std::size_t done = 0;
  while (done < unsent_reports_.size() &&
         send(kSocketFd, &unsent_reports_[done], sizeof(Report), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
    ++done;
  }
  unsent_reports_.remove_first(done);
  return unsent_reports_.empty();
}

}  // namespace fairlead::keeper
