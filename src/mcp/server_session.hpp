// ServerSession: one client of a server on a stream connection. It decides the era of each request, keeps
// what the legacy era remembers between requests, and hands requests to the features.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "fairlead/base/byte_budget.hpp"
#include "fairlead/base/limits.hpp"
#include "fairlead/base/log.hpp"
#include "fairlead/peer/peer.hpp"
#include "mcp/pending_changes.hpp"
#include "mcp/request_state.hpp"
#include "mcp/server_modern.hpp"
#include "mcp/server_state.hpp"

namespace fairlead::mcp {

// Modern subscriptions one connection may carry (max_listens).
inline constexpr std::size_t kMostSubscriptions = 1024;

class ServerSession final : public ChangeListener,
                            public ClientLink,
                            public std::enable_shared_from_this<ServerSession> {
 public:
  ~ServerSession() override;
  // Serves until the connection ends. The session is kept by its peer. Its subscriptions are counted in
  // `shares`.
  static std::shared_ptr<Peer> start(std::shared_ptr<ServerState> server,
                                     std::shared_ptr<Connection> connection, Limits limits, Log log,
                                     PrincipalPtr principal, std::shared_ptr<SubscriptionShares> shares);

  // ClientLink
  Loop& loop() noexcept override { return loop_; }
  const PostedBytes& posted() const noexcept override { return posted_; }
  void notify(std::string_view method, const json::Raw& params, std::string_view about) override;
  Task<Result<json::Raw>> request(std::string method, json::Raw params, std::string about,
                                  std::stop_token stop) override;
  void close_stream(std::string_view about) override;
  const PrincipalPtr& principal() const noexcept override { return principal_; }
  std::string_view session() const noexcept override { return session_; }

  // ChangeListener, from any thread; session() and principal() are its too
  void list_changed(ListKind kind) override;
  void resource_updated(const std::string& uri) override;

 private:
  struct LegacySubscription {
    explicit LegacySubscription(SubscriptionShares::Share taken) : share(std::move(taken)) {}
    bool made_at_backend() const noexcept { return at_backend.use_count() > 0; }

    SubscriptionShares::Share share;
    std::shared_ptr<void> at_backend;  // keeps the backend's subscription, once that is made
  };
  using LegacySubscriptions = std::map<std::string, std::shared_ptr<LegacySubscription>>;  // by URI
  // What the legacy era knows of its client once it has initialized.
  struct Legacy {
    Revision revision;
    json::Raw capabilities;
    json::Raw client_info;
    ByteCharge charge;  // of both
    LoggingLevel log_level = LoggingLevel::debug;
    LegacySubscriptions subscriptions;
  };

  struct Ended;
  static Task<void> release(std::unique_ptr<Ended> ended, Loop& loop);
  static Task<void> end_subscriptions(LegacySubscriptions subscriptions, Loop& loop);

  ServerSession(std::shared_ptr<ServerState> server, Loop& loop, PostedBytes posted, Log log,
                PrincipalPtr principal, std::shared_ptr<SubscriptionShares> shares);

  Task<Answer> handle(Request request);

  // Legacy era.
  Task<Answer> handle_legacy(Request request, std::shared_ptr<const CallFacts> facts);
  Answer initialize(const Request& request);
  Answer set_level(json::View params);
  Task<Answer> subscribe(Request request);
  bool is_subscribed(const std::string& uri) const;
  Task<Result<std::shared_ptr<void>>> subscribe_at_backend(std::string uri, std::stop_token stop);
  Answer unsubscribe(json::View params);
  std::shared_ptr<RequestState> legacy_state();

  void tell_list_changed(ListKind kind);
  void tell_updated(const std::string& uri);

  std::shared_ptr<ServerState> server_;
  std::shared_ptr<const ModernServer> modern_;
  Loop& loop_;
  const PostedBytes posted_;
  PendingChanges pending_;
  Log log_;
  PrincipalPtr principal_;
  std::string session_;
  std::weak_ptr<Peer> peer_;
  std::shared_ptr<ByteAccount> account_;  // of the client; null: without a budget
  std::optional<Legacy> legacy_;
};

}  // namespace fairlead::mcp
