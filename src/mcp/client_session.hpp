// ClientSession: the implementation of Client, on any Connection. Private to the layer.
#pragma once

#include <map>
#include <set>

#include "fairlead/json/indexed_raw.hpp"
#include "fairlead/json/schema.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/mcp/client.hpp"
#include "json/splice.hpp"
#include "mcp/client_cache.hpp"
#include "mcp/request_params.hpp"
#include "mcp/task_store.hpp"

namespace fairlead::mcp {

// For calls without a timeout: a year.
inline constexpr std::chrono::milliseconds kNoTimeout = std::chrono::hours(24 * 365);

// Returns `part` of `whole`, sharing its bytes; absent if `part` is absent.
inline json::Raw raw_part(const json::Raw& whole, json::View part) {
  return part.absent() ? json::Raw()
                       : json::Raw::trusted(whole.bytes().part(part.text()), whole.is_one_line());
}
// Returns the error for a list that exceeds the limit named `limit`.
inline Error list_limit_error(const std::string& method, std::string_view limit, std::size_t value) {
  return Error(ErrorKind::resource_exhausted,
               method + " has more than " + std::string(limit) + " (" + std::to_string(value) + ")");
}
// Returns the error for a result with more input requests than max_message_members.
inline Error too_many_input_requests_error(std::size_t limit) {
  return Error(
      ErrorKind::resource_exhausted,
      "the server sent more input requests than max_message_members (" + std::to_string(limit) + ") at once");
}
inline json::Raw empty_object() {
  return json::Raw::trusted(Bytes::constant("{}"), true);
}

// Returns params with a resource URI and, if present, the cursor of the next page.
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
  // Negotiates the era and the revision on `connection`. Closes it if that fails.
  Task<Result<void>> handshake_on(std::shared_ptr<Connection> connection);
  Task<Result<void>> connect_to(std::string uri);
  Task<Result<void>> connect_with(Connector connector);

  Revision revision() const noexcept override { return revision_; }
  json::View server_info() const noexcept override { return json::View(server_info_); }
  json::View server_capabilities() const noexcept override { return json::View(server_capabilities_); }
  std::string instructions() const override { return server_instructions_; }
  Task<Result<json::Raw>> request(std::string method, json::Raw params, ClientCallOptions options) override;
  Peer::Forward forward(const ForwardedRequest& request, CallOptions options) override;
  rpc::Rope encode_forwarded(const ForwardedRequest& request,
                             ForwardedRequest::EncodeOptions options) const override;
  const std::shared_ptr<Peer>& peer() const noexcept override { return peer_; }
  Result<void> notify(std::string_view method, const json::Raw& params) override {
    return peer_->post_notification(method, params);
  }
  Task<Result<std::vector<json::Raw>>> list(std::string method, std::string member) override;
  Task<Result<ToolResult>> call_tool(std::string name, json::Raw arguments,
                                     ClientCallOptions options) override;
  Task<Result<TaskInfo>> call_tool_as_task(std::string name, json::Raw arguments, ClientCallOptions options,
                                           std::optional<std::chrono::milliseconds> ttl) override;
  Task<Result<ToolResult>> task_result(TaskInfo task, ClientCallOptions options) override;
  Task<Result<std::uint64_t>> subscribe(SubscriptionFilter filter) override;
  Task<Result<void>> unsubscribe(std::uint64_t subscription_id) override;
  Task<Result<std::vector<SkillEntry>>> skills() override;
  Task<Result<SkillFile>> read_skill_file(SkillEntry skill, std::string uri) override;
  Task<Result<void>> set_log_level(LoggingLevel level) override;
  Connection& connection() const noexcept override { return *connection_; }
  const std::optional<Error>& end_reason() const noexcept override { return peer_->end_reason(); }
  Task<void> close() override;

 private:
  ClientSession(Loop& loop, ClientOptions options) : loop_(loop), options_(std::move(options)) {
    if (options_.serve_tasks) task_store_ = std::make_shared<TaskStore>(TaskOptions());
    const bool shared = options_.era_cache && !options_.era_key.empty();
    era_cache_ = shared ? options_.era_cache : std::make_shared<EraCache>(options_.era_max_age);
    era_cache_key_ = options_.era_key;
  }
  std::shared_ptr<ClientSession> self() {
    return std::static_pointer_cast<ClientSession>(shared_from_this());
  }

