#include "gateway/log_levels.hpp"

#include <utility>

#include "fairlead/loop/timer.hpp"
#include "loop/slices.hpp"

namespace fairlead::gateway {

mcp::LoggingLevel LogLevels::wanted(const SessionTable& sessions, const pool::Upstream& upstream) {
  const bool per_user = upstream.spec().sharing == pool::Sharing::per_user;
  return sessions.lowest_level(per_user ? std::string_view() : upstream.key());
}

void LogLevels::started(const std::shared_ptr<pool::Upstream>& upstream) {
  asked_.insert_or_assign(upstream, Asked{wanted(*sessions_, *upstream)});
}

void LogLevels::ended(const std::shared_ptr<pool::Upstream>& upstream) {
  asked_.erase(upstream);
}

void LogLevels::adjust() {
  outdated_ = true;
  if (!std::exchange(adjusting_, true)) adjust_soon();
}

void LogLevels::adjust_soon() {
  loop_.post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->loop_.spawn(adjust_all(self));
  });
}

Task<void> LogLevels::adjust_all(std::shared_ptr<LogLevels> self) {
  Slices slices;
  self->outdated_ = false;
  std::shared_ptr<pool::Upstream> upstream;
  // An upstream that is asked may be found to be gone, and others may come and go during a pause.
  for (auto at = self->asked_.begin(); at != self->asked_.end(); at = self->asked_.upper_bound(upstream)) {
    upstream = at->first;
    self->adjust_one(upstream, at->second);
    if (slices.due(0)) co_await sleep_for(self->loop_, Slices::kPause);
  }
  self->adjusting_ = self->outdated_;
  if (self->adjusting_) self->adjust_soon();
}

void LogLevels::adjust_one(const std::shared_ptr<pool::Upstream>& upstream, Asked& asked) {
  const mcp::LoggingLevel now = wanted(*sessions_, *upstream);
  if (asked.level == now || asked.request != 0 || upstream->state() != pool::State::ready) return;
  asked = Asked{now, ++last_request_};
  loop_.spawn(ask(shared_from_this(), upstream, now, last_request_));
}

Task<void> LogLevels::ask(std::shared_ptr<LogLevels> self, std::shared_ptr<pool::Upstream> upstream,
                          mcp::LoggingLevel level, std::uint64_t request) {
  Task<void> setting = set_level(self, upstream, level);
  co_await setting;
  const auto asked = self->asked_.find(upstream);
  if (asked == self->asked_.end() || asked->second.request != request) co_return;  // ended, or started anew
  asked->second.request = 0;
  if (wanted(*self->sessions_, *upstream) != level) self->adjust();
}

Task<void> LogLevels::set_level(std::shared_ptr<LogLevels> self, std::shared_ptr<pool::Upstream> upstream,
                                mcp::LoggingLevel level) {
  const Result<pool::Lease> lease = self->pool_->hold(upstream);
  if (!lease) co_return;
  pool::UpstreamConnection& connection = *lease->connection();
  if (json::View(connection.server().capabilities)["logging"].absent()) co_return;
  Task<Result<void>> setting = connection.set_log_level(level);
  const Result<void> set = co_await setting;
  if (!set)
    self->log_.info("server does not set its log level",
                    {{"server", upstream->spec().name}, {"reason", set.error().message()}});
}

}  // namespace fairlead::gateway
