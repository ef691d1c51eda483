// What the tests of our client against servers that others have written share.
#pragma once

#include <gtest/gtest.h>
#include <fairlead/mcp/client.hpp>

#include <algorithm>
#include <optional>

#include "support/support.hpp"

namespace fairlead::mcp {
using test::raw;
using namespace std::chrono_literals;

const std::string kDir = FAIRLEAD_INTEROP_DIR;
const std::string kPackages = kDir + "/node_modules/@modelcontextprotocol/";

inline std::string node(const std::string& script, const std::string& argument = "") {
  std::string uri = "stdio:" + percent_encode_word(kDir + "/node") + " " + percent_encode_word(script);
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

// What became of a request that was started and not waited for.
struct Started {
  std::optional<Result<json::Raw>> answer;
  std::vector<int> steps;  // of its progress
  std::stop_source stop;
};

inline Task<void> run_request(std::shared_ptr<Client> client, std::string method, json::Raw params,
                              std::shared_ptr<Started> started) {
  ToolCallOptions options;
  options.stop = started->stop.get_token();
  options.on_progress = [started](double progress, std::optional<double>, const std::string&) {
    started->steps.push_back(static_cast<int>(progress));
  };
  Task<Result<json::Raw>> asking = client->request(std::move(method), std::move(params), std::move(options));
  started->answer = co_await asking;
}

inline std::vector<std::string> sorted_names(const Result<std::vector<json::Raw>>& entries) {
  std::vector<std::string> names;
  if (!entries) return {entries.error().to_string()};
  for (const json::Raw& entry : *entries) names.push_back(json::View(entry)["name"].as_string().value_or(""));
  std::ranges::sort(names);
  return names;
}

class Session : public ::testing::Test {
 public:
  Loop loop;
  std::shared_ptr<Client> client;
  std::vector<Notification> heard;
  std::vector<std::string> asked;  // the messages of elicitations
  ElicitResult::Action action = ElicitResult::Action::accept;
  std::vector<Root> roots{{"file:///one", "one"}, {"file:///two", ""}};

  ClientOptions options() {
    ClientOptions options;
    options.handlers.sample = answer_sampling;
    options.handlers.elicit = [this](std::string message, json::Raw schema) {
      return fill_in(std::move(message), std::move(schema));
    };
    options.handlers.elicit_url = [this](std::string message, std::string url) {
      return visit(std::move(message), std::move(url));
    };
    options.handlers.roots = [this] { return roots; };
    options.handlers.notified = [this](std::string_view method, const json::Raw& params) {
      heard.push_back({std::string(method), params});
    };
    return options;
  }

  // Accepts with a name where one is asked for; the rest is left to the defaults.
  Task<Result<ElicitResult>> fill_in(std::string message, json::Raw schema) {
    asked.push_back(std::move(message));
    ElicitResult result;
    result.action = action;
    if (action == ElicitResult::Action::accept) {
      result.content =
          json::View(schema)["properties"]["name"].absent() ? raw("{}") : raw(R"({"name":"Ada"})");
    }
    co_return result;
  }
  Task<Result<ElicitResult>> visit(std::string message, std::string url) {
    asked.push_back(message + " " + url);
    ElicitResult result;
    result.action = action;
    co_return result;
  }

  void open(const std::string& uri, std::optional<Revision> pinned) {
    ClientOptions chosen = options();
    chosen.pinned = pinned;
    Result<std::shared_ptr<Client>> made = loop.block_on(Client::connect(loop, uri, std::move(chosen)));
    ASSERT_TRUE(made) << made.error().to_string();
    client = *made;
  }
  void TearDown() override {
    if (client) loop.block_on(client->close());
  }

  // Runs the loop until it holds; false when it does not in time.
  template <class Condition>
  bool until(Condition condition) {
    Timer limit(loop);
    bool late = false;
    limit.arm_after(30s, [&] { late = true; });
    loop.run_until([&] { return late || condition(); });
    return condition();
  }
  std::size_t count(std::string_view method) const {
    return static_cast<std::size_t>(std::ranges::count(heard, method, &Notification::method));
  }

  // The text of a tool's result, or what went wrong.
  std::string call(const std::string& name, std::string_view arguments = "{}",
                   ToolCallOptions call_options = ToolCallOptions()) {
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
  std::shared_ptr<Started> start(const std::string& method, std::string_view params) {
    auto started = std::make_shared<Started>();
    loop.spawn(run_request(client, method, raw(params), started));
    return started;
  }
  std::string completions(std::string_view params) {
    const Result<json::Raw> answer = request("completion/complete", params);
    return answer ? std::string(json::View(*answer)["completion"]["values"].text())
                  : answer.error().to_string();
  }
};

// ---- the SDKs
// ------------------------------------------------------------------------------------------------------

// ---- the SDKs: servers/*.mjs -----------------------------------------------------------------------------

struct Case {
  std::string server;
  std::string transport;  // stdio; http, json: answers as events, as JSON; sse: the pair of 2024-11-05
  std::optional<Revision> pinned;  // or what the client finds
};

inline void PrintTo(const Case& one, std::ostream* out) {
  *out << one.server << " " << one.transport;
}

inline std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.server + "_" + info.param.transport + "_" +
                     (info.param.pinned ? std::string(to_string(*info.param.pinned)) : "found");
  std::ranges::replace(name, '-', '_');
  return name;
}

// What the server's process says on its stdout: once where it is, then that it has done as told.
inline Task<std::string> hear(std::shared_ptr<Connection> control) {
  Connection::Receive hearing = control->receive();
  const Result<rpc::Message> said = co_await hearing;
  if (!said) co_return said.error().to_string();
  co_return json::View(said->params())["said"].as_string().value_or("");
}

class Sdk : public Session, public ::testing::WithParamInterface<Case> {
 public:
  Revision revision = kNewest;
  // Over HTTP: the stdin and stdout of the server's process.
  std::shared_ptr<Connection> control;

  void SetUp() override {
    const std::string script = kDir + "/servers/" + GetParam().server + ".mjs";
    if (GetParam().transport == "stdio") {
      open(node(script), GetParam().pinned);
    } else {
      listen(script);
    }
    ASSERT_TRUE(client);
    revision = client->revision();
  }
  void TearDown() override {
    Session::TearDown();
    client.reset();
    if (!control) return;
    control->close();
    loop.block_on(control->settled());
  }

 private:
  void listen(const std::string& script) {
    const bool pair = GetParam().transport == "sse";
    const ConnectResult started =
        loop.block_on(transport::connect(loop, node(script, pair ? "http" : GetParam().transport)));
    ASSERT_TRUE(started) << started.error().to_string();
    control = *started;
    const std::string url = loop.block_on(hear(control));
    ASSERT_TRUE(url.starts_with("http://")) << url;
    open(url + (pair ? "/sse" : "/mcp"), GetParam().pinned);
  }
};

// Each server in every revision it speaks.
inline std::vector<Case> stdio_cases() {
  std::vector<Case> all;
  for (const std::string server : {"v1", "v2"}) {
    for (const Revision revision : kRevisions) {
      if (!is_modern(revision) || server == "v2") all.push_back({server, "stdio", revision});
    }
    all.push_back({server, "stdio", std::nullopt});
  }
  return all;
}

// The same since Streamable HTTP has been there. The newest revision is the one that is found.
inline std::vector<Case> http_cases() {
  std::vector<Case> all = stdio_cases();
  std::erase_if(all, [](const Case& one) {
    const bool newest = one.pinned == (one.server == "v1" ? kNewestLegacy : kNewest);
    return newest || one.pinned == Revision::r2024_11_05;
  });
  for (Case& one : all) one.transport = "http";
  return all;
}

// 2.x has the pair no more.
inline std::vector<Case> pair_cases() {
  return {{"v1", "sse", Revision::r2024_11_05}, {"v1", "sse", std::nullopt}};
}

inline std::vector<Case> json_cases() {
  return {{"v1", "json", std::nullopt}, {"v2", "json", kNewestLegacy}, {"v2", "json", std::nullopt}};
}

}  // namespace fairlead::mcp
