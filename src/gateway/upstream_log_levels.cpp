#include "gateway/upstream_log_levels.hpp"

#include <utility>

#include "fairlead/loop/timer.hpp"
#include "loop/slices.hpp"

namespace fairlead::gateway {

mcp::LoggingLevel UpstreamLogLevels::wanted_level(const SessionTable& sessions,
                                                  const pool::Upstream& upstream) {
  const bool per_user = upstream.spec().sharing == pool::Sharing::per_user;
  return sessions.lowest_log_level(per_user ? std::string_view() : upstream.key());
}

void UpstreamLogLevels::on_upstream_starting(const std::shared_ptr<pool::Upstream>& upstream) {
  requested_.insert_or_assign(upstream, RequestedLevel{wanted_level(*sessions_, *upstream)});
}

void UpstreamLogLevels::on_upstream_ended(const std::shared_ptr<pool::Upstream>& upstream) {
  requested_.erase(upstream);
}

void UpstreamLogLevels::adjust() {
  outdated_ = true;
  if (!std::exchange(adjusting_, true)) post_adjust_all();
}

void UpstreamLogLevels::post_adjust_all() {
  loop_.post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->loop_.spawn(adjust_all(self));
  });
}

Task<void> UpstreamLogLevels::adjust_all(std::shared_ptr<UpstreamLogLevels> self) {
  Slices slices;
  self->outdated_ = false;
  std::shared_ptr<pool::Upstream> upstream;
  // The map can change during sleep_for(), and in adjust_one(), which can notice that an upstream has ended.
  // So each step searches for the next key instead of incrementing an iterator.
  for (auto at = self->requested_.begin(); at != self->requested_.end();
       at = self->requested_.upper_bound(upstream)) {
    upstream = at->first;
    self->adjust_one(upstream, at->second);
    if (slices.due(0)) co_await sleep_for(self->loop_, Slices::kPause);
  }
  self->adjusting_ = self->outdated_;
  if (self->adjusting_) self->post_adjust_all();
}

void UpstreamLogLevels::adjust_one(const std::shared_ptr<pool::Upstream>& upstream,
                                   RequestedLevel& requested) {
  const mcp::LoggingLevel now = wanted_level(*sessions_, *upstream);
  if (requested.level == now || requested.pending_request != 0 ||
      upstream->state() != pool::UpstreamState::ready)
    return;
  requested = RequestedLevel{now, ++last_request_number_};
  loop_.spawn(request_level(shared_from_this(), upstream, now, last_request_number_));
}

Task<void> UpstreamLogLevels::request_level(std::shared_ptr<UpstreamLogLevels> self,
                                            std::shared_ptr<pool::Upstream> upstream, mcp::LoggingLevel level,
                                            std::uint64_t request) {
  co_await send_set_level(self, upstream, level);
  const auto requested = self->requested_.find(upstream);
  if (requested == self->requested_.end() || requested->second.pending_request != request)
    co_return;  // the upstream has ended or restarted meanwhile
  requested->second.pending_request = 0;
  if (wanted_level(*self->sessions_, *upstream) != level) self->adjust();
}

Task<void> UpstreamLogLevels::send_set_level(std::shared_ptr<UpstreamLogLevels> self,
                                             std::shared_ptr<pool::Upstream> upstream,
                                             mcp::LoggingLevel level) {
  const Result<pool::Lease> lease = self->pool_->keep_alive(upstream);
  if (!lease) co_return;
  pool::UpstreamConnection& connection = *lease->connection();
  if (json::View(connection.server().capabilities)["logging"].absent()) co_return;
  const Result<void> set = co_await connection.set_log_level(level);
  if (!set)
    self->log_.info("cannot set log level",
                    {{"server", upstream->spec().name}, {"reason", set.error().message()}});
}

}  // namespace fairlead::gateway
