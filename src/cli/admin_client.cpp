#include "cli/admin_client.hpp"

#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>
#include <utility>

#include "cli/direct_gateway.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/loop/signals.hpp"
#include "http/sse_parser.hpp"

namespace fairlead::cli {

namespace {

constexpr std::string_view kApiPath = "/api/v1";

bool is_event_stream(const http::ClientResponse& response) {
  return response.media_type() == "text/event-stream";
}

std::string text_member(json::View object, std::string_view key) {
  return object[key].as_string().value_or("");
}

// Splits the URL of a gateway. The host of a Unix socket is only a name.
Result<http::Url> base_url(const std::string& text) {
  Result<http::Url> url = http::Url::parse(text.starts_with("unix:") ? "http://localhost" : text);
  if (!url) return url;
  if (url->scheme != "http" && url->scheme != "https")
    return Error(ErrorKind::validation,
                 "`" + text + "` is not the URL of a gateway, such as http://127.0.0.1:8808");
  url->target = url->target.substr(0, url->target.find('?'));
  if (url->target.ends_with('/')) url->target.pop_back();
  if (url->target.ends_with("/mcp")) url->target.resize(url->target.size() - 4);
  return url;
}

Result<AdminEvent> admin_event(const http::SseEvent& event) {
  Result<json::Raw> data = json::Raw::parse_optional(event.data);
  if (!data) return Error(ErrorKind::parse, "the gateway sent an event that is not JSON");
  return AdminEvent{event.type, std::move(*data)};
}

// Says in a message which member of a request is wrong.
std::string member_hint(const std::string& pointer) {
  return pointer.empty() ? std::string() : " (member " + pointer + ")";
}

// Returns the remedy of a problem, in the terms of the command line.
std::string remedy_of(json::View problem, const std::string& code) {
  if (code == "invalid_row") return {};  // the message and the member say it
  if (code == "version_mismatch") return "Read it again, and repeat the change.";
  if (code == "name_taken") return "Choose another name, or change the existing one with `edit`.";
  return text_member(problem, "remedy");
}

}  // namespace

std::string path_segment(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    const auto byte = static_cast<unsigned char>(c);
    if (plain) {
      out += c;
    } else {
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  // A segment of dots only would be removed from the path.
  if (out == "." || out == "..") return out == "." ? "%2E" : "%2E%2E";
  return out;
}

// ---- the client ------------------------------------------------------------------------------------------

AdminClient::~AdminClient() {
  if (http_) http_->close();
}

Result<std::shared_ptr<AdminClient>> AdminClient::create(Loop& loop, const GatewayAddress& address,
                                                         std::chrono::milliseconds timeout) {
  std::shared_ptr<AdminClient> self(new AdminClient(loop, address, timeout));
  Result<http::Url> base = base_url(address.url);
  if (!base) return base.error();
  self->base_ = std::move(*base);
  http::ClientOptions options;
  options.ca_file = address.ca_file;
  options.follow_redirects = true;
  options.limits.connect_timeout = std::min(options.limits.connect_timeout, timeout);
  if (address.url.starts_with("unix:")) options.unix_socket = address.url.substr(5);
  if (!address.token.empty()) {
    options.headers.add("Authorization", "Bearer " + address.token);
    options.secrets.push_back(address.token);
  }
  Result<std::shared_ptr<http::HttpClient>> http = http::HttpClient::create(loop, std::move(options));
  if (!http) return Error(ErrorKind::validation, "the token has characters that cannot be sent in a header");
  self->http_ = std::move(*http);
  return self;
}

Task<AdminClient::ResponseResult> AdminClient::open(AdminRequest request, bool events) {
  http::Url url = base_;
  url.target += (request.outside_api ? std::string() : std::string(kApiPath)) + request.path;
  http::ClientRequest message(request.method, std::move(url));
  message.headers.add("Accept", events ? "text/event-stream, application/json" : "application/json");
  message.response_timeout = timeout_;
  if (!request.if_match.empty()) message.headers.add("If-Match", request.if_match);
  if (!request.body.absent()) {
    message.headers.add("Content-Type",
                        request.method == "PATCH" ? "application/merge-patch+json" : "application/json");
    message.body.push_back(request.body.bytes());
  }
  auto waiter = std::make_shared<http::CancellableWaiter>(loop_);
  ResponseResult response = co_await http_->send(std::move(message), waiter);
  co_return response;
}

Result<json::Raw> AdminClient::parse_body(const std::string& text) const {
  Result<json::Raw> body = json::Raw::parse_optional(text);
  if (body) return body;
  return Error(ErrorKind::invalid_content_type,
               address_.url + " is not the admin API of a gateway: it answered with text that is not JSON");
}

Error AdminClient::problem(int status, const std::string& body) const {
  const Result<json::Raw> document = json::Raw::parse_optional(body);
  const json::View view = document ? json::View(*document) : json::View();
  std::string message = text_member(view, "detail");
  if (message.empty())
    message = address_.url + " responded with the HTTP status " + std::to_string(status) +
              (view.absent() ? ", and not as the admin API of a gateway" : "");
  const std::string code = text_member(view, "code");
  std::string pointer = text_member(view["errors"][std::size_t{0}], "pointer");
  message += member_hint(pointer);
  const ErrorKind kind = status == 401 ? ErrorKind::authorization : ErrorKind::remote;
  return Error(kind, std::move(message)).with([&](ErrorDetail& detail) {
    detail.http_status = status;
    detail.failure_code = code;
    detail.remedy =
        status == 401 && !address_.token_hint.empty() ? address_.token_hint : remedy_of(view, code);
    detail.pointer = std::move(pointer);
  });
}

Task<Result<AdminReply>> AdminClient::send(AdminRequest request) {
  const bool request_is_report = request.outside_api;
  ResponseResult response = co_await open(std::move(request), false);
  if (!response) co_return response.error();
  (*response)->set_deadline(Clock::now() + timeout_);
  const Result<std::string> text = co_await (*response)->read_all(kMaxResponseBytes);
  if (!text) co_return text.error();
  AdminReply reply;
  reply.status = (*response)->status();
  const bool accepted = reply.status / 100 == 2 || (request_is_report && reply.status == 503);
  if (!accepted) co_return problem(reply.status, *text);
  Result<json::Raw> body = parse_body(*text);
  if (!body) co_return body.error();
  reply.body = std::move(*body);
  reply.etag = (*response)->headers().get("ETag");
  co_return reply;
}

Task<Result<json::Raw>> AdminClient::get(std::string path) {
  AdminRequest request("GET", std::move(path));
  Result<AdminReply> reply = co_await send(std::move(request));
  if (!reply) co_return reply.error();
  co_return std::move(reply->body);
}

Task<Result<json::Raw>> AdminClient::post(std::string path, json::Raw body) {
  AdminRequest request("POST", std::move(path), std::move(body));
  Result<AdminReply> reply = co_await send(std::move(request));
  if (!reply) co_return reply.error();
  co_return std::move(reply->body);
}

Task<Result<json::Raw>> AdminClient::put(std::string path, json::Raw body) {
  AdminRequest request("PUT", std::move(path), std::move(body));
  Result<AdminReply> reply = co_await send(std::move(request));
  if (!reply) co_return reply.error();
  co_return std::move(reply->body);
}

Task<Result<json::Raw>> AdminClient::patch(std::string path, json::Raw body, std::string if_match) {
  AdminRequest request("PATCH", std::move(path), std::move(body));
  request.if_match = std::move(if_match);
  Result<AdminReply> reply = co_await send(std::move(request));
  if (!reply) co_return reply.error();
  co_return std::move(reply->body);
}

Task<Result<json::Raw>> AdminClient::remove(std::string path) {
  AdminRequest request("DELETE", std::move(path));
  Result<AdminReply> reply = co_await send(std::move(request));
  if (!reply) co_return reply.error();
  co_return std::move(reply->body);
}

Task<Result<std::vector<json::Raw>>> AdminClient::list(std::string path) {
  const std::string separator = path.find('?') == std::string::npos ? "?" : "&";
  std::vector<json::Raw> items;
  std::string cursor;
  while (true) {
    std::string page_path = path + separator + "limit=500";
    if (!cursor.empty()) page_path += "&cursor=" + path_segment(cursor);
    const Result<json::Raw> page = co_await get(std::move(page_path));
    if (!page) co_return page.error();
    const json::View view(*page);
    view["items"].each_element([&](json::View item) {
      items.push_back(json::Raw::trusted(Bytes::copy_of(item.text())));
      return true;
    });
    const std::string next = text_member(view, "nextCursor");
    if (next.empty() || next == cursor) co_return items;
    if (items.size() > kMaxListedRows)
      co_return Error(ErrorKind::resource_exhausted,
                      "the list has more than " + std::to_string(kMaxListedRows) + " rows");
    cursor = next;
  }
}

Task<Result<void>> AdminClient::stream(AdminRequest request,
                                       std::function<bool(const AdminEvent&)> on_event) {
  ResponseResult response = co_await open(std::move(request), true);
  if (!response) co_return response.error();
  const bool events = (*response)->status() == 200 && is_event_stream(**response);
  if (!events) {
    (*response)->set_deadline(Clock::now() + timeout_);
    const Result<std::string> text = co_await (*response)->read_all(kMaxResponseBytes);
    if (!text) co_return text.error();
    if ((*response)->status() / 100 != 2) co_return problem((*response)->status(), *text);
    const Result<json::Raw> body = parse_body(*text);
    if (!body) co_return body.error();
    const AdminEvent only{std::string(), *body};
    on_event(only);
    co_return Result<void>();
  }
  http::SseParser parser(kMaxResponseBytes);
  std::optional<Error> failure;
  bool stopped = false;
  while (!stopped && !failure) {
    const Result<Bytes> piece = co_await (*response)->read();
    if (!piece) co_return piece.error();
    if (piece->empty()) break;
    const Result<void> parsed = parser.feed(piece->view(), [&](http::SseEvent event) {
      const Result<AdminEvent> received = admin_event(event);
      if (!received) failure = received.error();
      if (received && !stopped) stopped = !on_event(*received);
    });
    if (!parsed) co_return parsed.error();
  }
  if (failure) co_return *failure;
  co_return Result<void>();
}

Result<void> AdminClient::require_gateway(std::string_view what) const {
  if (!direct()) return {};
  return Error(ErrorKind::connection_failed,
               std::string(what) +
                   " needs a running gateway, and none serves this database. Start it with "
                   "`fairlead serve`, or name another one with --gateway URL");
}

// ---- running a command -----------------------------------------------------------------------------------

namespace {

constexpr int kInterruptedStatus = 128;  // plus the number of the signal, as shells report it

Task<int> run_admin_action(Loop& loop, const GatewayAddress& address, std::chrono::milliseconds timeout,
                           const AdminAction& action) {
  const Result<AdminClientPtr> client = AdminClient::create(loop, address, timeout);
  if (!client) co_return report(client.error());
  const Result<int> status = co_await action(*client);
  co_return status ? *status : report(status.error());
}

constexpr std::initializer_list<int> kEndingSignals = {SIGINT, SIGTERM, SIGHUP};

struct ActionOutcome {
  std::optional<int> status;
  std::optional<Task<void>> running;  // the action
};

// An exception terminates the program, as that of a task of Loop::spawn() does.
Task<void> store_status(Task<int> running, ActionOutcome& outcome) {
  try {
    outcome.status = co_await running;
  } catch (...) {
    std::terminate();
  }
}

// Returns the status of a signal that has ended a question, and that the loop has not handled yet.
std::optional<int> pending_signal_status() {
  sigset_t pending;
  ::sigpending(&pending);
  for (const int signal : kEndingSignals) {
    if (sigismember(&pending, signal) == 1) return kInterruptedStatus + signal;
  }
  return std::nullopt;
}

// Returns the status of the action, or that of a signal. After a signal the action is destroyed before the
// loop runs again, so that it neither changes anything more nor reports that the gateway closes.
int run_on_gateway(Loop& loop, const OpenedGateway& gateway, std::chrono::milliseconds timeout,
                   const AdminAction& action, const std::shared_ptr<ActionOutcome>& outcome) {
  outcome->running.emplace(store_status(run_admin_action(loop, gateway.address, timeout, action), *outcome));
  loop.post([outcome] {
    if (outcome->running) outcome->running->await_suspend(std::noop_coroutine()).resume();
  });
  loop.run_until([&] { return outcome->status.has_value(); });
  outcome->running.reset();
  int status = *outcome->status;
  if (status != kSuccess) status = pending_signal_status().value_or(status);
  if (gateway.direct) loop.block_on(gateway.direct->close(loop));
  return status;
}

}  // namespace

std::chrono::milliseconds GatewayChoice::wait_limit() const {
  return timeout.count() > 0 ? timeout : AdminClient::kDefaultTimeout;
}

void GatewayChoice::add_to(CLI::App& command) {
  command.add_option("--gateway", url, "URL of the gateway, such as http://127.0.0.1:8808 or unix:/PATH");
  command.add_option("--context", context, "A gateway of `fairlead context list`");
  command.add_option(
      "--db", database,
      "The gateway that serves this database (sqlite:PATH); if none does, the database itself");
  command.add_option("--token-file", token_file, "File with the token for the gateway");
  command.add_option("--ca-file", ca_file,
                     "CA certificates (PEM) to trust in addition to those of the system");
  add_timeout(command, timeout, "How long to wait for each response and each answer of the user [3m]");
}

// A gateway in this process ends in order also after a signal: servers that are being tested are stopped, and
// its socket is removed. The signals are watched before any thread is started, so that no thread gets them.
int run_admin(const GatewayChoice& choice, const AdminAction& action) {
  open_closed_standard_streams();
  const std::chrono::milliseconds timeout = choice.wait_limit();
  enable_orphan_cleanup(Log());
  Loop loop;
  auto outcome = std::make_shared<ActionOutcome>();
  const Result<Signals> signals = Signals::watch(
      loop, kEndingSignals, [outcome](int signal) { outcome->status = kInterruptedStatus + signal; });
  if (!signals) return report(signals.error());
  const Result<OpenedGateway> opened = loop.block_on(open_gateway(loop, choice));
  if (!opened) return report(opened.error());
  return run_on_gateway(loop, *opened, timeout, action, outcome);
}

}  // namespace fairlead::cli
