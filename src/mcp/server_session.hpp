// ServerSession: one client of a server on a stream connection. It decides the era of each request, keeps
// what the legacy era remembers between requests, and hands requests to the features.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "fairlead/base/limits.hpp"
#include "fairlead/base/log.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/peer/peer.hpp"
#include "fairlead/protocol/method_table.hpp"
#include "mcp/features.hpp"
#include "mcp/request_state.hpp"
#include "mcp/server_state.hpp"

namespace fairlead::mcp {

// Resources one client may be subscribed to, and the length of the URI of each.
inline constexpr std::size_t kMostUris = 10'000;
inline constexpr std::size_t kMostUriBytes = 8192;

class ServerSession final : public ChangeListener,
                            public ClientLink,
                            public std::enable_shared_from_this<ServerSession> {
 public:
  // Serves until the connection ends. The session is kept by its peer.
  static std::shared_ptr<Peer> start(std::shared_ptr<ServerState> server,
                                     std::shared_ptr<Connection> connection, Limits limits, Log log);

  // ClientLink
  Loop& loop() noexcept override { return loop_; }
  void notify(std::string_view method, const json::Raw& params, std::string_view about) override;
  Task<Result<json::Raw>> request(std::string method, json::Raw params, std::string about,
                                  std::stop_token stop) override;

  // ChangeListener, from any thread
  void list_changed(ListKind kind) override;
  void resource_updated(const std::string& uri) override;

 private:
  // What the legacy era knows of its client once it has initialized.
  struct Legacy {
    Revision revision;
    json::Raw capabilities;
    json::Raw client_info;
    LoggingLevel log_level = LoggingLevel::debug;
    std::set<std::string> subscriptions;
  };
  // A modern subscription: what it asked for.
  struct Listening {
    bool tools = false;
    bool prompts = false;
    bool resources = false;
    std::set<std::string> uris;
    Event ended;
    bool nothing() const noexcept { return !tools && !prompts && !resources && uris.empty(); }
  };

  ServerSession(std::shared_ptr<ServerState> server, Loop& loop, Log log)
      : server_(std::move(server)), loop_(loop), log_(std::move(log)) {}

  Task<Answer> handle(Request request);
  Task<Answer> dispatch(FeatureCall call, const MethodInfo& method);
  bool has_capability(std::string_view capability) const;
  void write_capabilities(json::Writer& out, Revision revision) const;

  // Legacy era.
  Task<Answer> handle_legacy(Request request);
  Answer initialize(const Request& request);
  Answer set_level(json::View params);
  Answer subscribe(json::View params, bool on);

  // Modern era.
  Task<Answer> handle_modern(Request request, json::View meta);
  Result<std::shared_ptr<RequestState>> modern_state(const Request& request, json::View meta) const;
  Answer discover(Revision revision) const;
  std::optional<Error> read_filter(json::View filter, Listening& wanted) const;
  Task<Answer> listen(Request request, std::shared_ptr<RequestState> state);
  void acknowledge(const std::string& id, const Listening& wanted);

  void end_subscriptions();

  void tell_list_changed(ListKind kind);
  void tell_updated(const std::string& uri);
  void notify_listener(const std::string& id, std::string_view method, std::string_view uri = {});

  std::shared_ptr<ServerState> server_;
  Loop& loop_;
  Log log_;
  std::weak_ptr<Peer> peer_;
  std::optional<Legacy> legacy_;
  std::map<std::string, Listening> listening_;  // by the id of the listen request, as spelled
};

}  // namespace fairlead::mcp
