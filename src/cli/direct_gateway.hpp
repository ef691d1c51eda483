// DirectGateway: the admin API on a database that no gateway serves, in this process. The gateway starts no
// server and listens on a socket that only this process knows.
#pragma once

#include <memory>
#include <string>

#include "cli/admin_client.hpp"

namespace fairlead::admin {
class RegistryGateway;
}

namespace fairlead::cli {

class DirectGateway {
 public:
  // `database` is an address, or empty for that of `fairlead serve` without options, which gets the servers
  // that it has at its first start. Fails with the code `database_in_use` if a gateway or another command
  // uses the database.
  static Task<Result<std::unique_ptr<DirectGateway>>> open(Loop& loop, const std::string& database);
  ~DirectGateway();
  DirectGateway(const DirectGateway&) = delete;
  DirectGateway& operator=(const DirectGateway&) = delete;

  const GatewayAddress& address() const noexcept { return address_; }
  // Waits until the gateway has stopped, and closes the database.
  Task<void> close(Loop& loop);

 private:
  DirectGateway() = default;

  std::string directory_;  // of the socket; removed at the end
  GatewayAddress address_;
  std::shared_ptr<admin::RegistryGateway> gateway_;
};

// A gateway to send requests to: a running one, or one in this process.
struct OpenedGateway {
  GatewayAddress address;
  std::unique_ptr<DirectGateway> direct;  // null: a running gateway
};
// Finds the gateway of `choice`. If a gateway that serves the database is just starting, or another command
// uses the database, waits for kMaxDatabaseWait.
Task<Result<OpenedGateway>> open_gateway(Loop& loop, const GatewayChoice& choice);
inline constexpr std::chrono::milliseconds kMaxDatabaseWait{5'000};

}  // namespace fairlead::cli
