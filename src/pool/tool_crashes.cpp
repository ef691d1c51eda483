#include "pool/tool_crashes.hpp"

#include <algorithm>

#include "fairlead/process/failure.hpp"
#include "pool/pool_core.hpp"

namespace fairlead::pool {

void ToolCrashes::on_crash(const std::string& tool, const Error& reason, Clock::time_point now) {
  if (policy_.tool_crash_after == 0) return;
  if (records_.size() >= kMaxTools && !records_.contains(tool))
    records_.erase(
        std::ranges::min_element(records_, {}, [](const auto& entry) { return entry.second.last_crash; }));
  Record& record = records_[tool];
  ++record.crash_count;
  record.last_crash = now;
  record.reason = reason;
  if (record.crash_count >= policy_.tool_crash_after) record.refused_until = now + policy_.tool_crash_pause;
}

void ToolCrashes::on_answered(std::string_view tool) {
  if (const auto found = records_.find(tool); found != records_.end()) records_.erase(found);
}

std::optional<Error> ToolCrashes::refusal_error(const std::string& server, std::string_view tool,
                                                Clock::time_point now) const {
  const auto found = records_.find(tool);
  if (found == records_.end() || now >= found->second.refused_until) return std::nullopt;
  const Record& record = found->second;
  const Clock::duration left = record.refused_until - now;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(left).count();
  Error refused(record.reason->kind(), "tool " + std::string(tool) + " ended the process of server " +
                                           server + " " + std::to_string(record.crash_count) +
                                           " times in a row and is refused for another " +
                                           std::to_string(seconds) + " s: " + record.reason->message());
  refused = std::move(refused).with([&](ErrorDetail& d) {
    d = record.reason->detail();
    d.failure_code = failure::tool_crashes;
    d.remedy = remedy_for(failure::tool_crashes);
    d.unsent = true;
  });
  return with_retry_after(std::move(refused), left);
}

}  // namespace fairlead::pool
