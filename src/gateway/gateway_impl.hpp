// GatewayImpl: the Gateway there is. Private to the layer.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "fairlead/gateway/gateway.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/mcp/backend.hpp"
#include "gateway/catalogue.hpp"
#include "gateway/passing.hpp"
#include "gateway/watches.hpp"

namespace fairlead::gateway {

std::string_view list_method(Kind kind) noexcept;
// What a client must have declared to be asked this; empty: nobody is asked this.
std::string_view capability_for(std::string_view method) noexcept;

// A client's request on its way through; what a server says meanwhile may be meant for it.
struct Passage {
  explicit Passage(mcp::Context asking) : context(std::move(asking)) {}
  mcp::Context context;
};

class GatewayImpl final : public Gateway,
                          public mcp::Backend,
                          public std::enable_shared_from_this<GatewayImpl> {
 public:
  GatewayImpl(Loop& loop, Config config, Log log);
  Result<void> start();

  // Gateway
  const mcp::Server& front() const noexcept override { return front_; }
  pool::Pool& pool() const noexcept override { return *pool_; }
  json::Raw health() const override;
  Result<void> reload(Config config) override;
  Task<void> shutdown(std::chrono::milliseconds grace) override;

  // mcp::Backend
  bool has_capability(std::string_view capability) const override;
  Task<Answer> serve(mcp::BackendRequest request) override;
  mcp::HeaderParams header_params(std::string_view tool) const override;
  Task<Result<std::shared_ptr<void>>> subscribe(mcp::BackendSubscription subscription) override;
  void session_began(std::string_view session, Reach reach) override;
  void log_level_set(std::string_view session, mcp::LoggingLevel level) override;
  void session_ended(std::string_view session) override;

 private:
  // What an upstream last listed.
  struct Part {
    std::shared_ptr<const Listed> listed;  // null: nothing yet
    std::weak_ptr<mcp::Client> listening;  // what tells us of changes, where it has to be asked to
    Clock::time_point next{};              // it is not asked before
    bool asking = false;                   // it is being asked
    bool again = false;                    // and has changed meanwhile
    std::optional<pool::Lease> lease;      // while it is
    std::weak_ptr<pool::Upstream> at;      // what to ask, if it is still there
  };
  // What came of asking one.
  struct Asked {
    Asked() {}  // NOLINT: not an aggregate, see ConnectOptions

    std::shared_ptr<const Listed> listed;
    std::string problem;  // why not all of it
  };
  // What is known of one server, whether it runs or not.
  struct Known {
    mcp::Revision revision = mcp::kNewestLegacy;
    bool removed = false;     // from the configuration; kept for what still refers to it
    std::uint64_t epoch = 0;  // counts its configurations: what an earlier one lists is ignored
    bool per_user = false;
    bool asked = false;            // it has been asked for its lists once, with whatever outcome
    std::string problem;           // why there are none, or not all
    std::optional<Error> failure;  // why there are none
    std::optional<Timer> retry;    // when there is a problem
    std::chrono::milliseconds pause{};
    Part shared;  // what everybody sees who has no upstream of their own
    std::map<std::string, std::shared_ptr<Part>, std::less<>> own;  // by session or user

    std::shared_ptr<const Listed> own_lists(std::string_view session, std::string_view user) const;
  };
  // Where a request goes.
  struct Route {
    std::shared_ptr<const Catalogue> catalogue;  // what `entry` is part of
    std::string server;
    std::optional<Rename> rename;
    json::View entry;  // the tool, where it is one
  };

  // Servers (gateway_reload.cpp).
  Result<void> add_server(pool::ServerSpec spec);
  void replace_server(pool::ServerSpec spec);
  void remove_server(const std::string& name);

  // Lists (gateway_lists.cpp).
  // `upstream` is the one that has changed; null: whichever serves.
  void refresh(const std::string& server, const std::shared_ptr<pool::Upstream>& upstream);
  void refresh_own(const std::shared_ptr<pool::Upstream>& upstream);
  static Task<void> list_server(std::shared_ptr<GatewayImpl> self, std::string server);
  static Task<void> list_own(std::shared_ptr<GatewayImpl> self, std::shared_ptr<pool::Upstream> upstream,
                             std::shared_ptr<Part> part);
  Task<bool> take_turn(Part& part);
  Task<Result<Asked>> ask_lists(pool::Lease lease, Part& part);
  // Makes offers of what `server` has listed, in slices that let the loop serve others in between.
  Task<void> make_offers(std::string server, std::shared_ptr<Listed> listed);
  void note_problem(const std::string& server, std::string problem, std::optional<Error> failure);
  void ask_later(const std::string& server);
  void take_lists(const std::string& server, std::shared_ptr<const Listed> listed);
  void rebuild_catalogue();
  void take_own(const std::string& server, const std::string& key, Part& part,
                std::shared_ptr<const Listed> listed);
  void tell_changes(const Listed& before, const Listed& now, const mcp::Concerns& concerns);
  Task<Answer> list(Kind kind, mcp::BackendRequest request);
  std::shared_ptr<const Catalogue> catalogue_for(std::string_view session, std::string_view user);
  void forget_views();

  // Calls (gateway.cpp).
  // Whether `message` may ask for something of a server that has not listed yet.
  bool may_list_yet(const rpc::Message& message) const;
  // The server whose name that of a tool or prompt begins with; null if there is none.
  const std::string* server_named_in(const rpc::Message& message) const;
  Error unknown_name(std::string_view what, const std::string& name) const;
  Result<Route> route(const rpc::Message& message, const mcp::Context& context);
  Task<Answer> pass(mcp::BackendRequest request, Route route);
  void note_urls(const std::string& server, const mcp::Context& context, const Error& refusal);
  Task<Result<json::Raw>> answers_of(std::string server, mcp::Context context, json::Raw questions);

  // What servers say (gateway_upstream.cpp).
  pool::UpstreamHandlers handlers();
  std::optional<mcp::Context> meant(const pool::Upstream& upstream) const;
  void on_notification(const std::shared_ptr<pool::Upstream>& upstream, std::string_view method,
                       const json::Raw& params);
  static Task<Answer> on_request(std::shared_ptr<GatewayImpl> self, std::shared_ptr<pool::Upstream> upstream,
                                 Request request);
  void sent_to_url(const std::string& server, const std::string& elicitation, std::string_view session);
  void on_completed(const pool::Upstream& upstream, const json::Raw& params);
  void on_change(const std::shared_ptr<pool::Upstream>& upstream, const pool::Transition& transition);

  // Log messages (gateway_logging.cpp).
  void on_log(const pool::Upstream& upstream, const json::Raw& params);
  mcp::LoggingLevel level_for(const pool::Upstream& upstream) const;
  void adjust_levels();
  static Task<void> set_level(std::shared_ptr<GatewayImpl> self, std::shared_ptr<pool::Upstream> upstream,
                              mcp::LoggingLevel level);

  Loop& loop_;
  Config config_;
  Log log_;
  mcp::Server front_;
  std::shared_ptr<pool::Pool> pool_;
  std::map<std::string, Known> known_;
  std::shared_ptr<const Catalogue> catalogue_ = std::make_shared<const Catalogue>();
  std::set<std::string> problems_;  // what it does not offer, and why
  // What those see who have upstreams of their own that list something else; made when they look. By session
  // and user.
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const Catalogue>> views_;
  bool lists_differ_ = false;  // there are such
  std::map<std::string, Reach, std::less<>> sessions_;
  // Who was sent to a URL: server, elicitation and session, of the last kMostSent.
  using Sent = std::tuple<std::string, std::string, std::string>;
  std::set<Sent> sent_;
  std::deque<Sent> sent_order_;
  std::map<std::string, mcp::LoggingLevel, std::less<>> levels_;  // by session, where it said so
  // What each was asked for that runs, or is being started.
  std::map<std::shared_ptr<pool::Upstream>, mcp::LoggingLevel> asked_levels_;
  Event listed_;      // every server has been asked once
  Event listed_one_;  // one more has, since somebody waits
  std::shared_ptr<Watches> watches_;
  bool stopping_ = false;
};

}  // namespace fairlead::gateway
