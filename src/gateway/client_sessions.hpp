// ClientSessions: reports to the components of the gateway that sessions of legacy clients begin and end. The
// sessions of all endpoints have different ids. Private to the layer.
#pragma once

#include <memory>
#include <string_view>

#include "gateway/ended_sessions.hpp"
#include "gateway/session_table.hpp"
#include "gateway/upstream_log_levels.hpp"

namespace fairlead::gateway {

class ClientSessions {
 public:
  ClientSessions(std::shared_ptr<SessionTable> sessions, std::shared_ptr<UpstreamLogLevels> log_levels,
                 std::shared_ptr<EndedSessions> ended)
      : sessions_(std::move(sessions)), log_levels_(std::move(log_levels)), ended_(std::move(ended)) {}

  void on_began(std::string_view session, mcp::Backend::ContextSource context_source) {
    sessions_->add(session, std::move(context_source));
  }
  void on_log_level_set(std::string_view session, mcp::LoggingLevel level) {
    sessions_->set_log_level(session, level);
    log_levels_->adjust();
  }
  void on_ended(std::string_view session) {
    if (session.empty()) return;
    sessions_->remove(session);
    log_levels_->adjust();
    ended_->add(session);
  }

 private:
  std::shared_ptr<SessionTable> sessions_;
  std::shared_ptr<UpstreamLogLevels> log_levels_;
  std::shared_ptr<EndedSessions> ended_;
};

}  // namespace fairlead::gateway
