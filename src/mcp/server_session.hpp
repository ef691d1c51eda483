// ServerSession: serves one client on a stream connection. It determines the era of each request, stores the
// session state of a legacy client, and dispatches requests to the features.
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

// Maximum number of concurrent subscriptions/listen requests on one connection (max_listens).
inline constexpr std::size_t kMaxListens = 1024;

class ServerSession final : public ChangeListener,
                            public ClientLink,
                            public std::enable_shared_from_this<ServerSession> {
 public:
  ~ServerSession() override;
  // Returns the settings of the peers of sessions, which all sessions of a server can share.
  static std::shared_ptr<const PeerSettings> make_settings(Limits limits, Log log);
  // Serves until the connection ends. The returned peer owns the session. `settings` are those of
  // make_settings(). The session's subscriptions are charged to `quota`.
  static std::shared_ptr<Peer> start(std::shared_ptr<ServerState> server,
                                     std::shared_ptr<Connection> connection,
                                     std::shared_ptr<const PeerSettings> settings, PrincipalPtr principal,
                                     std::shared_ptr<SubscriptionQuota> quota);

  // ClientLink
  Loop& loop() noexcept override { return loop_; }
  const PostedBytes& posted_bytes() const noexcept override { return posted_bytes_; }
  void notify(std::string_view method, const json::Raw& params, std::string_view related_request) override;
  Task<Result<json::Raw>> request(std::string method, json::Raw params, std::string related_request,
                                  std::stop_token stop) override;
  void close_stream(std::string_view related_request) override;
  const PrincipalPtr& principal() const noexcept override { return principal_; }
  std::string_view session() const noexcept override { return session_; }

  // ChangeListener: called from any thread. session() and principal() above override methods of
  // ChangeListener too.
  void on_list_changed(ListKind kind) override;
  void on_resource_updated(const std::string& uri) override;

 private:
  struct LegacySubscription {
    explicit LegacySubscription(SubscriptionQuota::Charge quota_charge) : charge(std::move(quota_charge)) {}
    bool has_backend_subscription() const noexcept { return backend_subscription.use_count() > 0; }

    SubscriptionQuota::Charge charge;
    std::shared_ptr<void> backend_subscription;  // from Backend::subscribe(); empty until it has completed
  };
  using LegacySubscriptions = std::map<std::string, std::shared_ptr<LegacySubscription>>;  // by URI
  // State of a legacy client after `initialize`.
  struct LegacyState {
    Revision revision;
    json::Raw capabilities;
    json::Raw client_info;
    ByteCharge charge;  // for the bytes of capabilities and client_info
    LoggingLevel log_level = LoggingLevel::debug;
    LegacySubscriptions subscriptions;
  };

  struct EndedSession;
  static Task<void> release_session_state(std::unique_ptr<EndedSession> ended, Loop& loop);
  static Task<void> end_subscriptions(LegacySubscriptions subscriptions, Loop& loop);

  ServerSession(std::shared_ptr<ServerState> server, Loop& loop, PostedBytes posted, Log log,
                PrincipalPtr principal, std::shared_ptr<SubscriptionQuota> quota);

  // Returns what the modern requests of this connection share.
  const std::shared_ptr<const ModernServer>& modern();

  Task<Answer> handle_request(Request request);
  // See Methods::DirectHandler.
  bool serve_directly(const rpc::Message& message, const std::stop_token& stop,
                      const std::shared_ptr<Responder>& responder);

  // Legacy era.
  Task<Answer> handle_legacy_request(Request request, std::shared_ptr<const CallFacts> facts);
  Answer handle_initialize(const Request& request);
  Answer handle_set_level(json::View params);
  Task<Answer> handle_subscribe(Request request);
  bool is_subscribed(const std::string& uri) const;
  Task<Result<std::shared_ptr<void>>> subscribe_at_backend(std::string uri, std::stop_token stop);
  Answer handle_unsubscribe(json::View params);
  std::shared_ptr<RequestState> make_legacy_request_state(std::string_view request_id = {});

  void send_list_changed(ListKind kind);
  void send_resource_updated(const std::string& uri);

  std::shared_ptr<ServerState> server_;
  std::shared_ptr<SubscriptionQuota> quota_;
  std::shared_ptr<const ModernServer> modern_;  // null: the client has sent no modern request
  Methods methods_;
  Loop& loop_;
  const PostedBytes posted_bytes_;  // limits what other threads post to the loop for this client
  PendingChanges pending_changes_;
  Log log_;
  PrincipalPtr principal_;
  std::string session_;
  std::weak_ptr<Peer> peer_;
  std::shared_ptr<ByteAccount> account_;  // the byte account of the client; null if no byte budget applies
  std::optional<LegacyState> legacy_;
};

}  // namespace fairlead::mcp
