// ToolCrashes: counts, for each tool of a server, how many times in a row its calls have ended the process.
// Refuses calls of a tool that has done so too often (RestartPolicy::tool_crash_after). Private to the layer.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/base/error.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/pool/supervisor.hpp"

namespace fairlead::pool {

class ToolCrashes {
 public:
  explicit ToolCrashes(const RestartPolicy& policy) : policy_(policy) {}

  // To be called when the process ended with `reason` while calls of this tool were active.
  void on_crash(const std::string& tool, const Error& reason, Clock::time_point now);
  // To be called when the server has answered a call of this tool. Resets its count.
  void on_answered(std::string_view tool);
  // Returns the error for a call of a refused tool, or nullopt if the call may be sent. After
  // tool_crash_pause, calls of the tool are sent again; after another crash the tool is refused again.
  std::optional<Error> refusal_error(const std::string& server, std::string_view tool,
                                     Clock::time_point now) const;

  // Returns whether no tool has a count, so that no call is refused.
  bool empty() const noexcept { return records_.empty(); }

  // The maximum number of tools with a count. Beyond it, the tool whose last crash is oldest is evicted.
  static constexpr std::size_t kMaxTools = 1'000;

 private:
  struct Record {
    unsigned crash_count = 0;  // in a row
    Clock::time_point last_crash{};
    Clock::time_point refused_until{};
    std::optional<Error> reason;
  };

  RestartPolicy policy_;
  std::map<std::string, Record, std::less<>> records_;
};

}  // namespace fairlead::pool
