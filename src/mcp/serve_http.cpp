#include <algorithm>
#include <csignal>
#include <cstdio>

#include "fairlead/base/block_cache.hpp"
#include "fairlead/http/server.hpp"
#include "fairlead/loop/signals.hpp"
#include "fairlead/loop/timer.hpp"
#include "fairlead/mcp/serve.hpp"
#include "loop/slices.hpp"
#include "mcp/dispatch.hpp"
#include "mcp/server_modern.hpp"
#include "mcp/server_session.hpp"
#include "mcp/weak_list.hpp"

namespace fairlead::mcp {

namespace {

// The ClientLink of a modern request over HTTP. It can only send notifications, before the response.
class StatelessLink final : public ClientLink {
 public:
  StatelessLink(std::shared_ptr<transport::StatelessRequest> request, PostedBytes posted)
      : request_(std::move(request)), posted_(std::move(posted)) {}

  Loop& loop() noexcept override { return request_->loop(); }
  const PostedBytes& posted_bytes() const noexcept override { return posted_; }
  void notify(std::string_view method, const json::Raw& params, std::string_view) override {
    request_->notify(rpc::make_notification(method, params));
  }
  Task<Result<json::Raw>> request(std::string, json::Raw, std::string, std::stop_token) override {
    co_return Error(ErrorKind::validation, "a client of the modern era accepts no requests from the server");
  }
  const PrincipalPtr& principal() const noexcept override { return request_->principal(); }

 private:
  std::shared_ptr<transport::StatelessRequest> request_;
  const PostedBytes posted_;
};

class HttpApplication final : public transport::Application {
 public:
  HttpApplication(std::shared_ptr<ServerState> server, HttpApplicationOptions options)
      : server_(server),
        options_(std::move(options)),
        settings_(ServerSession::make_settings(options_.limits, options_.log)),
        quota_(options_.quota ? options_.quota : make_subscription_quota(options_)),
        modern_(std::make_shared<const ModernServer>(
            std::move(server), std::make_shared<SubscriptionRegistry>(quota_), options_.log)) {}

  void serve(std::shared_ptr<Connection> connection, PrincipalPtr principal) override {
    peers_.add(ServerSession::start(server_, std::move(connection), settings_, std::move(principal), quota_));
  }

  Task<Answer> serve(std::shared_ptr<transport::StatelessRequest> request) override {
    Request rpc_request(nullptr, request->message(), request->stop());
    auto facts = CallFacts::of(request->message());
    PostedBytes posted(options_.limits.max_backlog_bytes);
    auto link = make_cached<StatelessLink>(std::move(request), std::move(posted));
    return serve_modern(modern_, std::move(rpc_request), std::move(facts), std::move(link));
  }

  bool serve_directly(const std::shared_ptr<transport::StatelessRequest>& request,
                      const std::shared_ptr<Responder>& responder) override {
    const rpc::Message& message = request->message();
    if (!may_serve_directly(*server_, message)) return false;
    auto link = make_cached<StatelessLink>(request, PostedBytes(options_.limits.max_backlog_bytes));
    return serve_modern_directly(*modern_, message, request->stop(), CallFacts::of(message), std::move(link),
                                 responder);
  }

  HeaderParams header_params(std::string_view tool, const Principal& principal) const override {
    if (server_->has_tools) {
      const auto catalogue = server_->catalogue();
      if (const ToolEntry* entry = catalogue->tools.find(tool)) return entry->header_params;
    }
    return server_->backend ? server_->backend->header_params(tool, principal) : nullptr;
  }

  void on_drain() override { modern_->subscriptions->end_all(); }
  void end_subscriptions(const std::function<bool(const Principal&)>& selected) override {
    modern_->subscriptions->end_if(selected);
  }

  Task<void> drain(std::chrono::milliseconds grace) override {
    return shut_down_all(peers_.alive(), Clock::now() + grace);
  }

