// LogLevels: the log level that each running upstream was asked for. Legacy servers have one level for all
// who share them: the lowest that any of them wants. In the modern era each request says it. Private to the
// layer.
#pragma once

#include <map>
#include <memory>

#include "fairlead/base/log.hpp"
#include "fairlead/pool/pool.hpp"
#include "gateway/session_table.hpp"

namespace fairlead::gateway {

class LogLevels : public std::enable_shared_from_this<LogLevels> {
 public:
  LogLevels(Loop& loop, std::shared_ptr<pool::Pool> pool, std::shared_ptr<const SessionTable> sessions,
            Log log)
      : loop_(loop), pool_(std::move(pool)), sessions_(std::move(sessions)), log_(std::move(log)) {}

  static mcp::LoggingLevel wanted(const SessionTable& sessions, const pool::Upstream& upstream);
  // `upstream` is being started and asked for wanted() in its handshake; that may change until it is ready.
  void started(const std::shared_ptr<pool::Upstream>& upstream);
  void ended(const std::shared_ptr<pool::Upstream>& upstream);
  // Asks each upstream anew whose level is not the one wanted.
  void adjust();

 private:
  static Task<void> set_level(std::shared_ptr<LogLevels> self, std::shared_ptr<pool::Upstream> upstream,
                              mcp::LoggingLevel level);

  Loop& loop_;
  std::shared_ptr<pool::Pool> pool_;
  std::shared_ptr<const SessionTable> sessions_;
  Log log_;
  std::map<std::shared_ptr<pool::Upstream>, mcp::LoggingLevel> asked_;
};

}  // namespace fairlead::gateway
