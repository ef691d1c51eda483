// ClientSession: the Client there is, on a stream connection. Private to the layer.
#pragma once

#include <map>

#include "fairlead/json/schema.hpp"
#include "fairlead/mcp/client.hpp"
#include "mcp/client_cache.hpp"

namespace fairlead::mcp {

// A part of a message that stays alive with it; absent stays absent.
inline json::Raw sub(const json::Raw& whole, json::View part) {
  return part.absent() ? json::Raw() : json::Raw::trusted(whole.bytes().part(part.text()), whole.one_line());
}
inline json::Raw empty_object() {
  return json::Raw::trusted(Bytes::constant("{}"), true);
}

class ClientSession final : public Client {
 public:
  static std::shared_ptr<ClientSession> start(std::shared_ptr<Connection> connection, ClientOptions options);

  // What probing a server showed.
  enum class Probe : std::uint8_t { modern, legacy, gone };
  Task<Result<Probe>> probe();
  Task<Result<void>> initialize(Revision revision);

  Revision revision() const noexcept override { return revision_; }
  json::View server_info() const noexcept override { return json::View(server_info_); }
  json::View capabilities() const noexcept override { return json::View(capabilities_); }
  std::string instructions() const override { return instructions_; }
  Task<Result<json::Raw>> request(std::string method, json::Raw params, ToolCallOptions options) override;
  Task<Result<std::vector<json::Raw>>> list(std::string method, std::string member) override;
  Task<Result<ToolResult>> call_tool(std::string name, json::Raw arguments, ToolCallOptions options) override;
  Task<Result<std::uint64_t>> listen(ListenFilter filter) override;
  Task<Result<void>> unlisten(std::uint64_t subscription) override;
  Task<Result<void>> set_log_level(LoggingLevel level) override;
  Connection& connection() const noexcept override { return *connection_; }
  Task<void> close() override;

 private:
  explicit ClientSession(ClientOptions options) : options_(std::move(options)) {}
  std::shared_ptr<ClientSession> self() {
    return std::static_pointer_cast<ClientSession>(shared_from_this());
  }

  void write_capabilities(json::Writer& out, Revision revision) const;
  Task<Result<json::Raw>> send(std::string method, json::Raw params, CallOptions call_options);
  json::Raw enveloped(const json::Raw& params, bool wants_progress, const json::Raw& answers,
                      const std::string& state) const;
  Task<Result<json::Raw>> answer_questions(json::Raw questions);
  Task<Answer> serve(Request request);
  Task<Result<json::Raw>> answer_one(std::string method, json::Raw params);
  Task<Result<json::Raw>> elicit(json::Raw params);
  void learn(const json::Raw& result);
  void on_notification(const Request& request);
  std::vector<json::Raw> without_invalid(std::vector<json::Raw> tools) const;
  void remember_schemas(const std::vector<json::Raw>& tools);

  ClientOptions options_;
  std::shared_ptr<Connection> connection_;
  std::shared_ptr<Peer> peer_;
  Revision revision_ = kNewest;
  json::Raw server_info_;
  json::Raw capabilities_;
  std::string instructions_;
  std::map<std::string, json::Schema> output_schemas_;
  ClientCache cache_;

  // Listening (client_listening.cpp).
  struct Subscription;
  Task<Result<void>> listen_modern(std::shared_ptr<Subscription> subscription, ListenFilter filter);
  Task<Result<void>> listen_legacy(std::shared_ptr<Subscription> subscription, ListenFilter filter);
  Task<Result<void>> unlisten_legacy(std::shared_ptr<Subscription> subscription);
  static Task<void> keep_listening(std::shared_ptr<Peer> peer, std::shared_ptr<Subscription> subscription,
                                   json::Raw params);
  void on_acknowledged(json::View params);

  std::uint64_t last_subscription_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Subscription>> subscriptions_;
  std::vector<std::shared_ptr<Subscription>> beginning_;  // not acknowledged yet
  std::map<std::string, std::size_t> subscribed_;         // legacy era: how often each resource is wanted
};

}  // namespace fairlead::mcp
