#include "pool/tool_crashes.hpp"

#include <algorithm>

#include "fairlead/json/view.hpp"
#include "fairlead/process/failure.hpp"
#include "pool/core.hpp"

namespace fairlead::pool {

std::optional<std::string> ToolCrashes::tool_of(const rpc::Message& request) {
  if (request.method() != "tools/call") return std::nullopt;
  return json::View(request.params_text())["name"].as_string();
}

void ToolCrashes::crashed(const std::string& tool, const Error& reason, Clock::time_point now) {
  if (policy_.tool_crash_after == 0) return;
  if (records_.size() >= kMaxTools && !records_.contains(tool))
    records_.erase(
        std::ranges::min_element(records_, {}, [](const auto& entry) { return entry.second.last; }));
  Record& record = records_[tool];
  ++record.crashes;
  record.last = now;
  record.reason = reason;
  if (record.crashes >= policy_.tool_crash_after) record.refused_until = now + policy_.tool_crash_pause;
}

void ToolCrashes::answered(const rpc::Message& request) {
  if (records_.empty()) return;
  const std::optional<std::string> tool = tool_of(request);
  if (tool) records_.erase(*tool);
}

std::optional<Error> ToolCrashes::refusal(const std::string& server, const rpc::Message& request,
                                          Clock::time_point now) const {
  if (records_.empty()) return std::nullopt;
  const std::optional<std::string> tool = tool_of(request);
  const auto found = tool ? records_.find(*tool) : records_.end();
  if (found == records_.end() || now >= found->second.refused_until) return std::nullopt;
  const Record& record = found->second;
  const Clock::duration left = record.refused_until - now;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(left).count();
  Error refused(record.reason->kind(), "tool " + *tool + " ended the process of server " + server + " " +
                                           std::to_string(record.crashes) +
                                           " times in a row and is refused for another " +
                                           std::to_string(seconds) + " s: " + record.reason->message());
  refused = std::move(refused).with([&](ErrorDetail& d) {
    d = record.reason->detail();
    d.code = failure::tool_crashes;
    d.remedy = remedy_for(failure::tool_crashes);
    d.unsent = true;
  });
  return with_retry(std::move(refused), left);
}

}  // namespace fairlead::pool