  // Connecting (client_connecting.cpp).
  struct ReconnectAttempt {
    Result<void> outcome;
    Event done;
  };
  // Connects. If the handshake fails and the probe may be the cause, connects once more without a probe.
  Task<Result<void>> connect_retrying_without_probe();
  // Connects to uri_, or with connector_ if it is set, and does the handshake.
  Task<Result<void>> connect_once();
  Task<void> close_connection();
  Task<Result<void>> reconnect();
  static Task<void> run_reconnect(std::shared_ptr<ClientSession> self,
                                  std::shared_ptr<ReconnectAttempt> attempt);
  // Whether requests must call reconnect() first, or wait for the attempt in progress.
  bool needs_reconnect() const noexcept {
    return may_reconnect_ && !closing_ && (reconnect_attempt_ || peer_->end_reason().has_value());
  }

  // The handshake (client_handshake.cpp).
  struct Handshake;  // the calls of server/discover and initialize, which may be in flight at the same time
  // The result of the probe (server/discover); `gone` means that the server closed the connection or exited.
  enum class ProbeResult : std::uint8_t { modern, legacy, gone };
  Task<Result<void>> negotiate_era();
  // Probes the server. If it is legacy, also sends initialize.
  Task<Result<void>> probe_and_initialize();
  // `cached_as_legacy`: the server was not probed, because era_cache_ has an entry for it.
  Task<Result<void>> initialize_and_update_era_cache(bool cached_as_legacy);
  void start_peer(std::shared_ptr<Connection> connection);
  Task<Result<ProbeResult>> probe();
  std::chrono::milliseconds handshake_time_left() const;
  Error handshake_timeout_error() const {
    return Error::timeout("the handshake", options_.handshake_timeout);
  }
  Task<Result<json::Raw>> discover();
  Result<ProbeResult> classify_probe_error(const Error& error);
  Task<Result<json::Raw>> call_initialize(json::Raw params);
  Task<Result<void>> initialize(Revision revision);
  std::string server_name_and_version() const;

  void write_capabilities(json::Writer& out, Revision revision) const;
  // The members that the client adds to the params of a request in one round. A round is one call of several
  // for the same request, each with the input responses so far.
  struct Round {
    json::Raw input_responses;  // the responses to the input requests of the previous round
    std::string request_state;  // the requestState that the previous round returned
    bool wants_progress = false;
    std::string_view token;  // progress token; empty if none
  };
  // Like request(), but returns the result with the index of its members.
  Task<Result<json::IndexedRaw>> request_indexed(std::string method, json::Raw params,
                                                 ClientCallOptions options);
  // The same for params that were read. Returns a cached result, or reconnects if necessary and sends the
  // request. REQUIRES: the caller keeps this object alive.
  Task<Result<json::IndexedRaw>> serve_request(std::string method, RequestParams params,
                                               ClientCallOptions options);
  Task<Result<json::IndexedRaw>> reconnect_and_request(std::string method, RequestParams params,
                                                       ClientCallOptions options);
  // Returns the result or the error that a response contains.
  Result<json::IndexedRaw> result_of(std::string_view method, const Result<rpc::Message>& response) const;
  // Sends a request on the current connection. In the modern era, while the server returns input requests,
  // sends the request again with the input responses. The result of a tool call may be a task. REQUIRES: the
  // arguments outlive the task.
  Task<Result<json::IndexedRaw>> run_rounds(std::string_view method, const RequestParams& params,
                                            const ClientCallOptions& options);
  // Like run_rounds(), but if the result is a task, polls the task and returns its result. Also handles URL
  // elicitations that the server requires before it serves the request (client_tasks.cpp).
  Task<Result<json::IndexedRaw>> request_to_completion(std::string method, RequestParams params,
                                                       ClientCallOptions options);
  Task<Result<void>> send_log_level(std::optional<std::chrono::milliseconds> timeout);
  // Returns `response`, which is an error, or if stale_on_error allows it the cached result, even if that has
  // expired.
  Result<json::IndexedRaw> stale_result_or(Result<json::IndexedRaw> response, std::string_view method,
                                           const json::Raw& params) const;
  // Returns the members that the client adds to `_meta`: the envelope (modern era) and the progress token.
  std::vector<std::pair<std::string_view, json::Raw>> envelope_members(std::string_view token) const;
  // Returns params with the envelope added; the first function also adds the members of `round`.
  json::Splice with_round_members(const RequestParams& params, const Round& round) const;
  json::Raw with_envelope(const json::Raw& params) const;
  rpc::Rope encode_round(std::string_view id, std::string_view method, const RequestParams& params,
                         const Round& round) const;
  // Calls the handler of each input request and returns the input responses by key.
  Task<Result<json::Raw>> answer_input_requests(json::Raw input_requests);
  // Handles a request or a notification of the server.
  Task<Answer> handle_message(Request request);
  // Calls the handler in ClientHandlers for a request or an input request of the server and returns its
  // result.
  Task<Result<json::Raw>> call_request_handler(std::string method, json::Raw params);
  Task<Result<json::Raw>> handle_elicitation(json::Raw params);
  // Stores the server's info, capabilities and instructions from the result of initialize or server/discover.
  void store_server_description(const json::Raw& result);
  void handle_notification(const Request& request);
  // Returns those of `tools` that are valid and within the limits, and stores their output schemas and task
  // requirements for later calls.
  Task<std::vector<json::Raw>> filter_and_store_tools(std::vector<json::Raw> tools);
  // Returns why a tool is omitted from the list; nullopt if it is valid and within the limits.
  std::optional<std::string> tool_problem(json::View tool) const;
  // Returns the output schema of a tool, and compiles it if necessary. Null if the tool has no output schema
  // or an unusable one.
  const json::Schema* compiled_output_schema(const std::string& tool);

