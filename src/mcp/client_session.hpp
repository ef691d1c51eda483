// ClientSession: the Client there is, on a stream connection. Private to the layer.
#pragma once

#include <map>
#include <set>

#include "fairlead/json/indexed.hpp"
#include "fairlead/json/schema.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/mcp/client.hpp"
#include "json/splice.hpp"
#include "mcp/client_cache.hpp"
#include "mcp/request_params.hpp"
#include "mcp/task_store.hpp"

namespace fairlead::mcp {

inline constexpr std::chrono::milliseconds kForEver = std::chrono::hours(24 * 365);

// A part of a message that stays alive with it; absent stays absent.
inline json::Raw sub(const json::Raw& whole, json::View part) {
  return part.absent() ? json::Raw() : json::Raw::trusted(whole.bytes().part(part.text()), whole.one_line());
}
// The error of a listing that is over one of its limits.
inline Error list_over(const std::string& method, std::string_view limit, std::size_t value) {
  return Error(ErrorKind::resource_exhausted,
               method + " has more than " + std::string(limit) + " (" + std::to_string(value) + ")");
}
// The error of questions of a server that are over max_message_members.
inline Error too_many_questions(std::size_t most) {
  return Error(ErrorKind::resource_exhausted,
               "the server asks more than max_message_members (" + std::to_string(most) + ") at once");
}
inline json::Raw empty_object() {
  return json::Raw::trusted(Bytes::constant("{}"), true);
}

// Params that name a resource, and where in its list to go on.
inline json::Raw uri_params(const std::string& uri, json::View cursor = json::View()) {
  json::Writer out;
  out.begin_object().key("uri").string(uri);
  if (!cursor.absent()) out.key("cursor").raw(cursor.text());
  out.end_object();
  return out.finish();
}

class ClientSession final : public Client {
 public:
  static std::shared_ptr<ClientSession> make(Loop& loop, ClientOptions options) {
    return std::shared_ptr<ClientSession>(new ClientSession(loop, std::move(options)));
  }
  // Finds out what the server speaks. The connection is closed when that fails.
  Task<Result<void>> settle_on(std::shared_ptr<Connection> connection);
  Task<Result<void>> connect_to(std::string uri);
  Task<Result<void>> connect_by(Connector connector);

  Revision revision() const noexcept override { return revision_; }
  json::View server_info() const noexcept override { return json::View(server_info_); }
  json::View capabilities() const noexcept override { return json::View(capabilities_); }
  std::string instructions() const override { return instructions_; }
  Task<Result<json::Raw>> request(std::string method, json::Raw params, ToolCallOptions options) override;
  Peer::Forward forward(const OutgoingRequest& request, CallOptions options) override;
  Result<void> notify(std::string_view method, const json::Raw& params) override {
    return peer_->post_notification(method, params);
  }
  Task<Result<std::vector<json::Raw>>> list(std::string method, std::string member) override;
  Task<Result<ToolResult>> call_tool(std::string name, json::Raw arguments, ToolCallOptions options) override;
  Task<Result<TaskInfo>> call_tool_as_task(std::string name, json::Raw arguments, ToolCallOptions options,
                                           std::optional<std::chrono::milliseconds> ttl) override;
  Task<Result<ToolResult>> task_result(TaskInfo task, ToolCallOptions options) override;
  Task<Result<std::uint64_t>> listen(ListenFilter filter) override;
  Task<Result<void>> unlisten(std::uint64_t subscription) override;
  Task<Result<std::vector<SkillEntry>>> skills() override;
  Task<Result<SkillFile>> read_skill_file(SkillEntry skill, std::string uri) override;
  Task<Result<void>> set_log_level(LoggingLevel level) override;
  Connection& connection() const noexcept override { return *connection_; }
  const std::optional<Error>& end_reason() const noexcept override { return peer_->end_reason(); }
  Task<void> close() override;

 private:
  ClientSession(Loop& loop, ClientOptions options) : loop_(loop), options_(std::move(options)) {
    if (options_.keep_tasks) tasks_ = std::make_shared<TaskStore>(TaskOptions());
    const bool shared = options_.eras && !options_.era_key.empty();
    eras_ = shared ? options_.eras : std::make_shared<EraCache>(options_.era_max_age);
    era_key_ = options_.era_key;
  }
  std::shared_ptr<ClientSession> self() {
    return std::static_pointer_cast<ClientSession>(shared_from_this());
  }

