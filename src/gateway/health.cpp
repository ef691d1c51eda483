#include "gateway/health.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "base/printable.hpp"
#include "fairlead/base/limits.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/process/failure.hpp"
#include "json/redact.hpp"

namespace fairlead::gateway {

namespace {

enum class ServerHealth : std::uint8_t { ready, starting, degraded, failed, disabled };
constexpr std::array<std::string_view, 5> kServerHealthNames = {"ready", "starting", "degraded", "failed",
                                                                "disabled"};

std::string_view name_of(ServerHealth health) noexcept {
  return kServerHealthNames[static_cast<std::size_t>(health)];
}

using Statuses = std::vector<const pool::UpstreamStatus*>;

bool is_down(const pool::UpstreamStatus* one) noexcept {
  return one->state == pool::State::backing_off || one->state == pool::State::crash_loop;
}

bool is_unresponsive(const pool::UpstreamStatus* one) noexcept {
  return one->state == pool::State::ready && !one->healthy;
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

ServerHealth health_of(const ServerEntry& entry, const Statuses& upstreams) {
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

class Report {
 public:
  explicit Report(const HealthInputs& inputs) : in_(inputs), statuses_(inputs.pool.status()) {
    for (const pool::UpstreamStatus& one : statuses_) by_server_[one.server].push_back(&one);
    for (const auto& entry : in_.servers.all()) {
      const ServerHealth health = health_of(*entry, by_server_[entry->name()]);
      health_.emplace(entry->name(), health);
      ++counts_[static_cast<std::size_t>(health)];
    }
  }

  HealthStatus status() const {
    if (in_.stopping) return HealthStatus::draining;
    const std::size_t failed = count(ServerHealth::failed);
    const std::size_t enabled = health_.size() - count(ServerHealth::disabled);
    if (failed > 0 && failed == enabled) return HealthStatus::failed;
    return failed + count(ServerHealth::degraded) > 0 ? HealthStatus::degraded : HealthStatus::ok;
  }

  json::Raw write() {
    out_.begin_object().key("status").string(to_string(status()));
    out_.key("version").string(FAIRLEAD_VERSION).key("revision").string(to_string(mcp::kNewest));
    const auto uptime = std::chrono::duration_cast<std::chrono::seconds>(in_.uptime);
    out_.key("uptimeSeconds").integer(uptime.count());
    write_counts();
    out_.key("processes").unsigned_integer(in_.pool.processes());
    write_loop();
    out_.key("servers").begin_array();
    for (const auto& entry : in_.servers.all()) write_server(*entry);
    out_.end_array().end_object();
    return out_.finish();
  }

 private:
  std::size_t count(ServerHealth health) const { return counts_[static_cast<std::size_t>(health)]; }

  void write_counts() {
    out_.key("counts").begin_object().key("servers").begin_object();
    for (std::size_t i = 0; i < counts_.size(); ++i)
      out_.key(kServerHealthNames[i]).unsigned_integer(counts_[i]);
    out_.end_object();
    for (const Kind kind : kKinds) {
      std::size_t offers = 0;
      for (const Catalogue::Part& part : in_.catalogue.parts()) offers += part.listed->offers_of(kind).size();
      out_.key(member_of(kind)).unsigned_integer(offers);
    }
    std::size_t calls = 0;
    std::size_t waiting = 0;
    for (const pool::UpstreamStatus& one : statuses_) {
      calls += one.calls;
      waiting += one.waiting;
    }
    out_.key("sessions").unsigned_integer(in_.sessions).key("calls").unsigned_integer(calls);
    out_.key("waiting").unsigned_integer(waiting).end_object();
  }

  void write_loop() {
    const auto longest = std::chrono::duration_cast<std::chrono::milliseconds>(in_.turns.longest());
    out_.key("loop").begin_object().key("longest_turn_ms").integer(longest.count());
    out_.key("slow_turns").unsigned_integer(in_.turns.slow_turns()).end_object();
  }

  // One object for each upstream; one without a state of its own for a server that has none.
  void write_server(const ServerEntry& entry) {
    const Statuses& upstreams = by_server_[entry.name()];
    if (upstreams.empty()) {
      out_.begin_object().key("name").string(entry.name());
      out_.key("state").string(entry.enabled ? "idle" : "stopped").key("healthy").boolean(false);
      write_entry(entry);
      out_.end_object();
    }
    for (const pool::UpstreamStatus* one : upstreams) write_upstream(*one, entry);
  }

  void write_upstream(const pool::UpstreamStatus& one, const ServerEntry& entry) {
    out_.begin_object().key("name").string(one.server).key("state").string(to_string(one.state));
    out_.key("healthy").boolean(one.healthy && dropped_lists(entry).empty());
    out_.key("generation").unsigned_integer(one.generation);
    if (in_.details && !one.key.empty()) out_.key("for").string(one.key);
    if (in_.details && !one.connection.empty()) out_.key("connection").string(one.connection);
    out_.key("calls").unsigned_integer(one.calls).key("waiting").unsigned_integer(one.waiting);
    out_.key("failures").unsigned_integer(one.failures);
    write_entry(entry);
    write_missing(one.missing_containment);
    if (one.last_error) {
      out_.key("lastErrorCode").string(with_failure_code(*one.last_error).detail().code);
      if (in_.details) out_.key("lastError").string(shown_error(one.last_error->to_string()));
    }
    out_.end_object();
  }

  void write_entry(const ServerEntry& entry) {
    out_.key("status").string(name_of(health_.at(entry.name())));
    const std::string dropped = dropped_lists(entry);
    if (in_.details && !entry.listing.problem.empty()) {
      out_.key("lists").string(shown_error(entry.listing.problem));
    } else if (!dropped.empty() || !entry.listing.problem.empty()) {
      out_.key("lists").string(dropped.empty() ? "not all of its lists could be had" : dropped);
    }
    if (const std::string missing = missing_protection(entry); !missing.empty())
      out_.key("missingProtection").string(missing);
  }

  void write_missing(const std::vector<MissingContainment>& missing) {
    if (missing.empty()) return;
    out_.key("missingContainment").begin_array();
    for (const MissingContainment& one : missing) {
      out_.begin_object().key("step").string(one.step);
      if (in_.details) out_.key("reason").string(one.reason);
      out_.end_object();
    }
    out_.end_array();
  }

  const HealthInputs& in_;
  std::vector<pool::UpstreamStatus> statuses_;
  std::map<std::string, Statuses, std::less<>> by_server_;
  std::map<std::string, ServerHealth, std::less<>> health_;
  std::array<std::size_t, kServerHealthNames.size()> counts_{};
  json::Writer out_;
};

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

Health health_report(const HealthInputs& inputs) {
  Report report(inputs);
  return Health{report.status(), json::redact_strings(*inputs.pool.redactor(), report.write())};
}

}  // namespace fairlead::gateway