  Loop& loop_;
  ClientOptions options_;
  std::string uri_;
  Connector connector_;         // used instead of uri_ if set
  bool may_reconnect_ = false;  // whether ClientOptions::reconnect allows a reconnect to uri_
  bool closing_ = false;        // close() was called
  std::shared_ptr<EraCache> era_cache_;
  std::string era_cache_key_;         // the server's key in era_cache_
  bool skip_probe_ = false;           // the next handshake sends initialize without a probe
  bool retry_without_probe_ = false;  // the handshake failed, and the probe may be the cause
  Clock::time_point handshake_deadline_{};
  bool lacks_discover_ = false;  // the server responded "method not found" to server/discover
  std::shared_ptr<Handshake> handshake_;
  std::shared_ptr<ReconnectAttempt> reconnect_attempt_;
  std::shared_ptr<Connection> connection_;
  std::shared_ptr<Peer> peer_;
  Revision revision_ = kNewestRevision;
  json::Raw server_info_;
  json::Raw server_capabilities_;
  bool server_declares_core_tasks_ = false;
  std::string server_instructions_;
  // The output schema of a tool. It is compiled when it is first used, because a list may have many tools.
  struct OutputSchema {
    json::Raw schema_text;
    std::optional<json::Schema> compiled;
    std::uint64_t last_used = 0;  // the value of schema_use_count_ when it was last used
  };
  using OutputSchemas = std::map<std::string, OutputSchema>;  // by name of the tool
  OutputSchemas output_schemas_;
  std::size_t compiled_schema_bytes_ = 0;  // length of the texts of all compiled schemas
  std::uint64_t schema_use_count_ = 0;
  // Evicts the least recently used compiled schemas to make room for one whose text has `bytes`.
  void evict_compiled_schemas(std::size_t bytes);
  // Compiles the output schema of a tool in a later turn.
  void schedule_schema_compilation(const std::string& tool);
  ClientCache cache_{options_.list_limits.max_uri_bytes};

  // Skills (client_skills.cpp).
  // Reads SKILL.md, and adds the skill to verified_skills_ if SKILL.md matches the entry.
  Task<Result<SkillFile>> read_and_verify_skill_md(SkillEntry skill);
  // Reads a file. Fails if it does not match the entry of its skill.
  Task<Result<SkillFile>> read_and_verify_file(SkillEntry skill, std::string uri);
  // The skills whose SKILL.md has been verified. Maps the URI of SKILL.md to the digest of the text of the
  // skill's entry, so that a changed entry counts as not verified.
  std::map<std::string, std::string> verified_skills_;

