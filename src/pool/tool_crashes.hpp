// ToolCrashes: counts how often in a row each tool of a server ended the server's process, and refuses a tool
// that did so too often. Private to the layer.
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

  // The process ended with `reason` while calls of this tool were under way.
  void crashed(const std::string& tool, const Error& reason, Clock::time_point now);
  // The server answered a call of this tool, which starts again at zero.
  void answered(std::string_view tool);
  // The error to refuse a call of this tool with; nullopt if it may be sent. After the pause calls are sent
  // again, and the next crash refuses the tool again.
  std::optional<Error> refusal(const std::string& server, std::string_view tool, Clock::time_point now) const;

  // Beyond it the tool whose last crash is longest ago is forgotten.
  static constexpr std::size_t kMaxTools = 1'000;

 private:
  struct Record {
    unsigned crashes = 0;  // in a row
    Clock::time_point last{};
    Clock::time_point refused_until{};
    std::optional<Error> reason;
  };

  RestartPolicy policy_;
  std::map<std::string, Record, std::less<>> records_;
};

}  // namespace fairlead::pool
