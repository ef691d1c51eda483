// RevocationWatch: reports at once when a client loses access that it had when it was authenticated: its
// token was revoked or has expired, its user was disabled or removed or has another role, or it has left a
// group. Private to the layer.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "fairlead/base/principal.hpp"
#include "fairlead/loop/timer.hpp"
#include "registry/registry.hpp"

namespace fairlead::admin {

// Selects the clients that have lost access.
using PrincipalSelector = std::function<bool(const Principal&)>;

class RevocationWatch : public std::enable_shared_from_this<RevocationWatch> {
 public:
  // `on_revoked` is called on the loop thread.
  static std::shared_ptr<RevocationWatch> start(Loop& loop, std::shared_ptr<registry::Registry> registry,
                                                std::function<void(const PrincipalSelector&)> on_revoked);

 private:
  RevocationWatch(Loop& loop, std::shared_ptr<registry::Registry> registry,
                  std::function<void(const PrincipalSelector&)> on_revoked);

  void on_token(const registry::RowChange<registry::Token>& change);
  void on_user(const registry::RowChange<registry::User>& change);
  void on_group(const registry::RowChange<registry::Group>& change);
  void set_expiry(const registry::Token& token);
  void forget_expiry(const registry::Token& token);
  void schedule();
  void expire();

  std::shared_ptr<registry::Registry> registry_;
  std::function<void(const PrincipalSelector&)> on_revoked_;
  std::multimap<registry::Time, std::string> expiries_;  // ids of tokens that will expire
  Timer timer_;
  std::shared_ptr<void> subscription_;
};

}  // namespace fairlead::admin
