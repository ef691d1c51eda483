// fairlead call: sends one JSON-RPC request or notification and prints the result to stdout.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/address_hint.hpp"
#include "cli/common.hpp"
#include "cli/output.hpp"
#include "cli/stdio_target.hpp"
#include "fairlead/connection/connect.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/peer/peer.hpp"
#include "http/url.hpp"

namespace fairlead::cli {

namespace {

struct CallCommand {
  CommonOptions common{.log_level = "warning"};
  WebOptions web;
  StdioTargetOptions stdio;
  std::string target;
  std::string method;
  std::string params;
  std::chrono::milliseconds timeout = Limits().call_timeout;
  bool notify = false;
};

Task<Result<json::Raw>> make_call(std::shared_ptr<Peer> peer, const CallCommand& command, json::Raw params) {
  if (command.notify) {
    const Result<void> sent = co_await peer->notify(command.method, params);
    if (!sent) co_return sent.error();
    co_return json::Raw();
  }
  CallOptions options(command.timeout);
  Result<json::Raw> answer = co_await peer->call(command.method, std::move(params), std::move(options));
  co_return answer;
}

Task<ConnectResult> connect_for_call(Loop& loop, const CallCommand& command, const Uri& target,
                                     transport::ConnectOptions options,
                                     std::shared_ptr<ProgressLine> progress) {
  if (!is_process(target)) {
    ConnectResult connection = co_await transport::connect(loop, target.text, std::move(options));
    co_return connection;
  }
  ProcessSpec process = process_spec(target, command.stdio, command.common, progress);
  StreamConnectOptions stream = std::move(options);
  ConnectResult connection = co_await connect_child(loop, std::move(process), std::move(stream));
  co_return connection;
}

Task<Result<json::Raw>> run(Loop& loop, const CallCommand& command, Uri target, json::Raw params,
                            std::shared_ptr<ProgressLine> progress) {
  transport::ConnectOptions options;
  command.web.apply_to(options);
  options.framing = command.common.selected_framing();
  options.limits = command.common.limits();
  if (command.timeout != Limits().call_timeout) options.limits.connect_timeout = command.timeout;
  options.limits.write_stall = std::min(options.limits.write_stall, command.timeout);
  options.log = log_above(command.common, progress);
  ConnectResult connection = co_await connect_for_call(loop, command, target, options, progress);
  if (!connection) co_return connection.error();

  PeerOptions peer_options;
  peer_options.limits = options.limits;
  peer_options.log = options.log;
  peer_options.malformed_frames = MalformedFramePolicy::skip;
  Result<json::Raw> answer =
      co_await make_call(Peer::start(*connection, nullptr, peer_options), command, std::move(params));

  (*connection)->close();
  co_await (*connection)->wait_closed();
  co_return answer;
}

int report_usage_error(const std::string& problem) {
  std::fprintf(stderr, "fairlead: %s\n", problem.c_str());
  return kUsageError;
}

int report_call_failure(const Error& error) {
  const ErrorDetail& detail = error.detail();
  if (error.kind() != ErrorKind::remote) {
    const int status = report(error);
    // The arguments were validated before, so it is the response that is invalid.
    return error.kind() == ErrorKind::validation ? kProtocolViolated : status;
  }
  std::fprintf(stderr, "fairlead: the server responded with error %lld: %s\n",
               static_cast<long long>(detail.rpc_code.value_or(0)), printable_text(error.message()).c_str());
  if (!detail.rpc_data.empty()) std::fprintf(stderr, "data: %s\n", printable_json(detail.rpc_data).c_str());
  return kRemoteError;
}

int execute(const CallCommand& command) {
  Result<Uri> target = Uri::parse(command.target);
  if (!target) return report(with_address_hint(target.error(), command.target));
  if (target->scheme >= Uri::Scheme::http) {
    const Result<http::Url> url = http::Url::parse(command.target);
    if (!url) return report(url.error());
  }
  Result<json::Raw> params = parse_json_argument("PARAMS", command.params);
  if (!params) return report_usage_error(params.error().message());
  const json::View view(*params);
  if (!view.absent() && !view.is(json::Type::object) && !view.is(json::Type::array))
    return report_usage_error("PARAMS is neither an object nor an array");

  if (const std::optional<Error> problem = command.stdio.problem(*target)) return report(*problem);
  enable_orphan_cleanup(command.common.log());
  Loop loop;
  std::shared_ptr<ProgressLine> progress = ProgressLine::create(loop);
  if (progress) progress->show("calling " + command.method);
  const Result<json::Raw> answer =
      loop.block_on(run(loop, command, std::move(*target), std::move(*params), progress));
  progress = nullptr;
  if (!answer) return report_call_failure(with_timeout_option(answer.error(), command.timeout));
  if (command.notify) return kSuccess;
  print_json(answer->text());
  return kSuccess;
}

}  // namespace

void add_call(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand("call", "Send one JSON-RPC request and print its result");
  auto call = std::make_shared<CallCommand>();
  command
      ->add_option("TARGET", call->target,
                   "Address of the server, e.g. tcp:127.0.0.1:8807 or https://host/mcp")
      ->required();
  command->add_option("METHOD", call->method, "Method to call")->required();
  command->add_option("PARAMS", call->params, "Params as JSON, or - to read them from stdin");
  command->add_flag("--notify", call->notify, "Send a notification, which has no id and no response");
  add_timeout(*command, call->timeout, "How long to wait for the response [30s]");
  call->common.add_framing_to(*command);
  call->web.add_to(*command);
  call->stdio.add_to(*command);
  call->common.add_log_to(*command);
  command->callback([call, &status] { status = execute(*call); });
}

}  // namespace fairlead::cli
