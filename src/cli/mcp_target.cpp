#include "cli/mcp_target.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>

namespace fairlead::cli {

namespace {

// Asks on the terminal, property by property. An empty line takes the default, or leaves the property out.
std::optional<std::string> ask_line(const std::string& prompt) {
  std::ifstream in("/dev/tty");
  std::ofstream out("/dev/tty");
  if (!in || !out) return std::nullopt;
  out << prompt << std::flush;
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  return line;
}

bool has_terminal() {
  return ::access("/dev/tty", R_OK | W_OK) == 0 && std::ifstream("/dev/tty").good();
}

// What was typed, as the JSON its schema asks for; nothing when it cannot be that.
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
  bool given_up = false;
  json::View(schema)["properties"].each_member([&](std::string_view key, bool, json::View property) {
    const std::string label = property["title"].as_string().value_or(std::string(key));
    while (true) {
      const auto line = ask_line("  " + printable_line(label) + " (" +
                                 printable_line(property["type"].as_string().value_or("string")) + "): ");
      if (!line) {
        given_up = true;
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
  result.action = given_up ? mcp::ElicitResult::Action::cancel : mcp::ElicitResult::Action::accept;
  if (!given_up) result.content = content.finish();
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

void show_notification(std::string_view method, const json::Raw& params) {
  if (method != "notifications/message") return;
  const json::View view(params);
  std::fprintf(stderr, "server %s: %s\n", printable_line(view["level"].as_string().value_or("")).c_str(),
               printable_json(view["data"].text()).c_str());
}

Task<int> run(Loop& loop, const McpTarget& target, const McpBody& body) {
  Task<Result<std::shared_ptr<mcp::Client>>> connecting =
      mcp::Client::connect(loop, target.uri, target.client_options());
  Result<std::shared_ptr<mcp::Client>> client = co_await connecting;
  if (!client) co_return report(client.error());
  Task<Result<int>> running = body(*client);
  const Result<int> status = co_await running;
  Task<void> closing = (*client)->close();
  co_await closing;
  co_return status ? *status : report(status.error());
}

std::vector<std::string> revision_names() {
  std::vector<std::string> names;
  for (const mcp::Revision one : mcp::kRevisions) names.emplace_back(to_string(one));
  return names;
}

}  // namespace

void McpTarget::add_to(CLI::App& command) {
  command
      .add_option("TARGET", uri,
                  "Address of the server, e.g. \"stdio:npx -y some-server\" or https://host/mcp")
      ->required();
  command.add_option("--revision", revision, "Speak this revision and no other")
      ->check(CLI::IsMember(revision_names()));
  command.add_flag("--json", json, "Print JSON, as the server sent it");
  add_duration(command, "--timeout", timeout, "How long to wait for each answer [30s]");
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
  if (!revision.empty()) options.pinned = mcp::revision_named(revision);
  if (has_terminal()) {
    options.handlers.elicit = elicit_on_terminal;
    options.handlers.elicit_url = elicit_url_on_terminal;
  }
  options.handlers.notified = show_notification;
  return options;
}

mcp::ToolCallOptions McpTarget::call_options() const {
  mcp::ToolCallOptions options;
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

int with_client(const McpTarget& target, const McpBody& body) {
  end_orphans_of_killed_keepers(target.common.log());
  Loop loop;
  return loop.block_on(run(loop, target, body));
}

}  // namespace fairlead::cli
