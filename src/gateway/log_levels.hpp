// LogLevels: the log level that each running upstream was asked for. Legacy servers have one level for all
// who share them: the lowest that any of them wants. In the modern era each request says it. Private to the
// layer.
#pragma once

#include <cstdint>
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
  // Asks each upstream anew whose level is not the one wanted: after the current turn, in slices, and once
  // for all changes until then. An upstream that has not answered is asked when it has.
  void adjust();

 private:
  struct Asked {
    mcp::LoggingLevel level;
    std::uint64_t request = 0;  // the one that is not answered yet; 0: none
  };

  void adjust_soon();
  static Task<void> adjust_all(std::shared_ptr<LogLevels> self);
  void adjust_one(const std::shared_ptr<pool::Upstream>& upstream, Asked& asked);
  static Task<void> ask(std::shared_ptr<LogLevels> self, std::shared_ptr<pool::Upstream> upstream,
                        mcp::LoggingLevel level, std::uint64_t request);
  static Task<void> set_level(std::shared_ptr<LogLevels> self, std::shared_ptr<pool::Upstream> upstream,
                              mcp::LoggingLevel level);

  Loop& loop_;
  std::shared_ptr<pool::Pool> pool_;
  std::shared_ptr<const SessionTable> sessions_;
  Log log_;
  std::map<std::shared_ptr<pool::Upstream>, Asked> asked_;
  std::uint64_t last_request_ = 0;
  bool adjusting_ = false;  // adjust_all() is posted or runs
  bool outdated_ = false;   // a level may have changed since adjust_all() began
};

}  // namespace fairlead::gateway
