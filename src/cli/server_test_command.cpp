// fairlead servers test, logs: why a server fails.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "base/printable.hpp"
#include "cli/output.hpp"
#include "cli/servers_command.hpp"

namespace fairlead::cli {

namespace {

std::string duration_text(double milliseconds) {
  char text[32];
  if (milliseconds < 1000) {
    std::snprintf(text, sizeof text, "%.1f ms", milliseconds);
  } else {
    std::snprintf(text, sizeof text, "%.1f s", milliseconds / 1000);
  }
  return text;
}

void print_step(json::View step) {
  std::string line = "  " + printable_line(string_of(step, "name"));
  line.resize(std::max<std::size_t>(line.size(), 14), ' ');
  line += step["ok"].as_bool().value_or(false) ? "ok      " : "failed  ";
  print_text_line(line + duration_text(step["ms"].as_double().value_or(0)));
}

void print_failure(json::View result) {
  const json::View error = result["error"];
  print_text_line("failed: " + printable_line(string_of(error, "message")));
  if (result["stderr"].size() > 0) print_text_line("last lines of its stderr:");
  result["stderr"].each_element([](json::View line) {
    print_text_line("  " + printable_line(line.as_string().value_or("")));
    return true;
  });
  for (const char* const member : {"code", "remedy"}) {
    const std::string text = string_of(error, member);
    if (!text.empty()) print_text_line(std::string(member) + ": " + printable_line(text));
  }
}

void print_outcome(json::View result) {
  if (!result["ok"].as_bool().value_or(false)) return print_failure(result);
  print_text_line("ok: " + one_line(result["tools"]) + " tools, revision " +
                  printable_line(string_of(result, "revision")));
}

// Shows the events of a test: the finished steps, and on a terminal the step in progress.
class TestDisplay {
 public:
  TestDisplay(const AdminOptions& options, const std::string& server, std::shared_ptr<ProgressLine> progress)
      : options_(options), server_(server), progress_(std::move(progress)) {}

  // Returns false after the last event.
  bool show(const AdminEvent& event);
  // Whether the test has succeeded; nullopt if there was no result.
  std::optional<bool> ok() const { return ok_; }

 private:
  void show_step(json::View step);
  void show_outcome(const json::Raw& outcome);

  const AdminOptions& options_;
  const std::string& server_;
  std::shared_ptr<ProgressLine> progress_;  // may be null
  std::optional<bool> ok_;
};

// Returns the step that follows. The last one comes after every failure, too.
std::string step_after(const std::string& step, bool ok) {
  if (!ok || step == "list") return "stop";
  return step == "handshake" ? "list" : "handshake";
}

void TestDisplay::show_step(json::View step) {
  if (progress_) progress_->hide();
  if (!options_.json && !options_.quiet) print_step(step);
  const std::string name = string_of(step, "name");
  if (!progress_ || name == "stop") return;
  progress_->show("testing " + server_ + ": " + step_after(name, step["ok"].as_bool().value_or(false)));
}

void TestDisplay::show_outcome(const json::Raw& outcome) {
  if (progress_) progress_->hide();
  const json::View data(outcome);
  ok_ = data["ok"].as_bool().value_or(false);
  if (options_.json) return print_json(outcome.text());
  if (!options_.quiet || !*ok_) print_outcome(data);
}

bool TestDisplay::show(const AdminEvent& event) {
  if (event.name == "step") show_step(json::View(event.data));
  if (event.name == "stderr" && progress_) progress_->set_message(string_of(json::View(event.data), "line"));
  const bool is_result = event.name == "result" || event.name.empty();
  if (is_result) show_outcome(event.data);
  return !is_result;
}

struct ServersTest {
  AdminOptions options;
  std::string name;

  void add_to(CLI::App& app) {
    app.add_option("NAME", name, "Name or id of the server")->required();
    app.footer(
        "Starts the server in a process of its own, lists its tools, and stops it. The status is 1 if it "
        "fails.");
  }
  static Task<Result<int>> run(const ServersTest& command, AdminClientPtr client) {
    AdminRequest request("POST", server_rows().row_path(command.name) + "/test");
    TestDisplay display(command.options, command.name,
                        command.options.show_progress(*client, "testing " + command.name + ": start"));
    std::function<bool(const AdminEvent&)> on_event = [&display](const AdminEvent& event) {
      return display.show(event);
    };
    const Result<void> streamed = co_await client->stream(std::move(request), std::move(on_event));
    if (!streamed) co_return streamed.error();
    const std::optional<bool> ok = display.ok();
    if (!ok) co_return Error(ErrorKind::closed, "the gateway ended the test without a result");
    co_return *ok ? kSuccess : kRemoteError;
  }
};

void print_log_line(const AdminOptions& options, json::View entry) {
  if (options.json) return print_json(entry.text());
  const std::string key = string_of(entry, "key");
  print_text_line((key.empty() ? "" : "[" + printable_line(key) + "] ") + string_of(entry, "line"));
}

struct ServersLogs {
  AdminOptions options;
  std::string name;
  unsigned lines = 100;
  bool follow = false;

  void add_to(CLI::App& app) {
    app.add_option("NAME", name, "Name or id of the server")->required();
    app.add_option("-n,--lines", lines, "How many of the last lines")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_flag("-f,--follow", follow, "Continue with the lines that are written from now on");
  }
  std::string path() const { return server_rows().row_path(name) + "/logs?lines=" + std::to_string(lines); }
  static Task<Result<int>> run(const ServersLogs& command, AdminClientPtr client) {
    const Result<void> running = client->require_gateway("the log of a server");
    if (!running) co_return running.error();
    if (command.follow) {
      const Result<int> followed = co_await follow_lines(command, client);
      co_return followed;
    }
    const Result<json::Raw> page = co_await client->get(command.path());
    if (!page) co_return page.error();
    const json::View items = json::View(*page)["items"];
    if (items.size() == 0 && !command.options.json)
      print_note(command.options, "The server has written nothing to stderr since the gateway started.");
    items.each_element([&](json::View entry) {
      print_log_line(command.options, entry);
      return true;
    });
    co_return kSuccess;
  }
  static Task<Result<int>> follow_lines(const ServersLogs& command, AdminClientPtr client) {
    AdminRequest request("GET", command.path());
    const AdminOptions& options = command.options;
    std::function<bool(const AdminEvent&)> on_event = [&options](const AdminEvent& event) {
      if (event.name == "line") print_log_line(options, json::View(event.data));
      return static_cast<bool>(std::cout);  // until nobody reads the lines any more
    };
    const Result<void> streamed = co_await client->stream(std::move(request), std::move(on_event));
    if (!streamed) co_return streamed.error();
    if (!std::cout) co_return kSuccess;  // finish_output() reports it
    co_return Error(ErrorKind::closed, "the gateway has ended the stream of lines");
  }
};

}  // namespace

void add_server_test_commands(CLI::App& servers, int& status) {
  add_admin_command<ServersTest>(servers, "test", "Start a server once, and show each step and its stderr",
                                 status);
  add_admin_command<ServersLogs>(servers, "logs", "Show what a server has written to stderr", status);
}

}  // namespace fairlead::cli
