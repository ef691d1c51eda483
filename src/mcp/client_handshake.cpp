// ClientSession: the handshake, which detects the era of the server and negotiates the revision. The probe is
// a server/discover request, which only modern servers answer with a result that has `supportedVersions`.
#include "fairlead/rpc/codes.hpp"
#include "json/members.hpp"
#include "mcp/client_session.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::mcp {

// The calls of a handshake. The response to server/discover may arrive while initialize is in flight.
struct ClientSession::Handshake {
  struct PendingCall {
    std::optional<Result<json::Raw>> response;
    std::stop_source stop;
  };
  std::shared_ptr<PendingCall> discover = std::make_shared<PendingCall>();
  Event response_arrived;  // set when the next response arrives, then replaced by a new event

  // Sends a request and stores the response in `call`. The stored response is the error `resource_exhausted`
  // if the result has more than `limit` bytes. Spawned on the loop.
  static Task<void> send(std::shared_ptr<Peer> peer, std::shared_ptr<Handshake> handshake,
                         std::shared_ptr<PendingCall> call, std::string method, json::Raw params,
                         CallOptions options, std::size_t limit) {
    Result<json::Raw> response = co_await peer->call(method, std::move(params), std::move(options));
    if (response && response->text().size() > limit)
      response = Error(ErrorKind::resource_exhausted, "the response to `" + method +
                                                          "` is larger than max_handshake_bytes (" +
                                                          std::to_string(limit) + ")");
    call->response = std::move(response);
    std::exchange(handshake->response_arrived, Event()).set();
  }
};

namespace {

bool contains_newest_revision(json::View versions) {
  bool found = false;
  versions.each_element([&](json::View version) {
    found = found || version.as_string() == to_string(kNewestRevision);
    return !found;
  });
  return found;
}

bool contains_legacy_revision(json::View versions) {
  bool found = false;
  versions.each_element([&](json::View version) {
    const auto known = revision_named(version.as_string().value_or(""));
    found = found || (known && !is_modern(*known));
    return !found;
  });
  return found;
}

// Returns whether modern servers reject initialize with this error.
bool is_modern_rejection(const Error& error) {
  const std::int64_t code = error.detail().rpc_code.value_or(0);
  return error.kind() == ErrorKind::remote && (code == rpc::kMethodNotFound || code == kUnsupportedVersion);
}

// Returns whether the server rejected initialize. A timeout or the end of the connection is not a rejection.
bool is_initialize_rejection(const Error& error) {
  return error.kind() == ErrorKind::remote ||
         (error.kind() == ErrorKind::http_status && error.detail().http_status == 400);
}

// Returns whether the server itself has sent the response: a result or an error.
bool server_responded(const std::optional<Result<json::Raw>>& response) {
  return response && (*response || response->error().kind() == ErrorKind::remote);
}

// Returns whether the child process of the connection ended before it read anything. Then no message was the
// cause, and starting it again would only repeat the failure.
bool exited_without_reading(const Connection& connection) {
  const std::optional<ChildInfo> child = connection.child();
  return child && child->exited_without_reading;
}

// Returns whether this is a response to server/discover that declares the newest revision as supported.
bool is_modern_discover_response(const std::optional<Result<json::Raw>>& response) {
  return response && *response && contains_newest_revision(json::View(**response)["supportedVersions"]);
}

}  // namespace

Task<Result<void>> ClientSession::negotiate_era() {
  retry_without_probe_ = false;
  lacks_discover_ = false;
  handshake_ = std::make_shared<Handshake>();
  const bool pinned_to_legacy = options_.pinned_revision && !is_modern(*options_.pinned_revision);
  const bool cached_as_legacy =
      !skip_probe_ && !options_.pinned_revision && era_cache_->is_legacy(era_cache_key_);
  if (skip_probe_ || pinned_to_legacy ||
      (!options_.pinned_revision && (cached_as_legacy || !options_.probe))) {
    Result<void> negotiated = co_await initialize_and_update_era_cache(cached_as_legacy);
    const bool answered = !negotiated && !end_reason() && negotiated.error().kind() != ErrorKind::timeout;
    if (!cached_as_legacy || !answered) co_return negotiated;
    era_cache_->erase(era_cache_key_);  // the server seems no longer to be legacy, so it is probed below
  } else if (!options_.probe) {
    revision_ = kNewestRevision;
    co_return Result<void>();
  }
  Result<void> negotiated = co_await probe_and_initialize();
  if (cached_as_legacy) retry_without_probe_ = false;  // it was already tried without a probe
  co_return negotiated;
}

