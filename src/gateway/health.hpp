// HealthReport: what /health tells, as JSON: whether the gateway serves, how many servers, tools, sessions
// and calls there are, and the state of every server. Private to the layer.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "fairlead/gateway/gateway.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/pool/pool.hpp"
#include "gateway/server_table.hpp"

namespace fairlead::gateway {

enum class ServerHealth : std::uint8_t { ready, starting, degraded, failed, disabled };
inline constexpr std::size_t kServerHealths = 5;

// What a report says beside what it says of the servers.
struct HealthFigures {
  std::size_t sessions = 0;
  Clock::duration uptime{};
  bool stopping = false;
  std::chrono::nanoseconds longest_turn{};
  std::uint64_t slow_turns = 0;
};

// A report that is made in slices. Servers may be added, changed and removed in between: a server is reported
// as it was in one slice, or in consecutive ones if it has many upstreams, and never twice.
class HealthReport {
 public:
  // The text is kept in parts of about this size: no turn copies the whole.
  static constexpr std::size_t kPartBytes = 32u << 10;

  // `details`: with the texts of errors, the connections, and the session or user of an upstream; see
  // FailurePolicy. `pool` and `servers` outlive the report.
  HealthReport(const pool::Pool& pool, const ServerTable& servers, bool details)
      : pool_(pool), servers_(servers), details_(details) {}

  // Adds as many upstreams as one turn of the loop is to handle. False when there are no more.
  bool add_slice();
  // The report about what has been added.
  Health finish(const HealthFigures& figures) &&;

 private:
  struct Counts {
    std::array<std::size_t, kServerHealths> servers{};  // by ServerHealth
    std::array<std::size_t, kKinds.size()> offers{};
    std::size_t calls = 0;
    std::size_t waiting = 0;
  };

  bool add_next();
  bool begin_next_server();
  void add_status(pool::UpstreamStatus status);
  void count_server();
  void write_upstream(const pool::UpstreamStatus& one);
  void write_entry(json::Writer& out) const;
  void write_missing(json::Writer& out, const std::vector<MissingContainment>& missing) const;
  void append(const json::Raw& upstream);
  HealthStatus status(bool stopping) const;
  std::string head(HealthStatus status, const HealthFigures& figures) const;
  void write_counts(json::Writer& out, std::size_t sessions) const;

  const pool::Pool& pool_;
  const ServerTable& servers_;
  const bool details_;
  Counts counts_;
  std::vector<std::string> parts_;  // the elements of `servers`, with their commas
  std::size_t written_ = 0;         // bytes of them

  // ---- the server that is being added ----
  std::string server_;
  ServerTable::EntryPtr entry_;  // null: it was removed, and only its calls count
  std::vector<std::shared_ptr<pool::Upstream>> upstreams_;
  std::vector<pool::UpstreamStatus> statuses_;  // of upstreams_, as far as they were asked
  std::size_t next_ = 0;                        // of statuses_, to be written
  ServerHealth health_ = ServerHealth::starting;
};

}  // namespace fairlead::gateway