  // As this connection carries it.
  rpc::Rope encode_request(const OutgoingRequest& request, OutgoingRequest::Sending sending) const;

  // Connecting (client_connecting.cpp).
  struct Return {  // to a server that was lost
    Result<void> outcome;
    Event over;
  };
  Task<Result<void>> connect_now();
  Task<Result<void>> dial();
  Task<void> drop_connection();
  Task<Result<void>> come_back();
  static Task<void> return_to_server(std::shared_ptr<ClientSession> self, std::shared_ptr<Return> returning);
  // Requests are to wait until there is a connection again.
  bool away() const noexcept {
    return returns_ && !closing_ && (returning_ || peer_->end_reason().has_value());
  }

  // The handshake (client_handshake.cpp).
  struct Greeting;  // server/discover and initialize, under way at once
  // What probing a server showed.
  enum class Probe : std::uint8_t { modern, legacy, gone };
  Task<Result<void>> settle_era();
  Task<Result<void>> settle_probed();
  Task<Result<void>> settle_legacy(bool remembered);
  void attach(std::shared_ptr<Connection> connection);
  Task<Result<Probe>> probe();
  std::chrono::milliseconds handshake_left() const;
  Error handshake_timed_out() const { return Error::timeout("the handshake", options_.handshake_timeout); }
  Task<Result<json::Raw>> discover();
  Result<Probe> judge(const Error& error);
  Task<Result<json::Raw>> ask_initialize(json::Raw params);
  Task<Result<void>> initialize(Revision revision);
  std::string server_version() const;

  void write_capabilities(json::Writer& out, Revision revision) const;
  // What one round of a request adds to its params.
  struct Round {
    json::Raw answers;  // to the questions of the round before
    std::string state;  // of that round
    bool wants_progress = false;
    std::string_view token;  // of progress; empty: none
  };
  // request(), with the index of the result.
  Task<Result<json::Indexed>> ask(std::string method, json::Raw params, ToolCallOptions options);
  Task<Result<json::Indexed>> send(std::string method, CallOptions call_options);
  // A request on the connection there is. In the modern era perhaps several, each answering what the one
  // before asked. A tool call may yield a task.
  Task<Result<json::Indexed>> rounds(std::string method, RequestParams params, ToolCallOptions options);
  // The same, with what is between it and a result: tasks and URLs (client_tasks.cpp).
  Task<Result<json::Indexed>> request_now(std::string method, json::Raw params, ToolCallOptions options);
  Task<Result<void>> set_level_now(std::optional<std::chrono::milliseconds> timeout);
  Result<json::Indexed> stale_or(Result<json::Indexed> answer, std::string_view method,
                                 const json::Raw& params) const;
  // What the era adds to `_meta`.
  std::vector<std::pair<std::string_view, json::Raw>> envelope(std::string_view token) const;
  json::Splice enveloped(const RequestParams& params, const Round& round) const;
  json::Raw enveloped(const json::Raw& params) const;
  rpc::Rope encode_round(std::string_view id, std::string_view method, const RequestParams& params,
                         Round round) const;
  Task<Result<json::Raw>> answer_questions(json::Raw questions);
  Task<Answer> serve(Request request);
  Task<Result<json::Raw>> answer_one(std::string method, json::Raw params);
  Task<Result<json::Raw>> elicit(json::Raw params);
  void learn(const json::Raw& result);
  void on_notification(const Request& request);
  // The tools that are valid and within their limits; remembers what calls need to know of them.
  Task<std::vector<json::Raw>> check_tools(std::vector<json::Raw> tools);
  std::optional<std::string> tool_problem(json::View tool) const;
  const json::Schema* output_schema(const std::string& tool);

