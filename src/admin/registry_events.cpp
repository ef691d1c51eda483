#include "admin/registry_events.hpp"

#include <set>
#include <string>
#include <variant>

#include "admin/handlers.hpp"
#include "admin/process_usage.hpp"
#include "base/rfc3339.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/pool/pool.hpp"
#include "registry/configuration.hpp"
#include "registry/rules.hpp"

namespace fairlead::admin {

namespace {

std::string timestamp() {
  return format_rfc3339(
      std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now()));
}

PrincipalSelector administrators() {
  return [](const Principal& principal) { return registry::is_administrator(principal); };
}

// Return the row with only the members on which the rules decide whether a client may list it: events are
// kept for longer than rows, which may be large.
registry::Server rule_members(const registry::Server& row) {
  registry::Server members;
  members.visibility = row.visibility;
  members.owner = row.owner;
  return members;
}
registry::Endpoint rule_members(const registry::Endpoint& row) {
  registry::Endpoint members;
  members.users = row.users;
  members.groups = row.groups;
  return members;
}
registry::User rule_members(const registry::User& row) {
  registry::User members;
  members.id = row.id;
  return members;
}
registry::Group rule_members(const registry::Group&) {
  return registry::Group();
}
registry::Token rule_members(const registry::Token& row) {
  registry::Token members;
  members.user = row.user;
  return members;
}
registry::Secret rule_members(const registry::Secret& row) {
  registry::Secret members;
  members.user = row.user;
  return members;
}

template <class T>
PrincipalSelector readers_of(const T& row) {
  return [row = std::make_shared<const T>(rule_members(row))](const Principal& principal) {
    return registry::decide(principal, registry::Operation::list, *row).allowed;
  };
}

PrincipalSelector readers_of(const registry::Drift& drift, const registry::Server& server) {
  registry::Drift change;
  change.kind = drift.kind;
  change.name = drift.name;
  registry::Server members = rule_members(server);
  if (!server.spec.is_process()) members.spec.transport = pool::Address();
  if (is_denied_tool(server.tools, drift.name)) members.tools.deny = {drift.name};
  return [change = std::move(change),
          row = std::make_shared<const registry::Server>(std::move(members))](const Principal& principal) {
    return sees_drift(principal, registry::Operation::list, change, *row);
  };
}

// Publishes "KIND.created", "KIND.updated" or "KIND.removed". Events name the row; they do not contain it,
// because rows may have secrets.
template <class T>
void publish_row(EventHub& events, std::string_view kind, const registry::RowChange<T>& change) {
  const std::shared_ptr<const T> row = change.after ? change.after : change.before;
  const std::string_view what = !change.before ? ".created" : !change.after ? ".removed" : ".updated";
  json::Writer writer;
  writer.begin_object().key("id").string(row->id).key("name").string(row->name);
  writer.key("version").integer(row->version).key("at").string(timestamp()).end_object();
  events.publish(std::string(kind) + std::string(what), writer.finish(), readers_of(*row));
}

struct ChangePublisher {
  EventHub& events;
  const registry::State& state;