  // Tasks (client_tasks.cpp): tasks of the server, and tasks that this client runs for the server.
  // Whether the server can run tool calls as tasks that the client requests (revision 2025-11-25).
  bool server_supports_core_tasks() const {
    return revision_ == Revision::r2025_11_25 && server_declares_core_tasks_;
  }
  // Returns whether calls of the tool must run as tasks. May request tools/list.
  Task<bool> requires_task(std::string tool);
  std::set<std::string> task_required_tools_;  // revision 2025-11-25: tools with taskSupport `required`
  // The client has requested tools/list to fill task_required_tools_. Not repeated if the request failed.
  bool tools_list_requested_ = false;
  // Returns the task that a response to tools/call contains; nullopt if it contains none.
  std::optional<TaskInfo> task_from(const json::IndexedRaw& response) const;
  // Polls a task until it has ended and returns its result.
  Task<Result<json::IndexedRaw>> await_task(TaskInfo task, ClientCallOptions options);
  // Answers the input requests whose keys are not in `answered_keys`, and adds their keys.
  Task<Result<void>> answer_task_input_requests(TaskInfo task, std::set<std::string>& answered_keys);
  // Calls elicit_url for each elicitation in the data of a "URL elicitation required" error. Returns whether
  // the user accepted all of them.
  Task<bool> elicit_urls(json::Raw data);
  // Reads the result of a tool and validates it against the output schema. Reading and validating a large
  // result take separate turns of the loop.
  Task<Result<ToolResult>> read_tool_result(std::string name, json::IndexedRaw response);
  // The same for a small result, at once.
  Result<ToolResult> read_small_tool_result(const std::string& name, const json::IndexedRaw& response);
  Result<void> validate_output(const std::string& name, const ToolResult& result);
  // Creates and starts a task that serves a request of the server. Returns the answer that contains the task.
  Answer start_task_for(const Request& request);
  static Task<void> run_task(std::shared_ptr<ClientSession> self, TaskPtr task, std::string method,
                             json::Raw params);
  std::shared_ptr<TaskStore> task_store_;  // tasks that this client runs; null unless serve_tasks
  // The ids of the URL elicitations that the server has reported as complete. All are erased when there are
  // 1,000.
  std::set<std::string> completed_elicitation_ids_;
  Event elicitation_completed_;

  // Subscriptions (client_subscriptions.cpp).
  struct Subscription;
  // Requests a subscription from the server, as the era requires, and waits until it is in effect.
  Task<Result<void>> subscribe_at_server(std::shared_ptr<Subscription> subscription);
  Task<Result<void>> subscribe_modern(std::shared_ptr<Subscription> subscription);
  Task<Result<void>> subscribe_legacy(std::shared_ptr<Subscription> subscription);
  // Requests all subscriptions again, on a new connection.
  Task<void> restore_subscriptions();
  Task<Result<void>> unsubscribe_legacy(std::shared_ptr<Subscription> subscription);
  // Sends subscriptions/listen and waits until the request has ended.
  static Task<void> run_listen_request(std::weak_ptr<ClientSession> weak, std::shared_ptr<Peer> peer,
                                       std::shared_ptr<Subscription> subscription, json::Raw params);
  // Requests a subscription again after the server has ended it, with backoff.
  static Task<void> renew_subscription(std::weak_ptr<ClientSession> weak, Loop* loop,
                                       std::shared_ptr<Peer> peer, std::shared_ptr<Subscription> ended);
  // Returns the element of subscriptions_ that is `subscription`; nullptr if that was removed or replaced.
  std::shared_ptr<Subscription>* find_subscription_entry(const std::shared_ptr<Subscription>& subscription);
  // Reports every change that the filter includes, since the client does not know which ones it has missed.
  void notify_all_changes(const SubscriptionFilter& filter);
  // Erases the cached results that the notification invalidates, and calls ClientHandlers::on_notification.
  void dispatch_notification(std::string_view method, const json::Raw& params);
  // Handles notifications/subscriptions/acknowledged.
  void handle_acknowledgement(const rpc::Message& notification);

  std::uint64_t last_subscription_id_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Subscription>> subscriptions_;
  // Modern era: the subscriptions that the server has not acknowledged, by the id of their request.
  std::map<std::string, std::shared_ptr<Subscription>, std::less<>> unacknowledged_;
  std::map<std::string, std::size_t> subscription_counts_by_uri_;  // legacy era
};

}  // namespace fairlead::mcp
