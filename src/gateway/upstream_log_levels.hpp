// UpstreamLogLevels: sets the log level of running legacy servers. A legacy server has one level for all
// clients that share it; the gateway sets the lowest level that any of these clients has set. (Modern servers
// need no such level, because each request carries its own.) Private to the layer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "fairlead/base/log.hpp"
#include "fairlead/pool/pool.hpp"
#include "gateway/session_table.hpp"

namespace fairlead::gateway {

class UpstreamLogLevels : public std::enable_shared_from_this<UpstreamLogLevels> {
 public:
  UpstreamLogLevels(Loop& loop, std::shared_ptr<pool::Pool> pool,
                    std::shared_ptr<const SessionTable> sessions, Log log)
      : loop_(loop), pool_(std::move(pool)), sessions_(std::move(sessions)), log_(std::move(log)) {}

  // Returns the lowest level that any client of `upstream` has set.
  static mcp::LoggingLevel wanted_level(const SessionTable& sessions, const pool::Upstream& upstream);
  // Called when `upstream` starts. Its handshake sets the level that wanted_level() returns now. If the
  // wanted level changes before the upstream is ready, adjust() must be called once it is ready.
  void on_upstream_starting(const std::shared_ptr<pool::Upstream>& upstream);
  void on_upstream_ended(const std::shared_ptr<pool::Upstream>& upstream);
  // Schedules a logging/setLevel request to each upstream whose level is not the wanted one. The requests are
  // sent after the current turn, in slices; several calls of adjust() in one turn cause one request. An
  // upstream that has not yet responded to an earlier request is sent the next one after its response.
  void adjust();

 private:
  // The level that an upstream was last requested to set.
  struct RequestedLevel {
    mcp::LoggingLevel level;
    std::uint64_t pending_request = 0;  // number of the request without a response; 0: none
  };

  void post_adjust_all();  // starts adjust_all() after the current turn
  static Task<void> adjust_all(std::shared_ptr<UpstreamLogLevels> self);
  // Sends `upstream` a request unless it has the wanted level, is not ready, or has a pending request.
  void adjust_one(const std::shared_ptr<pool::Upstream>& upstream, RequestedLevel& requested);
  // Sends the request with send_set_level(). After the response, calls adjust() if another level is wanted by
  // then.
  static Task<void> request_level(std::shared_ptr<UpstreamLogLevels> self,
                                  std::shared_ptr<pool::Upstream> upstream, mcp::LoggingLevel level,
                                  std::uint64_t request);
  static Task<void> send_set_level(std::shared_ptr<UpstreamLogLevels> self,
                                   std::shared_ptr<pool::Upstream> upstream, mcp::LoggingLevel level);

  Loop& loop_;
  std::shared_ptr<pool::Pool> pool_;
  std::shared_ptr<const SessionTable> sessions_;
  Log log_;
  std::map<std::shared_ptr<pool::Upstream>, RequestedLevel> requested_;
  std::uint64_t last_request_number_ = 0;
  bool adjusting_ = false;  // adjust_all() is posted or runs
  bool outdated_ = false;   // adjust() was called since adjust_all() began
};

}  // namespace fairlead::gateway
