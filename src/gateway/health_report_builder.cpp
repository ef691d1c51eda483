#include "gateway/health_report_builder.hpp"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "base/printable.hpp"
#include "fairlead/base/limits.hpp"
#include "fairlead/process/failure.hpp"
#include "json/redact.hpp"
#include "loop/slices.hpp"
#include "registry/access.hpp"

namespace fairlead::gateway {

namespace {

constexpr std::array<std::string_view, kServerHealthCount> kServerHealthNames = {
    "ready", "starting", "degraded", "failed", "disabled"};

std::string_view name_of(ServerHealth health) noexcept {
  return kServerHealthNames[static_cast<std::size_t>(health)];
}

bool is_down(const pool::UpstreamStatus& status) noexcept {
  return status.state == pool::UpstreamState::backing_off || status.state == pool::UpstreamState::crash_loop;
}

bool is_unresponsive(const pool::UpstreamStatus& status) noexcept {
  return status.state == pool::UpstreamState::ready && !status.healthy;
}

// Describes the lists of the server that have entries, all of which were rejected. Returns "" if there are no
// such lists.
std::string rejected_lists_text(const ServerEntry& entry) {
  std::string rejected;
  if (!entry.shared.lists) return rejected;
  for (const ListKind kind : kListKinds) {
    const std::size_t entries = entry.shared.lists->raw_entries(kind).size();
    if (entries == 0 || !entry.shared.lists->entries(kind).empty()) continue;
    rejected += (rejected.empty() ? "" : "; ") + std::string("none of its ") + std::to_string(entries) + " " +
                std::string(result_member(kind)) + " is valid (see the log)";
  }
  return rejected;
}

ServerHealth server_health(const ServerEntry& entry, const std::vector<pool::UpstreamStatus>& upstreams) {
  if (!entry.enabled) return ServerHealth::disabled;
  const auto down = static_cast<std::size_t>(std::ranges::count_if(upstreams, is_down));
  if (down > 0 && down == upstreams.size()) return ServerHealth::failed;
  if (!entry.shared.lists)
    return entry.fetch_state.attempt_error ? ServerHealth::failed : ServerHealth::starting;
  const bool lists_missing = !entry.fetch_state.problem.empty() || !rejected_lists_text(entry).empty();
  const bool degraded = down > 0 || lists_missing || std::ranges::any_of(upstreams, is_unresponsive);
  return degraded ? ServerHealth::degraded : ServerHealth::ready;
}

// Describes why the server can send signals to the gateway and its keeper. Returns "" if it cannot.
std::string missing_protection_text(const ServerEntry& entry) {
  const auto* program = std::get_if<pool::Program>(&entry.spec.transport);
  if (!program) return {};
  const std::string why = signal_exposure(program->containment);
  return why.empty() ? why : "the server can stop or kill the gateway and its keeper: " + why;
}

// Shortens an error text, whose length the server controls. REQUIRES: `text` has been redacted.
std::string shortened_error(std::string_view text) {
  return shortened(text, Limits::kMaxLogFieldBytes);
}

// Returns the status that is reported for a server without an upstream.
pool::UpstreamStatus status_without_upstream(const std::string& server, const ServerEntry* entry) {
  pool::UpstreamStatus status;
  status.server = server;
  status.state = entry && entry->enabled ? pool::UpstreamState::idle : pool::UpstreamState::stopped;
  return status;
}

}  // namespace

std::string_view to_string(HealthStatus status) noexcept {
  switch (status) {
    case HealthStatus::ok: return "ok";
    case HealthStatus::degraded: return "degraded";
    case HealthStatus::failed: return "failed";
    case HealthStatus::draining: return "draining";
  }
  return "failed";
}

std::string Health::text() const {
  std::string text;
  for (const Bytes& chunk : report) text += chunk.view();
  return text;
}

// ---- collecting ------------------------------------------------------------------------------------------

bool HealthReportBuilder::add_slice() {
  Slices slices;
  for (std::size_t before = written_bytes_; process_next(); before = written_bytes_) {
    if (slices.due(written_bytes_ - before)) return true;
  }
  return false;
}

bool HealthReportBuilder::process_next() {
  if (statuses_.size() < upstreams_.size()) {
    add_status(upstreams_[statuses_.size()]->status());
    return true;
  }
  if (entry_ && next_status_ < statuses_.size()) {
    write_upstream(statuses_[next_status_++]);
    return true;
  }
  return begin_next_server();
}

bool HealthReportBuilder::begin_next_server() {
  std::optional<std::string> name = pool_.server_after(server_);
  if (!name) return false;
  server_ = std::move(*name);
  entry_ = servers_.find(server_);
  statuses_.clear();
  next_status_ = 0;
  upstreams_.clear();
  if (!is_visible_to_reader()) return true;
  upstreams_ = pool_.upstreams(server_);
  if (upstreams_.empty()) add_status(status_without_upstream(server_, entry_.get()));
  return true;
}

bool HealthReportBuilder::is_visible_to_reader() const {
  if (reader_.filter && (!entry_ || !reader_.filter(*entry_))) return false;
  if (!reader_.client) return true;
  return entry_ ? registry::sees(*reader_.client, entry_->policy->visibility, entry_->policy->owner)
                : reader_.client->has_role(kAdminRole);
}

void HealthReportBuilder::add_status(pool::UpstreamStatus status) {
  counts_.calls += status.active_call_count;
  counts_.waiting_calls += status.waiting_caller_count;
  status.history = {};
  statuses_.push_back(std::move(status));
  if (entry_ && statuses_.size() >= upstreams_.size()) count_server();
}

void HealthReportBuilder::count_server() {
  health_ = server_health(*entry_, statuses_);
  ++counts_.servers[static_cast<std::size_t>(health_)];
  if (!entry_->shared.lists) return;
  for (const ListKind kind : kListKinds)
    counts_.entries[static_cast<std::size_t>(kind)] += entry_->shared.lists->entries(kind).size();
}

// ---- writing ---------------------------------------------------------------------------------------------

void HealthReportBuilder::append_upstream(const json::Raw& upstream) {
  const json::Raw clean = json::redact_strings(*pool_.monitor()->redactor(), upstream);
  if (chunks_.empty() || chunks_.back().size() >= kChunkBytes) chunks_.emplace_back();
  if (written_bytes_ > 0) chunks_.back() += ',';
  chunks_.back() += clean.text();
  written_bytes_ += clean.text().size();
}

void HealthReportBuilder::write_upstream(const pool::UpstreamStatus& status) {
  json::Writer out;
  out.begin_object().key("name").string(status.server).key("state").string(to_string(status.state));
  out.key("healthy").boolean(status.healthy && rejected_lists_text(*entry_).empty());
  out.key("generation").unsigned_integer(status.generation);
  if (reader_.with_details && !status.key.empty()) out.key("for").string(status.key);
  if (reader_.with_details && !status.connection_description.empty())
    out.key("connection").string(status.connection_description);
  out.key("calls")
      .unsigned_integer(status.active_call_count)
      .key("waiting")
      .unsigned_integer(status.waiting_caller_count);
  out.key("failures").unsigned_integer(status.consecutive_failures);
  write_server_members(out);
  write_missing_containment(out, status.missing_containment);
  if (status.last_error) {
    out.key("lastErrorCode").string(with_failure_code(*status.last_error).detail().failure_code);
    if (reader_.with_details) out.key("lastError").string(shortened_error(status.last_error->to_string()));
  }
  out.end_object();
  append_upstream(out.finish());
}

void HealthReportBuilder::write_server_members(json::Writer& out) const {
  out.key("status").string(name_of(health_));
  const std::string rejected = rejected_lists_text(*entry_);
  const std::string& problem = entry_->fetch_state.problem;
  if (reader_.with_details && !problem.empty()) {
    out.key("lists").string(shortened_error(problem));
  } else if (!rejected.empty() || !problem.empty()) {
    out.key("lists").string(rejected.empty() ? "some lists are missing" : rejected);
  }
  if (const std::string missing = missing_protection_text(*entry_); !missing.empty())
    out.key("missingProtection").string(missing);
}

void HealthReportBuilder::write_missing_containment(json::Writer& out,
                                                    const std::vector<MissingContainment>& missing) const {
  if (missing.empty()) return;
  out.key("missingContainment").begin_array();
  for (const MissingContainment& measure : missing) {
    out.begin_object().key("step").string(measure.measure);
    if (reader_.with_details) out.key("reason").string(measure.reason);
    out.end_object();
  }
  out.end_array();
}

// ---- finishing -------------------------------------------------------------------------------------------

HealthStatus HealthReportBuilder::overall_status(bool gateway_draining) const {
  if (gateway_draining) return HealthStatus::draining;
  const auto count = [this](ServerHealth health) {
    return counts_.servers[static_cast<std::size_t>(health)];
  };
  const std::size_t failed = count(ServerHealth::failed);
  const std::size_t working =
      count(ServerHealth::ready) + count(ServerHealth::starting) + count(ServerHealth::degraded);
  if (failed > 0 && working == 0) return HealthStatus::failed;
  return failed + count(ServerHealth::degraded) > 0 ? HealthStatus::degraded : HealthStatus::ok;
}

Health HealthReportBuilder::finish(const GatewayStats& stats) && {
  Health health;
  health.status = overall_status(stats.gateway_draining);
  health.report.push_back(Bytes::adopt(report_head(health.status, stats)));
  for (std::string& chunk : chunks_) health.report.push_back(Bytes::adopt(std::move(chunk)));
  health.report.push_back(Bytes::constant("]}"));
  return health;
}

std::string HealthReportBuilder::report_head(HealthStatus status, const GatewayStats& stats) const {
  json::Writer out;
  out.begin_object().key("status").string(to_string(status));
  out.key("version").string(FAIRLEAD_VERSION).key("revision").string(to_string(mcp::kNewestRevision));
  const auto uptime = std::chrono::duration_cast<std::chrono::seconds>(stats.uptime);
  out.key("uptimeSeconds").integer(uptime.count());
  write_counts(out, stats.session_count);
  out.key("processes").unsigned_integer(pool_.process_count());
  const auto longest = std::chrono::duration_cast<std::chrono::milliseconds>(stats.longest_turn);
  out.key("loop").begin_object().key("longest_turn_ms").integer(longest.count());
  out.key("slow_turns").unsigned_integer(stats.slow_turn_count).end_object();
  out.end_object();
  std::string text(json::redact_strings(*pool_.monitor()->redactor(), out.finish()).text());
  text.pop_back();
  return text + R"(,"servers":[)";
}

void HealthReportBuilder::write_counts(json::Writer& out, std::size_t session_count) const {
  out.key("counts").begin_object().key("servers").begin_object();
  for (std::size_t i = 0; i < kServerHealthCount; ++i)
    out.key(kServerHealthNames[i]).unsigned_integer(counts_.servers[i]);
  out.end_object();
  for (const ListKind kind : kListKinds)
    out.key(result_member(kind)).unsigned_integer(counts_.entries[static_cast<std::size_t>(kind)]);
  out.key("sessions").unsigned_integer(session_count).key("calls").unsigned_integer(counts_.calls);
  out.key("waiting").unsigned_integer(counts_.waiting_calls).end_object();
}

}  // namespace fairlead::gateway
