#include "gateway/health.hpp"

#include <variant>

#include "fairlead/json/writer.hpp"

namespace fairlead::gateway {

namespace {

// Which protection of the gateway and its keeper from signals of a server is missing. Empty if none is.
std::string missing_protection(const ServerEntry& entry) {
  const auto* process = std::get_if<pool::Program>(&entry.spec.reach);
  if (!process) return {};
  const std::string why = signal_exposure(process->containment);
  return why.empty() ? why : "the server can stop or kill the gateway and its keeper: " + why;
}

void write_entry(json::Writer& out, const ServerEntry& entry) {
  if (!entry.listing.problem.empty()) out.key("lists").string(entry.listing.problem);
  if (const std::string missing = missing_protection(entry); !missing.empty())
    out.key("missingProtection").string(missing);
}

void write_upstream(json::Writer& out, const pool::UpstreamStatus& one, const ServerTable& servers) {
  out.begin_object().key("name").string(one.server).key("state").string(to_string(one.state));
  out.key("healthy").boolean(one.healthy).key("generation").unsigned_integer(one.generation);
  if (!one.key.empty()) out.key("for").string(one.key);
  if (!one.connection.empty()) out.key("connection").string(one.connection);
  out.key("calls").unsigned_integer(one.calls).key("waiting").unsigned_integer(one.waiting);
  out.key("failures").unsigned_integer(one.failures);
  if (const auto entry = servers.find(one.server)) write_entry(out, *entry);
  if (one.last_error) out.key("lastError").string(one.last_error->to_string());
  out.end_object();
}

}  // namespace

json::Raw health_report(std::string_view status, const pool::Pool& pool, const ServerTable& servers,
                        const TurnMeter& turns) {
  json::Writer out;
  out.begin_object().key("status").string(status);
  out.key("processes").unsigned_integer(pool.processes());
  const auto longest = std::chrono::duration_cast<std::chrono::milliseconds>(turns.longest());
  out.key("loop").begin_object().key("longest_turn_ms").integer(longest.count());
  out.key("slow_turns").unsigned_integer(turns.slow_turns()).end_object();
  out.key("servers").begin_array();
  for (const pool::UpstreamStatus& one : pool.status()) write_upstream(out, one, servers);
  out.end_array().end_object();
  return out.finish();
}

}  // namespace fairlead::gateway
