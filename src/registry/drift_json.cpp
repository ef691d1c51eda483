// The JSON form of drift and of listed entries.
#include "registry/json.hpp"
#include "registry/row_reader.hpp"

namespace fairlead::registry {

json::Raw to_json(const Drift& drift) {
  json::Writer out;
  out.begin_object();
  write_text(out, "id", drift.id);
  out.key("server").string(drift.server_id);
  out.key("kind").string(drift.kind);
  out.key("name").string(drift.name);
  if (!drift.before.absent()) out.key("before").raw(drift.before);
  if (!drift.after.absent()) out.key("after").raw(drift.after);
  out.key("quarantined").boolean(drift.quarantined);
  out.key("status").string(to_string(drift.status));
  write_time(out, "detectedAt", drift.detected_at);
  if (drift.resolved_at) write_time(out, "resolvedAt", *drift.resolved_at);
  write_text(out, "resolvedBy", drift.resolved_by);
  out.end_object();
  return out.finish();
}

// Names of entries are those of the server and may be any text.
Result<Drift> parse_drift(json::View document) {
  Drift row;
  RowReader in(document);
  in.id("id", row.id)
      .require("server")
      .id("server", row.server_id)
      .any("before", row.before)
      .any("after", row.after)
      .flag("quarantined", row.quarantined)
      .choice("status", row.status, &parse_drift_status, "open, approved, rejected, reverted")
      .time("detectedAt", row.detected_at)
      .time("resolvedAt", row.resolved_at);
  in.require("kind")
      .require("name")
      .in()
      .string("kind", row.kind)
      .string("name", row.name)
      .string("resolvedBy", row.resolved_by);
  return in.finish(std::move(row));
}

json::Raw to_json(const ListedEntry& entry) {
  json::Writer out;
  out.begin_object().key("entry").raw(entry.entry);
  write_time(out, "firstSeen", entry.first_seen);
  write_time(out, "lastSeen", entry.last_seen);
  out.key("quarantined").boolean(entry.quarantined).end_object();
  return out.finish();
}

}  // namespace fairlead::registry
