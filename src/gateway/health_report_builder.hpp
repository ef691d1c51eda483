// HealthReportBuilder: builds one JSON report of /health, which has the status of the gateway, the numbers of
// servers, catalogue entries, sessions and calls, and the state of every server. Private to the layer.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fairlead/gateway/gateway.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/pool/pool.hpp"
#include "gateway/server_table.hpp"

namespace fairlead::gateway {

enum class ServerHealth : std::uint8_t {
  ready,     // the lists have been fetched, and nothing below applies; the server need not be running
  starting,  // the lists have not been fetched yet, and no attempt has failed
  degraded,  // some upstream is down or does not respond, or a list could not be fetched or has no valid
             // entry
  failed,    // all upstreams are down, or there are no lists because the last attempt to fetch them failed
  disabled,
};
inline constexpr std::size_t kServerHealthCount = 5;  // the number of enumerators

// The values in a report that concern the gateway as a whole, not its servers.
struct GatewayStats {
  std::size_t session_count = 0;
  Clock::duration uptime{};
  bool gateway_draining = false;            // Gateway::shutdown() has been called
  std::chrono::nanoseconds longest_turn{};  // of the loop
  std::uint64_t slow_turn_count = 0;        // turns of the loop that exceeded their budget
};

// Builds a report in slices. Servers may be added, changed and removed between two slices. No server is
// reported twice, and the report of a server shows its state in one slice, or in consecutive slices if it has
// many upstreams.
class HealthReportBuilder {
 public:
  // The text is stored in chunks of about this size, so that no turn copies the whole text.
  static constexpr std::size_t kChunkBytes = 32u << 10;

  using ServerFilter = std::function<bool(const ServerEntry&)>;
  // Whom a report is for.
  struct Reader {
    bool with_details = false;  // see FailurePolicy: with texts of errors, connections, and sessions or users
    PrincipalPtr client;        // the report has only servers that are visible to it; null: all
    ServerFilter filter = nullptr;  // the report has only servers for which it returns true; null: all
  };
  // REQUIRES: `pool` and `servers` outlive the report.
  HealthReportBuilder(const pool::Pool& pool, const ServerTable& servers, Reader reader)
      : pool_(pool), servers_(servers), reader_(std::move(reader)) {}

  // Adds upstreams to the report until the slice ends. Returns false when all servers are in the report.
  bool add_slice();
  // Returns the report. It contains the servers that add_slice() has added so far.
  Health finish(const GatewayStats& stats) &&;

 private:
  struct Counts {
    std::array<std::size_t, kServerHealthCount> servers{};  // by ServerHealth
    std::array<std::size_t, kListKinds.size()> entries{};   // catalogue entries by ListKind
    std::size_t calls = 0;                                  // active calls
    std::size_t waiting_calls = 0;
  };

  // Performs the next step: reads the status of one upstream, writes one upstream, or begins the next server.
  // Returns false if nothing is left to do.
  bool process_next();
  // Resets the members below for the next server. Returns false if there is none.
  bool begin_next_server();
  // Returns whether the server being added is visible to the reader.
  bool is_visible_to_reader() const;
  // Stores the status of one upstream and counts its calls. Counts the server with its last upstream.
  void add_status(pool::UpstreamStatus status);
  // Adds the server and its catalogue entries to `counts_`, and sets `health_`.
  void count_server();
  void write_upstream(const pool::UpstreamStatus& status);
  // Writes the members that the objects of all upstreams of the server have in common.
  void write_server_members(json::Writer& out) const;
  void write_missing_containment(json::Writer& out, const std::vector<MissingContainment>& missing) const;
  // Redacts the JSON object of an upstream and appends it to `chunks_`.
  void append_upstream(const json::Raw& upstream);
  // Returns the status of the gateway that follows from `counts_`; `draining` if `gateway_draining`.
  HealthStatus overall_status(bool gateway_draining) const;
  // Returns the text of the report before the elements of `servers`.
  std::string report_head(HealthStatus status, const GatewayStats& stats) const;
  void write_counts(json::Writer& out, std::size_t session_count) const;

  const pool::Pool& pool_;
  const ServerTable& servers_;
  const Reader reader_;
  Counts counts_;
  std::vector<std::string> chunks_;  // the elements of `servers`, separated by commas
  std::size_t written_bytes_ = 0;    // the number of bytes in chunks_

  // ---- the server that is being added ----
  std::string server_;           // its name
  ServerTable::EntryPtr entry_;  // null: the server has been removed; only its remaining calls are counted
  std::vector<std::shared_ptr<pool::Upstream>> upstreams_;
  std::vector<pool::UpstreamStatus> statuses_;  // of the upstreams read so far, in the order of upstreams_
  std::size_t next_status_ = 0;                 // index of the next element of statuses_ to write
  ServerHealth health_ = ServerHealth::starting;
};

}  // namespace fairlead::gateway