 private:
  // All peers have the same deadline.
  static Task<void> shut_down_all(std::vector<std::shared_ptr<Peer>> peers, Clock::time_point deadline) {
    Slices slices;
    for (const auto& peer : peers) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      peer->loop().spawn(peer->shutdown(std::max(left, std::chrono::milliseconds(0))));
      if (slices.due(0)) co_await sleep_for(peer->loop(), Slices::kPause);
    }
    while (!peers.empty()) {
      const std::shared_ptr<Peer> peer = std::move(peers.back());
      peers.pop_back();
      co_await peer->finished().wait(peer->loop());
      if (slices.due(0)) co_await sleep_for(peer->loop(), Slices::kPause);
    }
  }

  std::shared_ptr<ServerState> server_;
  HttpApplicationOptions options_;
  std::shared_ptr<const PeerSettings> settings_;  // of the peers of all sessions
  std::shared_ptr<SubscriptionQuota> quota_;
  std::shared_ptr<const ModernServer> modern_;
  WeakList<Peer> peers_;
};

std::string url_of(const http::Server& server, const HttpOptions& options) {
  const std::string address = server.address();
  if (address.starts_with("unix:")) return address + " " + options.path;
  return (options.server.tls ? "https://" : "http://") + address + options.path;
}

Task<void> drain_endpoint(std::shared_ptr<transport::Endpoint> endpoint, std::chrono::milliseconds grace,
                          Event finished) {
  co_await endpoint->drain(grace);
  finished.set();
}

// Drains the endpoint and the HTTP server concurrently, so that each has the full grace period.
Task<void> drain_all(std::shared_ptr<http::Server> server, std::shared_ptr<transport::Endpoint> endpoint,
                     std::chrono::milliseconds grace, Loop& loop, bool& done) {
  server->stop_accepting();
  co_await endpoint->begin_drain();
  Event finished;
  loop.spawn(drain_endpoint(endpoint, grace, finished));
  co_await server->drain();
  co_await finished.wait(loop);
  done = true;
}

}  // namespace

std::shared_ptr<SubscriptionQuota> make_subscription_quota(const HttpApplicationOptions& options) {
  return std::make_shared<SubscriptionQuota>(
      SubscriptionLimits{options.max_subscriptions, options.max_client_subscriptions});
}

std::shared_ptr<transport::Application> http_application(const Server& server,
                                                         HttpApplicationOptions options) {
  return std::make_shared<HttpApplication>(server.state(), std::move(options));
}

int serve_http(const Server& server, const std::string& address, HttpOptions options) {
  Loop loop;
  const auto listening = http::Server::listen(loop, address, options.server);
  if (!listening) {
    std::fprintf(stderr, "%s\n", listening.error().to_string().c_str());
    return 1;
  }
  const std::shared_ptr<http::Server> listener = *listening;
  const auto endpoint =
      transport::Endpoint::create(loop, http_application(server, options.application), options.endpoint);
  listener->route(options.path, endpoint->handler());
  if (!options.sse_path.empty()) {
    listener->route(options.sse_path, endpoint->sse_handler(options.messages_path));
    listener->route(options.messages_path, endpoint->messages_handler());
  }
  bool ending = false;
  bool done = false;
  const Result<Signals> signals = Signals::watch(loop, {SIGTERM, SIGINT}, [&](int) {
    const auto grace = options.server.drain_grace;
    if (!std::exchange(ending, true)) return loop.spawn(drain_all(listener, endpoint, grace, loop, done));
    done = true;  // the second signal ends the server at once
  });
  if (!signals) {
    std::fprintf(stderr, "%s\n", signals.error().to_string().c_str());
    return 1;
  }
  const std::string url = url_of(*listener, options);
  if (options.on_listening) {
    options.on_listening(url);
  } else {
    std::fprintf(stderr, "listening on %s\n", url.c_str());
  }
  loop.run_until([&] { return done; });
  endpoint->close();
  listener->close();
  return 0;
}

}  // namespace fairlead::mcp
