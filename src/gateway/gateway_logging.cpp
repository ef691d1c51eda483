// Log messages of servers: to whom they go, and what servers are asked for. Legacy servers have one level for
// all who share them: the lowest that any of them wants. In the modern era each request says it.
#include "gateway/gateway_impl.hpp"

namespace fairlead::gateway {

namespace {

// Asked for where nobody says anything.
constexpr mcp::LoggingLevel kUsual = mcp::LoggingLevel::info;

}  // namespace

void GatewayImpl::on_log(const pool::Upstream& upstream, const json::Raw& params) {
  const json::View view(params);
  const auto level = mcp::logging_level_named(view["level"].as_string().value_or(""));
  log_.debug("server says", {{"server", upstream.spec().name},
                             {"level", view["level"].as_string().value_or("")},
                             {"data", std::string(view["data"].text().substr(0, 1000))}});
  const std::optional<mcp::Context> context = meant(upstream);
  if (!context || !level) return;
  const std::optional<mcp::LoggingLevel> wanted = context->log_level();
  if (wanted && *level >= *wanted) context->notify("notifications/message", params);
}

void GatewayImpl::log_level_set(std::string_view session, mcp::LoggingLevel level) {
  levels_.insert_or_assign(std::string(session), level);
  adjust_levels();
}

mcp::LoggingLevel GatewayImpl::level_for(const pool::Upstream& upstream) const {
  const bool own = !upstream.key().empty() && upstream.spec().sharing != pool::Sharing::per_user;
  mcp::LoggingLevel lowest = kUsual;
  for (const auto& [session, level] : levels_) {
    if (!own || session == upstream.key()) lowest = std::min(lowest, level);
  }
  return lowest;
}

void GatewayImpl::adjust_levels() {
  const auto all = asked_levels_;  // a copy: one that is asked may be found to be gone
  for (const auto& [upstream, level] : all) {
    const mcp::LoggingLevel wanted = level_for(*upstream);
    if (level == wanted || upstream->state() != pool::State::ready) continue;
    asked_levels_[upstream] = wanted;
    loop_.spawn(set_level(shared_from_this(), upstream, wanted));
  }
}

Task<void> GatewayImpl::set_level(std::shared_ptr<GatewayImpl> self, std::shared_ptr<pool::Upstream> upstream,
                                  mcp::LoggingLevel level) {
  const Result<pool::Lease> lease = self->pool_->hold(upstream);
  if (!lease || lease->client().capabilities()["logging"].absent()) co_return;
  Task<Result<void>> setting = lease->client().set_log_level(level);
  const Result<void> set = co_await setting;
  if (!set)
    self->log_.info("server does not set its log level",
                    {{"server", upstream->spec().name}, {"reason", set.error().message()}});
}

}  // namespace fairlead::gateway
