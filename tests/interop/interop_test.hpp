// InteropTest: the fixture of the tests of the Fairlead client with servers of other projects.
// SdkServerTest: the same, with a server on an official TypeScript SDK, for each SDK, transport and revision.
#pragma once

#include <gtest/gtest.h>
#include <fairlead/mcp/client.hpp>

#include <algorithm>
#include <optional>

#include "support/support.hpp"

namespace fairlead::mcp {
using test::raw;
using namespace std::chrono_literals;

const std::string kInteropDir = FAIRLEAD_INTEROP_DIR;
const std::string kPackageDir = kInteropDir + "/node_modules/@modelcontextprotocol/";

// Returns the address of a script that Node runs.
inline std::string node_address(const std::string& script, const std::string& argument = "") {
  std::string uri = "stdio:" + percent_encode_word(kInteropDir + "/node") + " " + percent_encode_word(script);
  if (!argument.empty()) uri += " " + percent_encode_word(argument);
  return uri;
}

inline Task<Result<json::Raw>> answer_sampling(json::Raw params) {
  json::Writer out;
  out.begin_object().key("model").string("parrot").key("role").string("assistant").key("content");
  out.raw(json::View(params)["messages"][0]["content"].text()).end_object();
  co_return out.finish();
}

struct Notification {
  std::string method;
  json::Raw params;
};

// A request that was sent without waiting for its response.
struct PendingRequest {
  std::optional<Result<json::Raw>> response;
  std::vector<int> steps;  // the progress values received so far
  std::stop_source stop;   // cancels the request
};

inline Task<void> run_request(std::shared_ptr<Client> client, std::string method, json::Raw params,
                              std::shared_ptr<PendingRequest> started) {
  ClientCallOptions options;
  options.stop = started->stop.get_token();
  options.on_progress = [started](double progress, std::optional<double>, const std::string&) {
    started->steps.push_back(static_cast<int>(progress));
  };
  started->response = co_await client->request(std::move(method), std::move(params), std::move(options));
}

inline std::vector<std::string> sorted_names(const Result<std::vector<json::Raw>>& entries) {
  std::vector<std::string> names;
  if (!entries) return {entries.error().to_string()};
  for (const json::Raw& entry : *entries) names.push_back(json::View(entry)["name"].as_string().value_or(""));
  std::ranges::sort(names);
  return names;
}

class InteropTest : public ::testing::Test {
 public:
  Loop loop;
  std::shared_ptr<Client> client;
  std::vector<Notification> notifications;
  std::vector<std::string> elicitations;                       // the messages of the elicitations received
  ElicitResult::Action action = ElicitResult::Action::accept;  // the client's response to elicitations
  std::vector<Root> roots{{"file:///one", "one"}, {"file:///two", ""}};

  ClientOptions options() {
    ClientOptions options;
    options.handlers.sample = answer_sampling;
    options.handlers.elicit = [this](std::string message, json::Raw schema) {
      return respond_to_form(std::move(message), std::move(schema));
    };
    options.handlers.elicit_url = [this](std::string message, std::string url) {
      return respond_to_url(std::move(message), std::move(url));
    };
    options.handlers.roots = [this] { return roots; };
    options.handlers.on_notification = [this](std::string_view method, const json::Raw& params) {
      notifications.push_back({std::string(method), params});
    };
    return options;
  }

  // Responds to a form with `action`. Sets only the field `name`, if the form has it; the client library sets
  // the others to their defaults.
  Task<Result<ElicitResult>> respond_to_form(std::string message, json::Raw schema) {
    elicitations.push_back(std::move(message));
    ElicitResult result;
    result.action = action;
    if (action == ElicitResult::Action::accept) {
      result.content =
          json::View(schema)["properties"]["name"].absent() ? raw("{}") : raw(R"({"name":"Ada"})");
    }
    co_return result;
  }
  Task<Result<ElicitResult>> respond_to_url(std::string message, std::string url) {
    elicitations.push_back(message + " " + url);
    ElicitResult result;
    result.action = action;
    co_return result;
  }

  void open(const std::string& uri, std::optional<Revision> pinned) {
    ClientOptions chosen = options();
    chosen.pinned_revision = pinned;
    Result<std::shared_ptr<Client>> connected = loop.block_on(Client::connect(loop, uri, std::move(chosen)));
    ASSERT_TRUE(connected) << connected.error().to_string();
    client = *connected;
  }
  void TearDown() override {
    if (client) loop.block_on(client->close());
  }

  // Runs the loop until the condition holds. Returns false if it does not hold within 30 s.
  template <class Condition>
  bool wait_until(Condition condition) {
    Timer limit(loop);
    bool late = false;
    limit.arm_after(30s, [&] { late = true; });
    loop.run_until([&] { return late || condition(); });
    return condition();
  }
  std::size_t count(std::string_view method) const {
    return static_cast<std::size_t>(std::ranges::count(notifications, method, &Notification::method));
  }

