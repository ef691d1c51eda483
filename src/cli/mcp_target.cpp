#include "cli/mcp_target.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "cli/address_hint.hpp"
#include "cli/attach.hpp"
#include "cli/elicitation.hpp"
#include "cli/terminal.hpp"

namespace fairlead::cli {

namespace {

void print_log_notification(const std::shared_ptr<ProgressLine>& progress, std::string_view method,
                            const json::Raw& params) {
  if (method != "notifications/message") return;
  const json::View view(params);
  const std::string line = "server " + printable_line(view["level"].as_string().value_or("")) + ": " +
                           printable_json(view["data"].text()) + "\n";
  if (progress) return progress->write_above(line);
  std::fputs(line.c_str(), stderr);
}

// Asks without a progress line below the question. REQUIRES: the loop outlives the client.
Task<Result<mcp::ElicitResult>> elicit_without_progress(Loop& loop, std::chrono::milliseconds timeout,
                                                        std::weak_ptr<ProgressLine> progress,
                                                        std::string message, json::Raw schema) {
  const ProgressLine::Pause pause(progress.lock());
  Result<mcp::ElicitResult> answer =
      co_await elicit_on_terminal(loop, timeout, std::move(message), std::move(schema));
  co_return answer;
}

Task<Result<mcp::ElicitResult>> elicit_url_without_progress(Loop& loop, std::chrono::milliseconds timeout,
                                                            std::weak_ptr<ProgressLine> progress,
                                                            std::string message, std::string url) {
  const ProgressLine::Pause pause(progress.lock());
  Result<mcp::ElicitResult> answer =
      co_await elicit_url_on_terminal(loop, timeout, std::move(message), std::move(url));
  co_return answer;
}

void set_elicitation_handlers(mcp::ClientOptions& options, Loop& loop, const McpTarget& target) {
  options.handlers.elicit = [&loop, timeout = target.timeout, weak = std::weak_ptr(target.progress)](
                                std::string message, json::Raw schema) {
    return elicit_without_progress(loop, timeout, weak, std::move(message), std::move(schema));
  };
  options.handlers.elicit_url = [&loop, timeout = target.timeout, weak = std::weak_ptr(target.progress)](
                                    std::string message, std::string url) {
    return elicit_url_without_progress(loop, timeout, weak, std::move(message), std::move(url));
  };
}

using ClientResult = Result<std::shared_ptr<mcp::Client>>;

Task<ClientResult> start_client(Loop& loop, const McpTarget& target, ProcessSpec process,
                                mcp::ClientOptions options) {
  target.show_progress("starting " + process.command.substr(process.command.rfind('/') + 1));
  options.era_key = target.uri;
  Connector connector = [process = std::move(process)](Loop& on, StreamConnectOptions connect_options) {
    return connect_child(on, process, std::move(connect_options));
  };
  ClientResult client = co_await mcp::Client::connect(loop, std::move(connector), std::move(options));
  co_return client;
}

// If a file with a token is given, adds the token to the requests. Fails with `validation`.
Result<void> add_token(const McpTarget& target, transport::ConnectOptions& options) {
  const std::string& file = target.servers.gateway.token_file;
  if (file.empty()) return {};
  if (!options.headers.get("Authorization").empty())
    return Error(ErrorKind::validation, "--token-file and --header Authorization exclude each other");
  const Result<std::string> token = read_client_token(file);
  if (!token) return token.error();
  options.headers.add("Authorization", "Bearer " + *token);
  options.secrets.push_back(*token);
  return {};
}

// Connects to the server whose name is the target.
Task<ClientResult> connect_named(Loop& loop, const McpTarget& target) {
  Result<ServerAddress> address = co_await find_server(target.servers, target.uri);
  if (!address) co_return address.error();
  if (!target.stdio.env.empty() && !address->process)
    co_return Error(
        ErrorKind::validation,
        "--env is allowed only for a server that this command starts: one with a `stdio:` address, "
        "or a local one of --config");
  mcp::ClientOptions options = target.client_options(loop);
  if (address->process) {
    target.stdio.apply_to(*address->process);
    set_stderr(*address->process, target.common, target.progress);
    ClientResult started =
        co_await start_client(loop, target, std::move(*address->process), std::move(options));
    co_return started;
  }
  address->apply_to(options.connect);
  target.show_progress("connecting to " + target.uri);
  ClientResult client = co_await mcp::Client::connect(loop, address->url, std::move(options));
  if (client) co_return client;
  const Error error = co_await with_similar_server(loop, target.servers, target.uri, client.error());
  co_return error;
}

Task<ClientResult> connect_client(Loop& loop, const McpTarget& target) {
  if (is_server_name(target.uri)) {
    ClientResult named = co_await connect_named(loop, target);
    co_return named;
  }
  const Result<Uri> uri = Uri::parse(target.uri);
  if (!uri) co_return uri.error();
  if (const std::optional<Error> problem = target.stdio.problem(*uri)) co_return *problem;
  mcp::ClientOptions options = target.client_options(loop);
  if (is_process(*uri)) {
    ProcessSpec process = process_spec(*uri, target.stdio, target.common, target.progress);
    ClientResult started = co_await start_client(loop, target, std::move(process), std::move(options));
    co_return started;
  }
  const Result<void> authorized = add_token(target, options.connect);
  if (!authorized) co_return authorized.error();
  target.show_progress("connecting");
  ClientResult client = co_await mcp::Client::connect(loop, target.uri, std::move(options));
  co_return client;
}

int report_target_failure(const McpTarget& target, const Error& error) {
  target.hide_progress();
  return report(with_timeout_option(error, target.timeout));
}

int report_connect_failure(const McpTarget& target, const Error& error) {
  return report_target_failure(target,
                               is_server_name(target.uri) ? error : with_address_hint(error, target.uri));
}

Task<int> run(Loop& loop, const McpTarget& target, const ClientAction& action) {
  const ClientResult client = co_await connect_client(loop, target);
  if (!client) co_return report_connect_failure(target, client.error());
  const Result<int> status = co_await action(*client);
  target.hide_progress();
  co_await (*client)->close();
  co_return status ? *status : report_target_failure(target, status.error());
}

std::vector<std::string> revision_names() {
  std::vector<std::string> names;
  for (const mcp::Revision known : mcp::kRevisions) names.emplace_back(to_string(known));
  return names;
}

}  // namespace

void McpTarget::add_to(CLI::App& command) {
  command
      .add_option(
          "TARGET", uri,
          "Address of the server, e.g. \"stdio:npx -y some-server\" or https://host/mcp, or the name of a "
          "server of the gateway or of --config")
      ->required();
  command.add_option("--revision", revision, "Use only this protocol revision")
      ->check(CLI::IsMember(revision_names()));
  command.add_flag("--json", json, "Print the JSON sent by the server");
  add_timeout(command, timeout, "How long to wait for each response and each answer of the user [30s]");
  web.add_to(command);
  stdio.add_to(command);
  servers.add_to(command);
  common.add_frame_limit_to(command);
  common.add_log_to(command);
}

mcp::ClientOptions McpTarget::client_options(Loop& loop) const {
  mcp::ClientOptions options;
  options.info = mcp::Implementation{"fairlead", FAIRLEAD_VERSION, "Fairlead", {}, {}, {}};
  options.connect.log = log_above(common, progress);
  web.apply_to(options.connect);
  options.connect.limits = common.limits();
  options.connect.limits.call_timeout = timeout;
  options.connect.max_response_bytes =
      std::max(options.connect.max_response_bytes, options.connect.limits.max_frame_bytes);
  options.handshake_timeout = timeout;
  if (timeout != Limits().call_timeout) options.connect.limits.connect_timeout = timeout;
  if (!revision.empty()) options.pinned_revision = mcp::revision_named(revision);
  if (has_terminal()) set_elicitation_handlers(options, loop, *this);
  options.handlers.on_notification = [weak = std::weak_ptr(progress)](std::string_view method,
                                                                      const json::Raw& params) {
    print_log_notification(weak.lock(), method, params);
  };
  return options;
}

mcp::ClientCallOptions McpTarget::call_options() const {
  mcp::ClientCallOptions options;
  options.timeout = timeout;
  if (!progress) return options;
  options.on_progress = [weak = std::weak_ptr(progress)](double done, std::optional<double> total,
                                                         const std::string& message) {
    if (const std::shared_ptr<ProgressLine> line = weak.lock()) line->set_progress(done, total, message);
  };
  options.on_task = [weak = std::weak_ptr(progress)](const mcp::TaskInfo& task) {
    const std::shared_ptr<ProgressLine> line = weak.lock();
    if (line) line->set_message("task " + std::string(to_string(task.status)) + ": " + task.message);
  };
  return options;
}

void McpTarget::show_progress(std::string state) const {
  if (progress) progress->show(std::move(state));
}

void McpTarget::hide_progress() const {
  if (progress) progress->hide();
}

int run_with_client(McpTarget& target, const ClientAction& action) {
  enable_orphan_cleanup(target.common.log());
  Loop loop;
  target.client_loop = &loop;
  target.progress = ProgressLine::create(loop);
  const int status = loop.block_on(run(loop, target, action));
  target.progress = nullptr;
  target.client_loop = nullptr;
  return status;
}

}  // namespace fairlead::cli