  void operator()(const registry::RowChange<registry::Server>& change) const {
    publish_row(events, "server", change);
  }
  void operator()(const registry::RowChange<registry::Endpoint>& change) const {
    publish_row(events, "endpoint", change);
  }
  void operator()(const registry::RowChange<registry::User>& change) const {
    publish_row(events, "user", change);
  }
  void operator()(const registry::RowChange<registry::Group>& change) const {
    publish_row(events, "group", change);
  }
  void operator()(const registry::RowChange<registry::Token>& change) const {
    publish_row(events, "token", change);
  }
  void operator()(const registry::RowChange<registry::Secret>& change) const {
    publish_row(events, "secret", change);
  }
  void operator()(const registry::RowChange<registry::Drift>& change) const;
  void operator()(const registry::RowChange<registry::Configuration>& change) const;
};

void ChangePublisher::operator()(const registry::RowChange<registry::Drift>& change) const {
  const registry::DriftPtr drift = change.after ? change.after : change.before;
  const registry::ServerPtr server = state.servers.find(drift->server_id);
  if (!server) return;
  json::Writer writer;
  writer.begin_object().key("id").string(drift->id).key("serverId").string(drift->server_id);
  writer.key("server").string(server->name).key("kind").string(drift->kind).key("name").string(drift->name);
  writer.key("status").string(registry::to_string(drift->status));
  writer.key("quarantined").boolean(drift->quarantined).key("at").string(timestamp()).end_object();
  const std::string_view what = !change.after    ? "drift.removed"
                                : !change.before ? "drift.detected"
                                                 : "drift.updated";
  events.publish(what, writer.finish(), readers_of(*drift, *server));
}

void ChangePublisher::operator()(const registry::RowChange<registry::Configuration>& change) const {
  std::set<std::string> keys;
  const auto add_differences = [&](const registry::Configuration& from, const registry::Configuration& to) {
    for (const auto& [key, value] : from.changed_values()) {
      if (to.value(key).text() != value.text()) keys.insert(key);
    }
  };
  if (!change.before || !change.after) return;
  add_differences(*change.before, *change.after);
  add_differences(*change.after, *change.before);
  json::Writer writer;
  writer.begin_object().key("keys").begin_array();
  for (const std::string& key : keys) writer.string(key);
  writer.end_array().key("at").string(timestamp()).end_object();
  events.publish("config.updated", writer.finish(), administrators());
}

void publish_lists(EventHub& events, const registry::State& state, const std::string& server_id) {
  const registry::ServerPtr server = state.servers.find(server_id);
  if (!server) return;
  json::Writer writer;
  writer.begin_object().key("id").string(server->id).key("name").string(server->name);
  writer.key("at").string(timestamp()).end_object();
  events.publish("server.lists", writer.finish(), readers_of(*server));
}

void publish_availability(EventHub& events, const std::optional<Error>& problem) {
  json::Writer writer;
  writer.begin_object();
  if (problem) writer.key("reason").string(problem->message());
  writer.key("at").string(timestamp()).end_object();
  events.publish(problem ? "database.unavailable" : "database.available", writer.finish(), administrators());
}

void publish_transition(EventHub& events, const registry::State& state, const pool::Upstream& upstream,
                        const pool::Transition& transition) {
  const registry::ServerPtr server = state.servers.find_by_name(upstream.spec().name);
  if (!server) return;
  json::Writer writer;
  writer.begin_object().key("id").string(server->id).key("name").string(server->name);
  if (!upstream.key().empty()) writer.key("key").string(shown_upstream_key(upstream.key()));
  writer.key("from")
      .string(pool::to_string(transition.from))
      .key("to")
      .string(pool::to_string(transition.to));
  writer.key("generation").unsigned_integer(transition.generation);
  writer.key("at").string(timestamp()).end_object();
  events.publish("server.state", writer.finish(), readers_of(*server));
}

}  // namespace

std::shared_ptr<void> publish_transitions(std::shared_ptr<registry::Registry> registry,
                                          pool::PoolMonitor& monitor, std::shared_ptr<EventHub> events) {
  return monitor.on_transition(
      [registry = std::move(registry), events = std::move(events)](
          const std::shared_ptr<pool::Upstream>& upstream, const pool::Transition& transition) {
        publish_transition(*events, registry->state(), *upstream, transition);
      });
}

std::vector<std::shared_ptr<void>> publish_changes(std::shared_ptr<registry::Registry> registry,
                                                   std::shared_ptr<EventHub> events) {
  registry::Registry* const rows = registry.get();
  std::vector<std::shared_ptr<void>> subscriptions;
  subscriptions.push_back(rows->on_change([rows, events](const registry::Change& change) {
    std::visit(ChangePublisher{*events, rows->state()}, change);
  }));
  subscriptions.push_back(rows->on_lists_change([rows, events](const registry::ListsChange& change) {
    publish_lists(*events, rows->state(), change.server_id);
  }));
  subscriptions.push_back(rows->on_availability(
      [events](const std::optional<Error>& reason) { publish_availability(*events, reason); }));
  return subscriptions;
}

}  // namespace fairlead::admin