  // Returns the text of the tool's result, or "error: TEXT" or "failed: TEXT".
  std::string call(const std::string& name, std::string_view arguments = "{}",
                   ClientCallOptions call_options = ClientCallOptions()) {
    const Result<ToolResult> result =
        loop.block_on(client->call_tool(name, raw(arguments), std::move(call_options)));
    if (!result) return "failed: " + result.error().to_string();
    std::string text = result->is_error ? "error: " : "";
    for (const Content& content : result->content) text += content.text();
    return text;
  }
  Result<json::Raw> request(const std::string& method, std::string_view params) {
    return loop.block_on(client->request(method, raw(params)));
  }
  std::shared_ptr<PendingRequest> start(const std::string& method, std::string_view params) {
    auto started = std::make_shared<PendingRequest>();
    loop.spawn(run_request(client, method, raw(params), started));
    return started;
  }
  std::string completions(std::string_view params) {
    const Result<json::Raw> answer = request("completion/complete", params);
    return answer ? std::string(json::View(*answer)["completion"]["values"].text())
                  : answer.error().to_string();
  }
};

// ---- the SDKs: servers/*.mjs -----------------------------------------------------------------------------

struct ServerCase {
  std::string server;
  // stdio; http: Streamable HTTP with event streams; json: Streamable HTTP with JSON responses; sse: the
  // HTTP+SSE transport of revision 2024-11-05
  std::string transport;
  std::optional<Revision> pinned;  // nullopt: the client determines the revision
};

inline void PrintTo(const ServerCase& server_case, std::ostream* out) {
  *out << server_case.server << " " << server_case.transport;
}

inline std::string case_name(const ::testing::TestParamInfo<ServerCase>& info) {
  std::string name = info.param.server + "_" + info.param.transport + "_" +
                     (info.param.pinned ? std::string(to_string(*info.param.pinned)) : "found");
  std::ranges::replace(name, '-', '_');
  return name;
}

// Returns the next message on the stdout of the server's process: first the URL at which it listens, then a
// confirmation of each control message.
inline Task<std::string> read_control_message(std::shared_ptr<Connection> control) {
  Connection::Receive receiving = control->receive();
  const Result<rpc::Message> message = co_await receiving;
  if (!message) co_return message.error().to_string();
  co_return json::View(message->params())["said"].as_string().value_or("");
}

class SdkServerTest : public InteropTest, public ::testing::WithParamInterface<ServerCase> {
 public:
  Revision revision = kNewestRevision;
  // The stdin and stdout of the server's process; null if the server is served on stdio.
  std::shared_ptr<Connection> control;

  void SetUp() override {
    const std::string script = kInteropDir + "/servers/" + GetParam().server + ".mjs";
    if (GetParam().transport == "stdio") {
      open(node_address(script), GetParam().pinned);
    } else {
      start_http_server(script);
    }
    ASSERT_TRUE(client);
    revision = client->revision();
  }
  void TearDown() override {
    InteropTest::TearDown();
    client.reset();
    if (!control) return;
    control->close();
    loop.block_on(control->wait_closed());
  }

 private:
  void start_http_server(const std::string& script) {
    const bool sse = GetParam().transport == "sse";
    const ConnectResult started =
        loop.block_on(transport::connect(loop, node_address(script, sse ? "http" : GetParam().transport)));
    ASSERT_TRUE(started) << started.error().to_string();
    control = *started;
    const std::string url = loop.block_on(read_control_message(control));
    ASSERT_TRUE(url.starts_with("http://")) << url;
    open(url + (sse ? "/sse" : "/mcp"), GetParam().pinned);
  }
};

// Returns each server with every revision that it supports.
inline std::vector<ServerCase> stdio_cases() {
  std::vector<ServerCase> all;
  for (const std::string server : {"v1", "v2"}) {
    for (const Revision revision : kRevisions) {
      if (!is_modern(revision) || server == "v2") all.push_back({server, "stdio", revision});
    }
    all.push_back({server, "stdio", std::nullopt});
  }
  return all;
}

// Returns each server with every revision that has Streamable HTTP. The newest revision of a server is
// omitted, because the client selects it when no revision is pinned.
inline std::vector<ServerCase> http_cases() {
  std::vector<ServerCase> all = stdio_cases();
  std::erase_if(all, [](const ServerCase& server_case) {
    const bool newest =
        server_case.pinned == (server_case.server == "v1" ? kNewestLegacyRevision : kNewestRevision);
    return newest || server_case.pinned == Revision::r2024_11_05;
  });
  for (ServerCase& server_case : all) server_case.transport = "http";
  return all;
}

// The SDK 2.x does not support HTTP+SSE.
inline std::vector<ServerCase> sse_cases() {
  return {{"v1", "sse", Revision::r2024_11_05}, {"v1", "sse", std::nullopt}};
}

inline std::vector<ServerCase> json_cases() {
  return {{"v1", "json", std::nullopt}, {"v2", "json", kNewestLegacyRevision}, {"v2", "json", std::nullopt}};
}

}  // namespace fairlead::mcp
