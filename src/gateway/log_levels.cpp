#include "gateway/log_levels.hpp"

namespace fairlead::gateway {

mcp::LoggingLevel LogLevels::wanted(const SessionTable& sessions, const pool::Upstream& upstream) {
  const bool per_user = upstream.spec().sharing == pool::Sharing::per_user;
  return sessions.lowest_level(per_user ? std::string_view() : upstream.key());
}

void LogLevels::started(const std::shared_ptr<pool::Upstream>& upstream) {
  asked_.insert_or_assign(upstream, wanted(*sessions_, *upstream));
}

void LogLevels::ended(const std::shared_ptr<pool::Upstream>& upstream) {
  asked_.erase(upstream);
}

void LogLevels::adjust() {
  const auto all = asked_;  // a copy: an upstream that is asked may be found to be gone
  for (const auto& [upstream, level] : all) {
    const mcp::LoggingLevel now = wanted(*sessions_, *upstream);
    if (level == now || upstream->state() != pool::State::ready) continue;
    asked_.insert_or_assign(upstream, now);
    loop_.spawn(set_level(shared_from_this(), upstream, now));
  }
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