  Loop& loop_;
  ClientOptions options_;
  std::string uri_;       // where to connect to again
  Connector connector_;   // instead of an address
  bool returns_ = false;  // to a server that was lost
  bool closing_ = false;  // by us
  std::shared_ptr<EraCache> eras_;
  std::string era_key_;             // the server in eras_
  bool unprobed_ = false;           // this connection must not be probed
  bool probe_did_harm_ = false;     // a connection that is not probed may succeed where the last one failed
  Clock::time_point settled_by_{};  // when the handshake's clock runs out
  bool has_no_discover_ = false;    // the server says so
  std::shared_ptr<Greeting> greeting_;
  std::shared_ptr<Return> returning_;
  std::shared_ptr<Connection> connection_;
  std::shared_ptr<Peer> peer_;
  Revision revision_ = kNewest;
  json::Raw server_info_;
  json::Raw capabilities_;
  std::string instructions_;
  // Compiled when a result is first checked with it: a list may have many.
  struct OutputSchema {
    json::Raw text;
    std::optional<json::Schema> compiled;
    std::uint64_t last_used = 0;
  };
  using OutputSchemas = std::map<std::string, OutputSchema>;  // by tool
  OutputSchemas output_schemas_;
  std::size_t compiled_schema_bytes_ = 0;
  std::uint64_t schema_uses_ = 0;
  void make_room_for_schema(std::size_t bytes);
  void compile_soon(const std::string& tool);
  ClientCache cache_{options_.lists.max_uri_bytes};

  // Skills (client_skills.cpp).
  Task<Result<SkillFile>> read_main_file(SkillEntry skill);
  Task<Result<SkillFile>> read_checked(SkillEntry skill, std::string uri);
  // Those whose SKILL.md was what its entry says: the digest of the entry, by address.
  std::map<std::string, std::string> checked_skills_;

  // Tasks (client_tasks.cpp), at the server and kept here.
  bool server_takes_tasks() const;
  Task<bool> is_task_only(std::string tool);
  std::set<std::string> task_only_;  // tools that run as tasks only (2025-11-25)
  bool tools_seen_ = false;          // and whether we have looked
  std::optional<TaskInfo> task_in(const json::Indexed& answer) const;
  Task<Result<json::Indexed>> follow(TaskInfo task, ToolCallOptions options);
  Task<Result<void>> answer_task(TaskInfo task, std::set<std::string>& answered);
  Task<bool> go_to_urls(json::Raw data);
  // The result of a tool, checked with its output schema. Reading and validating a large one have a turn of
  // the loop each.
  Task<Result<ToolResult>> tool_result(std::string name, json::Indexed answer);
  Result<void> check_output(const std::string& name, const ToolResult& result);
  Answer keep_request(const Request& request);
  static Task<void> run_kept(std::shared_ptr<ClientSession> self, TaskPtr task, std::string method,
                             json::Raw params);
  std::shared_ptr<TaskStore> tasks_;      // asked of us
  std::set<std::string> completed_urls_;  // the last ones we were told of
  Event url_completed_;

  // Listening (client_listening.cpp).
  struct Subscription;
  Task<Result<void>> begin(std::shared_ptr<Subscription> subscription);
  Task<Result<void>> listen_modern(std::shared_ptr<Subscription> subscription);
  Task<Result<void>> listen_legacy(std::shared_ptr<Subscription> subscription);
  Task<void> listen_again();
  Task<Result<void>> unlisten_legacy(std::shared_ptr<Subscription> subscription);
  static Task<void> keep_listening(std::weak_ptr<ClientSession> weak, std::shared_ptr<Peer> peer,
                                   std::shared_ptr<Subscription> subscription, json::Raw params);
  static Task<void> renew(std::weak_ptr<ClientSession> weak, Loop* loop, std::shared_ptr<Peer> peer,
                          std::shared_ptr<Subscription> lost);
  std::shared_ptr<Subscription>* place_of(const std::shared_ptr<Subscription>& subscription);
  void tell_missed(const ListenFilter& filter);
  void tell(std::string_view method, const json::Raw& params);
  void on_acknowledged(const rpc::Message& notification);

  std::uint64_t last_subscription_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Subscription>> subscriptions_;
  std::map<std::string, std::shared_ptr<Subscription>, std::less<>>
      beginning_;                                  // by request id; not acknowledged yet
  std::map<std::string, std::size_t> subscribed_;  // legacy era: how often each resource is wanted
};

}  // namespace fairlead::mcp