Task<Result<void>> ClientSession::probe_and_initialize() {
  const Result<ProbeResult> probe_result = co_await probe();
  if (!probe_result) co_return probe_result.error();
  if (*probe_result == ProbeResult::modern) co_return Result<void>();
  if (*probe_result == ProbeResult::gone && options_.pinned_revision && end_reason()) co_return *end_reason();
  if (*probe_result == ProbeResult::gone && end_reason() && exited_without_reading(*connection_))
    co_return *end_reason();
  retry_without_probe_ = *probe_result == ProbeResult::gone && !options_.pinned_revision;
  if (*probe_result != ProbeResult::legacy || options_.pinned_revision)
    co_return Error(ErrorKind::connection_failed,
                    "the server does not support revision " + std::string(to_string(kNewestRevision)));
  Result<void> negotiated = co_await initialize_and_update_era_cache(false);
  if (negotiated) co_return negotiated;
  // A modern server need not implement server/discover, and no modern server implements initialize. So a
  // server that implements neither is modern.
  if (lacks_discover_ && is_modern_rejection(negotiated.error())) {
    revision_ = kNewestRevision;
    co_return Result<void>();
  }
  if (is_modern_rejection(negotiated.error())) {
    // A modern server that starts slowly may not have answered the first probe in time.
    const Result<ProbeResult> again = co_await probe();
    if (again && *again == ProbeResult::modern) co_return Result<void>();
  }
  // A server that starts slowly may have read the probe late and exited because of the probe.
  const bool exited = end_reason() && !server_responded(handshake_->discover->response) &&
                      !exited_without_reading(*connection_);
  retry_without_probe_ = is_initialize_rejection(negotiated.error()) || exited;
  co_return negotiated;
}

Task<Result<void>> ClientSession::initialize_and_update_era_cache(bool cached_as_legacy) {
  Result<void> initialized = co_await initialize(options_.pinned_revision.value_or(kNewestLegacyRevision));
  if (!initialized || is_modern(revision_)) co_return initialized;
  handshake_->discover->stop.request_stop();
  if (cached_as_legacy) {
    era_cache_->erase_if_version_changed(era_cache_key_, server_name_and_version());
  } else if (!options_.pinned_revision && options_.probe) {
    era_cache_->store_legacy(era_cache_key_, server_name_and_version());
  }
  co_return initialized;
}

std::string ClientSession::server_name_and_version() const {
  const json::View info = server_info();
  return info["name"].as_string().value_or("") + " " + info["version"].as_string().value_or("");
}

// Sends server/discover. The server is modern only if it responds with a list of modern revisions: legacy
// servers respond with arbitrary error codes, do not respond, or exit.
Task<Result<ClientSession::ProbeResult>> ClientSession::probe() {
  revision_ = kNewestRevision;
  Result<json::Raw> response = co_await discover();
  // Retry once if the server rejects a revision that it declares as supported.
  if (!response && response.error().detail().rpc_code == kUnsupportedVersion &&
      contains_newest_revision(json::View(response.error().detail().rpc_data)["supported"])) {
    response = co_await discover();
  }
  if (!response) co_return classify_probe_error(response.error());
  const json::View versions = json::View(*response)["supportedVersions"];
  // Some legacy servers return a result for any method.
  if (!versions.is(json::Type::array)) co_return ProbeResult::legacy;
  if (!contains_newest_revision(versions)) {
    // A server of the Go SDK with sessions over HTTP implements server/discover but supports only legacy
    // revisions.
    if (contains_legacy_revision(versions)) co_return ProbeResult::legacy;
    co_return Error(ErrorKind::connection_failed,
                    "the server supports no revision that this client supports");
  }
  store_server_description(*response);
  co_return ProbeResult::modern;
}

