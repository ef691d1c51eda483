// MissingListReporter: reports the servers whose entries are missing from a list that a client requests, in
// the log and in the `_meta` of the result. Private to the layer.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "fairlead/base/log.hpp"
#include "gateway/catalogue.hpp"
#include "gateway/endpoint_scope.hpp"
#include "gateway/server_table.hpp"

namespace fairlead::gateway {

class MissingListReporter {
 public:
  MissingListReporter(std::shared_ptr<const ServerTable> servers, Log log)
      : servers_(std::move(servers)), log_(std::move(log)) {}

  // Reports the servers whose list of this kind is missing from `catalogue`, or is outdated because the last
  // attempt to fetch it failed. Returns the `_meta` of a list result: `{"fairlead/incomplete":["server",…]}`;
  // the first kMaxNamedMissingServers servers are named, the others counted. Returns an absent value if there
  // are no such servers. `client` restricts the servers; null: all. Without it, logs the servers with their
  // reasons, up to max_log_field_bytes, if servers or reasons have changed since the last call.
  json::Raw report(ListKind kind, const Catalogue& catalogue, const ClientScope* client = nullptr);

 private:
  // The missing servers of one kind of list, as last logged.
  struct LoggedServers {
    std::string reasons;     // "server: reason; …"
    std::size_t others = 0;  // number of servers that are not named
  };
  // Logs the missing servers unless they are those of the last call for this kind.
  void log_if_changed(ListKind kind, std::string reasons, std::size_t others);

  std::shared_ptr<const ServerTable> servers_;
  Log log_;
  std::array<LoggedServers, kListKinds.size()> logged_;
};

}  // namespace fairlead::gateway
