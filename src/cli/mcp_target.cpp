#include "cli/mcp_target.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>

#include "cli/address_hint.hpp"
#include "cli/terminal.hpp"

namespace fairlead::cli {

namespace {

// Prints `prompt` on the terminal and reads a line. Returns nullopt if there is no terminal or no line.
std::optional<std::string> ask_line(const std::string& prompt) {
  std::ifstream in("/dev/tty");
  std::ofstream out("/dev/tty");
  if (!in || !out) return std::nullopt;
  out << prompt << std::flush;
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  return line;
}

// Converts a typed line to JSON of the type in `schema`. Returns nullopt if it is not of that type.
std::optional<std::string> as_json(const std::string& line, json::View schema) {
  const std::string type = schema["type"].as_string().value_or("string");
  if (type == "string") return std::string(json::string(line).text());
  if (type == "boolean") {
    if (line == "y" || line == "yes" || line == "true") return "true";
    if (line == "n" || line == "no" || line == "false") return "false";
    return std::nullopt;
  }
  if (json::validate(line)) return std::nullopt;
  return line;
}

Task<Result<mcp::ElicitResult>> elicit_on_terminal(std::string message, json::Raw schema) {
  mcp::ElicitResult result;
  const std::optional<std::string> consent =
      ask_line("\nThe server asks: " + printable_text(message) + "\nAnswer? [y/N] ");
  if (!consent || (*consent != "y" && *consent != "yes")) {
    result.action = consent ? mcp::ElicitResult::Action::decline : mcp::ElicitResult::Action::cancel;
    co_return result;
  }
  json::Writer content;
  content.begin_object();
  bool cancelled = false;
  json::View(schema)["properties"].each_member([&](std::string_view key, bool, json::View property) {
    const std::string label = property["title"].as_string().value_or(std::string(key));
    while (true) {
      const auto line = ask_line("  " + printable_line(label) + " (" +
                                 printable_line(property["type"].as_string().value_or("string")) + "): ");
      if (!line) {
        cancelled = true;
        return false;
      }
      if (line->empty()) return true;
      const auto value = as_json(*line, property);
      if (!value) continue;
      content.key(key).raw(*value);
      return true;
    }
  });
  content.end_object();
  result.action = cancelled ? mcp::ElicitResult::Action::cancel : mcp::ElicitResult::Action::accept;
  if (!cancelled) result.content = content.finish();
  co_return result;
}

Task<Result<mcp::ElicitResult>> elicit_url_on_terminal(std::string message, std::string url) {
  mcp::ElicitResult result;
  const auto consent = ask_line("\nThe server asks: " + printable_text(message) + "\nIt wants you to open " +
                                printable_line(url) + "\nOpened it? [y/N] ");
  result.action = !consent                                 ? mcp::ElicitResult::Action::cancel
                  : (*consent == "y" || *consent == "yes") ? mcp::ElicitResult::Action::accept
                                                           : mcp::ElicitResult::Action::decline;
  co_return result;
}

void print_log_notification(std::string_view method, const json::Raw& params) {
  if (method != "notifications/message") return;
  const json::View view(params);
  std::fprintf(stderr, "server %s: %s\n", printable_line(view["level"].as_string().value_or("")).c_str(),
               printable_json(view["data"].text()).c_str());
}

Task<int> run(Loop& loop, const McpTarget& target, const ClientAction& action) {
  Result<std::shared_ptr<mcp::Client>> client =
      co_await mcp::Client::connect(loop, target.uri, target.client_options());
  if (!client) co_return report(with_address_hint(client.error(), target.uri));
  const Result<int> status = co_await action(*client);
  co_await (*client)->close();
  co_return status ? *status : report(status.error());
}

std::vector<std::string> revision_names() {
  std::vector<std::string> names;
  for (const mcp::Revision known : mcp::kRevisions) names.emplace_back(to_string(known));
  return names;
}

}  // namespace

void McpTarget::add_to(CLI::App& command) {
  command
      .add_option("TARGET", uri,
                  "Address of the server, e.g. \"stdio:npx -y some-server\" or https://host/mcp")
      ->required();
  command.add_option("--revision", revision, "Use only this protocol revision")
      ->check(CLI::IsMember(revision_names()));
  command.add_flag("--json", json, "Print the JSON sent by the server");
  add_duration(command, "--timeout", timeout, "How long to wait for each response [30s]");
  web.add_to(command);
  common.add_frame_limit_to(command);
  common.add_log_to(command);
}

mcp::ClientOptions McpTarget::client_options() const {
  mcp::ClientOptions options;
  options.info = mcp::Implementation{"fairlead", FAIRLEAD_VERSION, "Fairlead", {}, {}, {}};
  options.connect.log = common.log();
  web.apply_to(options.connect);
  options.connect.limits = common.limits();
  options.connect.limits.call_timeout = timeout;
  options.connect.max_response_bytes =
      std::max(options.connect.max_response_bytes, options.connect.limits.max_frame_bytes);
  options.handshake_timeout = timeout;
  if (!revision.empty()) options.pinned_revision = mcp::revision_named(revision);
  if (has_terminal()) {
    options.handlers.elicit = elicit_on_terminal;
    options.handlers.elicit_url = elicit_url_on_terminal;
  }
  options.handlers.on_notification = print_log_notification;
  return options;
}

mcp::ClientCallOptions McpTarget::call_options() const {
  mcp::ClientCallOptions options;
  options.timeout = timeout;
  if (::isatty(STDERR_FILENO)) {
    options.on_progress = [](double progress, std::optional<double> total, const std::string& message) {
      if (total) {
        std::fprintf(stderr, "\r\033[K%g/%g %s", progress, *total, printable_line(message).c_str());
      } else {
        std::fprintf(stderr, "\r\033[K%g %s", progress, printable_line(message).c_str());
      }
      std::fflush(stderr);
    };
    options.on_task = [](const mcp::TaskInfo& task) {
      const std::string status(to_string(task.status));
      std::fprintf(stderr, "\r\033[Ktask %s: %s", status.c_str(), printable_line(task.message).c_str());
      std::fflush(stderr);
    };
  }
  return options;
}

int run_with_client(const McpTarget& target, const ClientAction& action) {
  enable_orphan_cleanup(target.common.log());
  Loop loop;
  return loop.block_on(run(loop, target, action));
}

}  // namespace fairlead::cli