std::chrono::milliseconds ClientSession::handshake_time_left() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(handshake_deadline_ - Clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

// Sends server/discover and returns its response. Fails with `timeout` after probe_timeout, but does not
// cancel the request: its response may still arrive during initialize.
Task<Result<json::Raw>> ClientSession::discover() {
  const std::shared_ptr<Handshake> handshake = handshake_;
  handshake->discover->stop.request_stop();  // cancels an earlier server/discover
  const auto call = std::make_shared<Handshake::PendingCall>();
  handshake->discover = call;
  CallOptions call_options(handshake_time_left());
  call_options.stop = call->stop.get_token();
  loop_.spawn(Handshake::send(peer_, handshake, call, "server/discover", with_envelope(json::Raw()),
                              std::move(call_options), options_.list_limits.max_handshake_bytes));
  const auto probe_timeout = std::min(options_.probe_timeout, options_.handshake_timeout / 2);
  // Over HTTP every server responds, even one that does not implement the method.
  const bool wait_for_handshake_timeout = connection_->has_stream_per_request() || options_.pinned_revision;
  const Clock::time_point until =
      wait_for_handshake_timeout ? Clock::time_point::max() : Clock::now() + probe_timeout;
  while (!call->response && Clock::now() < until) {
    const Clock::duration left = wait_for_handshake_timeout ? Clock::duration::max() : until - Clock::now();
    Event response_arrived = handshake->response_arrived;
    static_cast<void>(co_await response_arrived.wait(loop_, left));
  }
  if (!call->response) co_return Error::timeout("`server/discover`", probe_timeout);
  const Result<json::Raw> response = *call->response;
  if (!response && response.error().kind() == ErrorKind::timeout && options_.pinned_revision)
    co_return handshake_timeout_error();
  co_return response;
}

// Determines the era from the error of server/discover. Over HTTP only a rejection of the request indicates a
// legacy server; other failures and timeouts do not, nor do error codes that only modern servers use.
Result<ClientSession::ProbeResult> ClientSession::classify_probe_error(const Error& error) {
  const bool over_http = connection_->has_stream_per_request();
  const std::int64_t code = error.detail().rpc_code.value_or(0);
  switch (error.kind()) {
    case ErrorKind::remote:
      if (code == kUnsupportedVersion &&
          !contains_legacy_revision(json::View(error.detail().rpc_data)["supported"]))
        return Error(ErrorKind::connection_failed,
                     "the server supports no revision that this client supports: " + error.message());
      if (over_http && (code == kHeaderMismatch || code == kMissingCapability)) return error;
      lacks_discover_ = code == rpc::kMethodNotFound;
      // With a pinned modern revision, a server that lacks server/discover counts as modern over HTTP: most
      // legacy servers reject the request there with another error, because it has no session. On other
      // transports legacy servers respond with the same error.
      return lacks_discover_ && options_.pinned_revision && over_http ? ProbeResult::modern
                                                                      : ProbeResult::legacy;
    case ErrorKind::http_status: {
      const int status = error.detail().http_status.value_or(0);
      if (status >= 400 && status < 500) return ProbeResult::legacy;
      return error;
    }
    case ErrorKind::timeout:
      if (over_http || options_.pinned_revision) return error;
      return ProbeResult::legacy;
    case ErrorKind::process_exited:
    case ErrorKind::closed:
      if (over_http) return error;
      return ProbeResult::gone;
    default: return error;
  }
}

// Sends initialize and returns its result. If a modern response to server/discover arrives first, returns
// that response and sets revision_ to the newest revision.
Task<Result<json::Raw>> ClientSession::call_initialize(json::Raw params) {
  const std::shared_ptr<Handshake> handshake = handshake_;
  const std::shared_ptr<Handshake::PendingCall> discover = handshake->discover;
  const auto call = std::make_shared<Handshake::PendingCall>();
  CallOptions call_options(handshake_time_left());
  loop_.spawn(Handshake::send(peer_, handshake, call, "initialize", std::move(params),
                              std::move(call_options), options_.list_limits.max_handshake_bytes));
  while (!call->response && !is_modern_discover_response(discover->response)) {
    Event response_arrived = handshake->response_arrived;
    co_await response_arrived.wait(loop_);
  }
  if (!call->response) {
    revision_ = kNewestRevision;
    co_return *discover->response;
  }
  if (discover->response && !*discover->response)
    lacks_discover_ = discover->response->error().detail().rpc_code == rpc::kMethodNotFound;
  const Result<json::Raw> response = *call->response;
  if (!response && response.error().kind() == ErrorKind::timeout) co_return handshake_timeout_error();
  co_return response;
}

Task<Result<void>> ClientSession::initialize(Revision revision) {
  revision_ = revision;
  json::Writer params;
  params.begin_object().key("protocolVersion").string(to_string(revision)).key("capabilities");
  write_capabilities(params, revision);
  params.key("clientInfo");
  write(params, options_.info, revision);
  params.end_object();
  const Result<json::Raw> response = co_await call_initialize(params.finish());
  if (!response) co_return response.error();
  if (is_modern(revision_)) {
    store_server_description(*response);
    co_return Result<void>();
  }
  const std::string offered = json::View(*response)["protocolVersion"].as_string().value_or("");
  const std::optional<Revision> chosen = revision_named(offered);
  if (!chosen || is_modern(*chosen) || (options_.pinned_revision && *chosen != *options_.pinned_revision)) {
    co_return Error(ErrorKind::connection_failed,
                    "the server chose revision `" + offered + "`, which this client does not support");
  }
  revision_ = *chosen;
  store_server_description(*response);
  const Result<void> sent = co_await peer_->notify("notifications/initialized");
  if (!sent || !options_.log_level || server_capabilities()["logging"].absent()) co_return sent;
  const Result<void> set = co_await send_log_level(handshake_time_left());
  if (!set)
    options_.connect.log.warning("could not set the log level of the server",
                                 {{"reason", set.error().message()}});
  co_return Result<void>();
}

// Values that are equal to the stored ones are not replaced, so that views of them stay valid.
void ClientSession::store_server_description(const json::Raw& result) {
  const auto replace = [](json::Raw& current, json::Raw received) {
    if (current.text() != received.text()) current = std::move(received);
  };
  const json::Members view(json::View(result), {"capabilities", "_meta", "serverInfo", "instructions"});
  replace(server_capabilities_, raw_part(result, view["capabilities"]));
  server_declares_core_tasks_ = !server_capabilities()["tasks"]["requests"]["tools"]["call"].absent();
  const json::View modern_info = view["_meta"]["io.modelcontextprotocol/serverInfo"];
  replace(server_info_, raw_part(result, modern_info.absent() ? view["serverInfo"] : modern_info));
  server_instructions_ = view["instructions"].as_string().value_or("");
}

}  // namespace fairlead::mcp
