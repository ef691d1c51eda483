#include "gateway/health.hpp"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "base/printable.hpp"
#include "fairlead/base/limits.hpp"
#include "fairlead/process/failure.hpp"
#include "json/redact.hpp"
#include "loop/slices.hpp"

namespace fairlead::gateway {

namespace {

constexpr std::array<std::string_view, kServerHealths> kServerHealthNames = {"ready", "starting", "degraded",
                                                                             "failed", "disabled"};

std::string_view name_of(ServerHealth health) noexcept {
  return kServerHealthNames[static_cast<std::size_t>(health)];
}

bool is_down(const pool::UpstreamStatus& one) noexcept {
  return one.state == pool::State::backing_off || one.state == pool::State::crash_loop;
}

bool is_unresponsive(const pool::UpstreamStatus& one) noexcept {
  return one.state == pool::State::ready && !one.healthy;
}

// The lists of which nothing can be offered, although the server has entries; empty if there is none.
std::string dropped_lists(const ServerEntry& entry) {
  std::string dropped;
  if (!entry.shared.listed) return dropped;
  for (const Kind kind : kKinds) {
    const std::size_t entries = entry.shared.listed->of(kind).size();
    if (entries == 0 || !entry.shared.listed->offers_of(kind).empty()) continue;
    dropped += (dropped.empty() ? "" : "; ") + std::string("none of its ") + std::to_string(entries) + " " +
               std::string(member_of(kind)) + " can be offered (see the log)";
  }
  return dropped;
}

ServerHealth health_of(const ServerEntry& entry, const std::vector<pool::UpstreamStatus>& upstreams) {
  if (!entry.enabled) return ServerHealth::disabled;
  const auto down = static_cast<std::size_t>(std::ranges::count_if(upstreams, is_down));
  if (down > 0 && down == upstreams.size()) return ServerHealth::failed;
  if (!entry.shared.listed) return entry.listing.failure ? ServerHealth::failed : ServerHealth::starting;
  const bool lists_missing = !entry.listing.problem.empty() || !dropped_lists(entry).empty();
  const bool degraded = down > 0 || lists_missing || std::ranges::any_of(upstreams, is_unresponsive);
  return degraded ? ServerHealth::degraded : ServerHealth::ready;
}

// Which protection of the gateway and its keeper from signals of a server is missing. Empty if none is.
std::string missing_protection(const ServerEntry& entry) {
  const auto* program = std::get_if<pool::Program>(&entry.spec.reach);
  if (!program) return {};
  const std::string why = signal_exposure(program->containment);
  return why.empty() ? why : "the server can stop or kill the gateway and its keeper: " + why;
}

// A server decides how long its errors are. REQUIRES: `text` has been redacted.
std::string shown_error(std::string_view text) {
  return shortened(text, Limits::kMaxLogFieldBytes);
}

// Of a server that has no upstream.
pool::UpstreamStatus resting(const std::string& server, const ServerEntry* entry) {
  pool::UpstreamStatus status;
  status.server = server;
  status.state = entry && entry->enabled ? pool::State::idle : pool::State::stopped;
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
  std::string all;
  for (const Bytes& part : report) all += part.view();
  return all;
}

// ---- going over the servers ------------------------------------------------------------------------------

bool HealthReport::add_slice() {
  Slices slices;
  for (std::size_t before = written_; add_next(); before = written_) {
    if (slices.due(written_ - before)) return true;
  }
  return false;
}

bool HealthReport::add_next() {
  if (statuses_.size() < upstreams_.size()) {
    add_status(upstreams_[statuses_.size()]->status());
    return true;
  }
  if (entry_ && next_ < statuses_.size()) {
    write_upstream(statuses_[next_++]);
    return true;
  }
  return begin_next_server();
}

bool HealthReport::begin_next_server() {
  std::optional<std::string> name = pool_.server_after(server_);
  if (!name) return false;
  server_ = std::move(*name);
  entry_ = servers_.find(server_);
  upstreams_ = pool_.upstreams(server_);
  statuses_.clear();
  next_ = 0;
  if (upstreams_.empty()) add_status(resting(server_, entry_.get()));
  return true;
}

void HealthReport::add_status(pool::UpstreamStatus status) {
  counts_.calls += status.calls;
  counts_.waiting += status.waiting;
  status.history = {};
  statuses_.push_back(std::move(status));
  if (entry_ && statuses_.size() >= upstreams_.size()) count_server();
}

void HealthReport::count_server() {
  health_ = health_of(*entry_, statuses_);
  ++counts_.servers[static_cast<std::size_t>(health_)];
  if (!entry_->shared.listed) return;
  for (const Kind kind : kKinds)
    counts_.offers[static_cast<std::size_t>(kind)] += entry_->shared.listed->offers_of(kind).size();
}

// ---- writing ---------------------------------------------------------------------------------------------

void HealthReport::append(const json::Raw& upstream) {
  const json::Raw clean = json::redact_strings(*pool_.redactor(), upstream);
  if (parts_.empty() || parts_.back().size() >= kPartBytes) parts_.emplace_back();
  if (written_ > 0) parts_.back() += ',';
  parts_.back() += clean.text();
  written_ += clean.text().size();
}

void HealthReport::write_upstream(const pool::UpstreamStatus& one) {
  json::Writer out;
  out.begin_object().key("name").string(one.server).key("state").string(to_string(one.state));
  out.key("healthy").boolean(one.healthy && dropped_lists(*entry_).empty());
  out.key("generation").unsigned_integer(one.generation);
  if (details_ && !one.key.empty()) out.key("for").string(one.key);
  if (details_ && !one.connection.empty()) out.key("connection").string(one.connection);
  out.key("calls").unsigned_integer(one.calls).key("waiting").unsigned_integer(one.waiting);
  out.key("failures").unsigned_integer(one.failures);
  write_entry(out);
  write_missing(out, one.missing_containment);
  if (one.last_error) {
    out.key("lastErrorCode").string(with_failure_code(*one.last_error).detail().code);
    if (details_) out.key("lastError").string(shown_error(one.last_error->to_string()));
  }
  out.end_object();
  append(out.finish());
}

void HealthReport::write_entry(json::Writer& out) const {
  out.key("status").string(name_of(health_));
  const std::string dropped = dropped_lists(*entry_);
  const std::string& problem = entry_->listing.problem;
  if (details_ && !problem.empty()) {
    out.key("lists").string(shown_error(problem));
  } else if (!dropped.empty() || !problem.empty()) {
    out.key("lists").string(dropped.empty() ? "not all of its lists could be had" : dropped);
  }
  if (const std::string missing = missing_protection(*entry_); !missing.empty())
    out.key("missingProtection").string(missing);
}

void HealthReport::write_missing(json::Writer& out, const std::vector<MissingContainment>& missing) const {
  if (missing.empty()) return;
  out.key("missingContainment").begin_array();
  for (const MissingContainment& one : missing) {
    out.begin_object().key("step").string(one.step);
    if (details_) out.key("reason").string(one.reason);
    out.end_object();
  }
  out.end_array();
}

// ---- the whole -------------------------------------------------------------------------------------------

HealthStatus HealthReport::status(bool stopping) const {
  if (stopping) return HealthStatus::draining;
  const auto count = [this](ServerHealth health) {
    return counts_.servers[static_cast<std::size_t>(health)];
  };
  const std::size_t failed = count(ServerHealth::failed);
  const std::size_t working =
      count(ServerHealth::ready) + count(ServerHealth::starting) + count(ServerHealth::degraded);
  if (failed > 0 && working == 0) return HealthStatus::failed;
  return failed + count(ServerHealth::degraded) > 0 ? HealthStatus::degraded : HealthStatus::ok;
}

Health HealthReport::finish(const HealthFigures& figures) && {
  Health health;
  health.status = status(figures.stopping);
  health.report.push_back(Bytes::adopt(head(health.status, figures)));
  for (std::string& part : parts_) health.report.push_back(Bytes::adopt(std::move(part)));
  health.report.push_back(Bytes::constant("]}"));
  return health;
}

// Everything before the elements of `servers`.
std::string HealthReport::head(HealthStatus status, const HealthFigures& figures) const {
  json::Writer out;
  out.begin_object().key("status").string(to_string(status));
  out.key("version").string(FAIRLEAD_VERSION).key("revision").string(to_string(mcp::kNewest));
  const auto uptime = std::chrono::duration_cast<std::chrono::seconds>(figures.uptime);
  out.key("uptimeSeconds").integer(uptime.count());
  write_counts(out, figures.sessions);
  out.key("processes").unsigned_integer(pool_.processes());
  const auto longest = std::chrono::duration_cast<std::chrono::milliseconds>(figures.longest_turn);
  out.key("loop").begin_object().key("longest_turn_ms").integer(longest.count());
  out.key("slow_turns").unsigned_integer(figures.slow_turns).end_object();
  out.end_object();
  std::string text(json::redact_strings(*pool_.redactor(), out.finish()).text());
  text.pop_back();
  return text + R"(,"servers":[)";
}

void HealthReport::write_counts(json::Writer& out, std::size_t sessions) const {
  out.key("counts").begin_object().key("servers").begin_object();
  for (std::size_t i = 0; i < kServerHealths; ++i)
    out.key(kServerHealthNames[i]).unsigned_integer(counts_.servers[i]);
  out.end_object();
  for (const Kind kind : kKinds)
    out.key(member_of(kind)).unsigned_integer(counts_.offers[static_cast<std::size_t>(kind)]);
  out.key("sessions").unsigned_integer(sessions).key("calls").unsigned_integer(counts_.calls);
  out.key("waiting").unsigned_integer(counts_.waiting).end_object();
}

}  // namespace fairlead::gateway
