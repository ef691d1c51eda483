// AdminTest: a gateway with a registry in an SQLite file and the admin API, on a loop of its own, and a
// client.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../http/raw_client.hpp"
#include "admin/admin.hpp"
#include "admin/authenticator.hpp"
#include "admin/registry_sync.hpp"
#include "fairlead/gateway/gateway_server.hpp"
#include "fairlead/json/schema.hpp"
#include "fairlead/json/view.hpp"
#include "registry/registry.hpp"
#include "registry/rules.hpp"
#include "support/support.hpp"

namespace fairlead::admin::test {

using fairlead::test::RawClient;

inline constexpr std::string_view kAdminToken = "administrator-token-of-the-tests";

struct Answer {
  int status = 0;
  std::string head;
  std::string body;

  json::View json() const { return json::View(body); }
  std::string text(std::string_view member) const { return json()[member].as_string().value_or(""); }
  std::string code() const { return text("code"); }
  // Returns the value of a header field, or an empty string.
  std::string header(const std::string& name) const {
    const std::size_t begin = head.find("\r\n" + name + ": ");
    if (begin == std::string::npos) return {};
    const std::size_t value = begin + name.size() + 4;
    return head.substr(value, head.find("\r\n", value) - value);
  }
};

class AdminTest : public testing::Test {
 protected:
  void SetUp() override { start(); }
  void TearDown() override { stop(); }

  void start() {
    thread_ = std::make_unique<fairlead::test::LoopThread>();
    registry_ = *thread_->loop().block_on(registry::Registry::open(
        thread_->loop(), "sqlite:" + (directory_ / "registry.db"), registry_options_));
    thread_->run([&] { listen(); });
  }
  void stop() {
    if (!thread_) return;
    thread_->run([&] {
      admin_->close();
      server_->stop();
    });
    EXPECT_TRUE(fairlead::test::wait_until(
        [&] { return thread_->run([&] { return server_->stopped().is_set(); }); }));
    thread_->run([&] { sync_->stop(); });
    thread_->loop().block_on(registry_->close());
    thread_->run([&] {
      sync_.reset();
      admin_.reset();
      server_.reset();
      registry_.reset();
    });
    thread_.reset();
  }

  // Sends a request with the administrator's token, or with `token`; without one if it is empty.
  Answer request(const std::string& method, const std::string& path, const std::string& body = {},
                 std::vector<std::string> headers = {}, std::string_view token = kAdminToken) {
    RawClient client(address_);
    client.send(request_text(method, path, body, std::move(headers), token));
    const RawClient::Response response = client.read_response(method == "HEAD");
    return Answer{response.status, response.head, response.body};
  }
  static std::string request_text(const std::string& method, const std::string& path, const std::string& body,
                                  std::vector<std::string> headers, std::string_view token) {
    std::string text = method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n";
    if (!token.empty()) headers.push_back("Authorization: Bearer " + std::string(token));
    const bool typed =
        std::ranges::any_of(headers, [](const auto& line) { return line.starts_with("Content-Type"); });
    if (!body.empty() && !typed) headers.push_back("Content-Type: application/json");
    if (!body.empty()) headers.push_back("Content-Length: " + std::to_string(body.size()));
    for (const std::string& line : headers) text += line + "\r\n";
    return text + "\r\n" + body;
  }
  Answer get(const std::string& path, std::string_view token = kAdminToken) {
    return request("GET", path, {}, {}, token);
  }
  Answer post(const std::string& path, const std::string& body, std::string_view token = kAdminToken) {
    return request("POST", path, body, {}, token);
  }

  // Creates a row and returns its id.
  std::string create(const std::string& path, const std::string& body) {
    const Answer answer = post(path, body);
    EXPECT_EQ(answer.status, 201) << answer.body;
    return answer.text("id");
  }
  static std::string server_body(const std::string& name, const std::string& mode = "serve") {
    return R"({"name":")" + name + R"(","description":"A server","domain":"tests","transport":"stdio",)" +
           R"("config":{"transport":"stdio","command":")" + std::string(FAIRLEAD_FIXTURE_DIR) +
           R"(/mcp_server","args":[")" + mode + R"("]}})";
  }
  // Creates a user with a token, and returns the token.
  std::string create_user(const std::string& name, const std::string& role = "user",
                          const std::string& scopes = "[]") {
    const std::string id = create("/users", R"({"name":")" + name + R"(","role":")" + role + R"("})");
    const Answer token = post("/tokens", R"({"user":")" + id + R"(","scopes":)" + scopes + "}");
    EXPECT_EQ(token.status, 201) << token.body;
    return token.text("token");
  }

  template <class Work>
  auto on_loop(Work work) {
    return thread_->run(std::move(work));
  }

  AdminOptions options_;
  registry::RegistryOptions registry_options_;
  AuthMode mode_ = AuthMode::token;
  fairlead::test::TempDir directory_;
  std::unique_ptr<fairlead::test::LoopThread> thread_;
  std::shared_ptr<registry::Registry> registry_;
  std::shared_ptr<gateway::GatewayServer> server_;
  std::shared_ptr<Admin> admin_;
  std::shared_ptr<RegistrySync> sync_;
  std::string address_;

 private:
  void listen() {
    gateway::Config config;
    config.listen = "127.0.0.1:0";
    config.authenticated = true;
    gateway::GatewayServerOptions options;
    AuthOptions auth;
    auth.admin_token = kAdminToken;
    auth.mode = [this] { return mode_; };
    options.authenticator = registry_authenticator(registry_, std::move(auth));
    options.rejection_response = Admin::rejection_response;
    options.add_routes = [this](http::Server& server, gateway::Gateway& gateway) {
      options_.lists_stored = [this](std::string id) {
        return RegistrySync::lists_stored(sync_, std::move(id));
      };
      if (!options_.sessions) options_.sessions = [this] { return server_->sessions(); };
      if (!options_.end_session)
        options_.end_session = [this](const std::string& id) { return server_->end_session(id); };
      if (!options_.end_sessions)
        options_.end_sessions = [this](const auto& selected) { server_->end_sessions(selected); };
      admin_ = Admin::create(thread_->loop(), registry_, gateway, options_);
      admin_->add_routes(server);
      address_ = server.address();
    };
    server_ = *gateway::GatewayServer::listen(thread_->loop(), std::move(config), std::move(options));
    const RegistrySync::ApplySettings ignore = [](const registry::Configuration&) {};
    sync_ = RegistrySync::start(thread_->loop(), registry_, server_->gateway(), ignore, Log());
  }
};

}  // namespace fairlead::admin::test
