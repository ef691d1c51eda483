// MissingLists: which servers a list lacks, for the log and for the `_meta` of the list. Private to the
// layer.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "fairlead/base/log.hpp"
#include "gateway/catalogue.hpp"
#include "gateway/server_table.hpp"

namespace fairlead::gateway {

class MissingLists {
 public:
  MissingLists(std::shared_ptr<const ServerTable> servers, Log log)
      : servers_(std::move(servers)), log_(std::move(log)) {}

  // `{"fairlead/incomplete":["server",…]}` with the servers whose list of this kind `catalogue` lacks, or has
  // as it was before an attempt that failed; absent if there are none. Names the first kMaxNamedMissing of
  // them and counts the others. Logs them with the reasons, max_log_field_bytes of them, when that has
  // changed since the last call.
  json::Raw meta(Kind kind, const Catalogue& catalogue);

 private:
  struct Logged {
    std::string reasons;
    std::size_t others = 0;
  };
  void log_change(Kind kind, std::string reasons, std::size_t others);

  std::shared_ptr<const ServerTable> servers_;
  Log log_;
  std::array<Logged, kKinds.size()> logged_;
};

}  // namespace fairlead::gateway
