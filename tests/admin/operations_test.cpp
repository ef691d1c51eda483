// Operations on running servers: test, refresh, restart, stop, logs, processes, tools, drift, events.
#include <signal.h>

#include <fstream>

#include "harness.hpp"

namespace fairlead::admin::test {
namespace {

class OperationsTest : public AdminTest {
 protected:
  std::string read_until(RawClient& client, const std::string& text) {
    while (client.buffered().find(text) == std::string::npos && client.receive_more()) continue;
    EXPECT_NE(client.buffered().find(text), std::string::npos) << client.buffered();
    return client.buffered();
  }
  std::size_t process_count() {
    return on_loop([&] { return server_->gateway().pool().process_count(); });
  }
  Answer operate(const std::string& server, const std::string& operation) {
    return request("POST", "/mcp/servers/" + server + "/" + operation);
  }
  std::promise<void> acquired_;

  // A server that runs `script` with sh.
  static std::string script_body(const std::string& name, const std::string& script) {
    return R"({"name":")" + name + R"(","transport":"stdio","config":{"command":"/bin/sh","args":["-c",)" +
           std::string(json::string(script).text()) + R"(]}})";
  }
};

TEST_F(OperationsTest, TestReportsStepsAndStopsTheProcess) {
  create("/mcp/servers", server_body("files"));
  const Answer answer = operate("files", "test");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.json()["ok"].as_bool(), true) << answer.body;
  EXPECT_GT(answer.json()["tools"].as_int().value_or(0), 3);
  EXPECT_FALSE(answer.text("revision").empty());
  std::vector<std::string> steps;
  answer.json()["steps"].each_element([&](json::View step) {
    EXPECT_EQ(step["ok"].as_bool(), true);
    EXPECT_GE(step["ms"].as_double().value_or(-1), 0);
    steps.push_back(*step["name"].as_string());
    return true;
  });
  EXPECT_EQ(steps, (std::vector<std::string>{"spawn", "handshake", "list", "stop"}));
}

TEST_F(OperationsTest, TestOfAFailingServerReportsTheErrorAndStderr) {
  create("/mcp/servers", server_body("bad", "dies_in_handshake"));
  const Answer dies = operate("bad", "test");
  ASSERT_EQ(dies.status, 200) << dies.body;
  EXPECT_EQ(dies.json()["ok"].as_bool(), false);
  EXPECT_EQ(dies.json()["error"]["code"].as_string(), "exited_in_handshake") << dies.body;
  EXPECT_FALSE(dies.json()["error"]["remedy"].as_string()->empty());
  EXPECT_GT(dies.json()["stderr"].size(), 0u) << dies.body;
  create("/mcp/servers", R"({"name":"none","transport":"stdio","config":{"command":"/no/such/program"}})");
  const Answer missing = operate("none", "test");
  EXPECT_EQ(missing.json()["error"]["code"].as_string(), "command_not_found") << missing.body;
  EXPECT_EQ(missing.json()["steps"][0]["name"].as_string(), "spawn");
  EXPECT_EQ(missing.json()["steps"][0]["ok"].as_bool(), false);
  create("/mcp/servers", R"({"name":"web","transport":"http","config":{"url":"http://127.0.0.1:1/mcp"}})");
  EXPECT_EQ(operate("web", "test").json()["ok"].as_bool(), false);
}

TEST_F(OperationsTest, TestEndsAtItsDeadlineAndReapsTheProcess) {
  options_.server_test_timeout = std::chrono::milliseconds(300);
  stop();
  start();
  const std::string pid_file = directory_ / "pid";
  // Disabled, so that the gateway does not start it too.
  const std::string body = script_body("mute", "echo $$$$ > " + pid_file + "; exec sleep 1000");
  create("/mcp/servers", std::string(body).insert(1, R"("enabled":false,)"));
  const Answer answer = operate("mute", "test");
  EXPECT_EQ(answer.json()["ok"].as_bool(), false);
  EXPECT_EQ(answer.json()["error"]["code"].as_string(), "timed_out") << answer.body;
  int pid = 0;
  std::ifstream(pid_file) >> pid;
  ASSERT_GT(pid, 1);
  EXPECT_EQ(::kill(pid, 0), -1) << "the process is still running";
}

TEST_F(OperationsTest, TestAsEventsSendsEachStepAndTheResult) {
  create("/mcp/servers", server_body("files"));
  RawClient client(address_);
  client.send(
      request_text("POST", "/mcp/servers/files/test", {}, {"Accept: text/event-stream"}, kAdminToken));
  const std::string stream = read_until(client, "0\r\n\r\n");
  EXPECT_NE(stream.find("event: step\ndata: {\"name\":\"spawn\",\"ok\":true"), std::string::npos) << stream;
  EXPECT_NE(stream.find("event: result\ndata: {\"ok\":true"), std::string::npos) << stream;
  EXPECT_LT(stream.find("\"spawn\""), stream.find("\"stop\""));
}

TEST_F(OperationsTest, TestsBeyondTheLimitAreRejected) {
  options_.max_server_tests = 0;
  stop();
  start();
  create("/mcp/servers", server_body("files"));
  const Answer answer = operate("files", "test");
  EXPECT_EQ(answer.status, 429);
  EXPECT_NE(answer.body.find("max_server_tests (0)"), std::string::npos) << answer.body;
}

TEST_F(OperationsTest, RefreshListsToolsAndStoresThem) {
  create("/mcp/servers", server_body("files"));
  const Answer refreshed = operate("files", "refresh");
  ASSERT_EQ(refreshed.status, 200) << refreshed.body;
  const auto count = refreshed.json()["tools"].as_int();
  EXPECT_GT(count.value_or(0), 3);
  EXPECT_TRUE(refreshed.json()["removed"].is(json::Type::array));
  EXPECT_EQ(get("/mcp/servers/files/tools").json()["items"].size(), static_cast<std::size_t>(*count));
  const Answer tools = get("/mcp/servers/files/tools?limit=2");
  const json::View tool = tools.json()["items"][0];
  EXPECT_EQ(tool["publicName"].as_string(), "files__" + *tool["name"].as_string());
  EXPECT_FALSE(tool["firstSeen"].absent());
  EXPECT_EQ(tool["quarantined"].as_bool(), false);
  std::size_t seen = 2;
  for (std::string cursor = tools.text("nextCursor"); !cursor.empty();) {
    const Answer page = get("/mcp/servers/files/tools?limit=2&cursor=" + cursor);
    ASSERT_EQ(page.status, 200) << page.body;
    seen += page.json()["items"].size();
    cursor = page.text("nextCursor");
  }
  EXPECT_EQ(seen, static_cast<std::size_t>(*count));
  EXPECT_EQ(get("/tools?name=eat").json()["items"].size(), 1u);
  EXPECT_EQ(get("/tools?name=files__eat").json()["items"].size(), 1u);
  EXPECT_EQ(get("/tools?domain=other").json()["items"].size(), 0u);
  EXPECT_EQ(get("/tools?limit=3").json()["items"].size(), 3u);
}

TEST_F(OperationsTest, RulesAreShownInTheListOfTools) {
  create("/mcp/servers", server_body("files"));
  ASSERT_EQ(operate("files", "refresh").status, 200);
  ASSERT_EQ(request("PATCH", "/mcp/servers/files",
                    R"({"tools":{"deny":["crash*"],"hide":["eat"],"rename":{"pid":"process_id"}}})")
                .status,
            200);
  ASSERT_TRUE(fairlead::test::wait_until([&] { return get("/tools?name=pid").json()["items"].size() == 1; }));
  EXPECT_EQ(get("/tools?name=pid").json()["items"][0]["publicName"].as_string(), "files__process_id");
  EXPECT_EQ(get("/tools?name=eat").json()["items"][0]["hidden"].as_bool(), true);
  EXPECT_EQ(get("/tools?name=crash").json()["items"][0]["denied"].as_bool(), true);
  const std::string ann = create_user("ann");
  EXPECT_EQ(get("/tools?name=crash", ann).json()["items"].size(), 0u);
  EXPECT_EQ(get("/tools?name=eat", ann).json()["items"].size(), 1u);
}

TEST_F(OperationsTest, RefreshOfAFailingServerNamesTheCause) {
  create("/mcp/servers", R"({"name":"none","transport":"stdio","config":{"command":"/no/such/program"}})");
  const Answer answer = operate("none", "refresh");
  EXPECT_EQ(answer.status, 502) << answer.body;
  EXPECT_EQ(answer.code(), "command_not_found") << answer.body;
}

TEST_F(OperationsTest, RestartReplacesTheProcessAndStopEndsIt) {
  create("/mcp/servers", server_body("files"));
  ASSERT_EQ(operate("files", "refresh").status, 200);
  const auto pid = [&] {
    return get("/processes?server=files&state=ready").json()["items"][0]["pid"].as_int();
  };
  const auto first = pid();
  ASSERT_TRUE(first);
  const Answer restarted = operate("files", "restart");
  EXPECT_EQ(restarted.status, 200) << restarted.body;
  EXPECT_EQ(restarted.text("state"), "ready");
  EXPECT_EQ(restarted.json()["processes"].as_int(), 1);
  const auto second = pid();
  ASSERT_TRUE(second);
  EXPECT_NE(first, second);
  const Answer stopped = operate("files", "stop");
  EXPECT_EQ(stopped.status, 202) << stopped.body;
  EXPECT_TRUE(fairlead::test::wait_until([&] { return process_count() == 0; }));
  EXPECT_EQ(operate("files", "stop").status, 200);
  EXPECT_EQ(operate("files", "refresh").status, 200) << "the server does not start again";
}

TEST_F(OperationsTest, DisabledServersAreNotStarted) {
  create("/mcp/servers", server_body("files").insert(1, R"("enabled":false,)"));
  EXPECT_EQ(operate("files", "refresh").code(), "server_stopped");
  EXPECT_EQ(operate("files", "restart").code(), "server_stopped");
  EXPECT_EQ(operate("files", "test").json()["ok"].as_bool(), true) << "a disabled server can be tested";
}

TEST_F(OperationsTest, ProcessesHaveTheirStateAndUsage) {
  create("/mcp/servers", server_body("files"));
  ASSERT_EQ(operate("files", "refresh").status, 200);
  const Answer list = get("/processes");
  ASSERT_EQ(list.json()["items"].size(), 1u) << list.body;
  const json::View process = list.json()["items"][0];
  EXPECT_EQ(process["server"].as_string(), "files");
  EXPECT_EQ(process["state"].as_string(), "ready");
  EXPECT_GT(process["memoryBytes"].as_int().value_or(0), 1000);
  const std::string ann = create_user("ann");
  EXPECT_EQ(get("/processes", ann).body.find("files"), std::string::npos);
}

TEST_F(OperationsTest, LogsHaveTheLinesOfStderrAndFollowThem) {
  const std::string gate = directory_ / "gate";
  const std::string script = "echo first-line >&2; echo second-line >&2; while ! [ -e " + gate +
                             " ]; do sleep 0.01; done; echo third-line >&2; exec sleep 1000";
  create("/mcp/servers", script_body("noisy", script));
  ASSERT_TRUE(
      fairlead::test::wait_until([&] { return get("/mcp/servers/noisy/logs").json()["items"].size() >= 2; }));
  EXPECT_EQ(get("/mcp/servers/noisy/logs?lines=1").json()["items"][0]["line"].as_string(), "second-line");
  EXPECT_EQ(get("/mcp/servers/noisy/logs?limit=1").json()["items"].size(), 1u);
  for (const char* query : {"lines=0", "limit=0", "limit=1001"})
    EXPECT_EQ(get("/mcp/servers/noisy/logs?" + std::string(query)).status, 400) << query;
  RawClient client(address_);
  client.send(request_text("GET", "/mcp/servers/noisy/logs", {}, {"Accept: text/event-stream"}, kAdminToken));
  read_until(client, "second-line");
  std::ofstream(gate) << "open";
  EXPECT_NE(read_until(client, "third-line").find("event: line\ndata: {\"line\":\"third-line\"}"),
            std::string::npos);
}

TEST_F(OperationsTest, EventsReportRowsAndStates) {
  RawClient client(address_);
  client.send(request_text("GET", "/api/v1/events", {}, {"Accept: text/event-stream"}, kAdminToken));
  read_until(client, ": open");
  const std::string id = create("/mcp/servers", server_body("files").insert(1, R"("visibility":"hidden",)"));
  EXPECT_NE(read_until(client, "server.created").find("event: server.created\ndata: {\"id\":\"" + id),
            std::string::npos);
  ASSERT_EQ(operate("files", "refresh").status, 200);
  read_until(client, "\"to\":\"ready\"");
  read_until(client, "event: server.lists");
  ASSERT_EQ(request("PUT", "/config/mcp.max_stdio_processes", R"({"value":7})").status, 200);
  read_until(client, "event: config.updated\ndata: {\"keys\":[\"mcp.max_stdio_processes\"]");
}

TEST_F(OperationsTest, EventsOfHiddenServersAreNotSentToUsers) {
  const std::string ann = create_user("ann");
  RawClient client(address_);
  client.send(request_text("GET", "/events", {}, {}, ann));
  while (client.buffered().find("\r\n\r\n") == std::string::npos && client.receive_more()) continue;
  if (client.buffered().find("HTTP/1.1 200") == std::string::npos)
    GTEST_SKIP() << "users may not read events";
  read_until(client, ": open");
  create("/mcp/servers", server_body("secret").insert(1, R"("visibility":"hidden",)"));
  create("/mcp/servers", server_body("public"));
  EXPECT_EQ(read_until(client, "\"public\"").find("\"secret\""), std::string::npos);
}

TEST_F(OperationsTest, DriftIsListedApprovedAndRejected) {
  const std::string id =
      create("/mcp/servers", R"({"name":"web","drift":"quarantine","transport":"http","enabled":false,
      "config":{"url":"http://127.0.0.1:1/mcp"}})");
  const auto store = [&](const std::string& description) {
    registry::FetchedEntries lists;
    lists.tools.emplace();
    for (const char* name : {"a", "b"})
      lists.tools->push_back(*json::Raw::parse(R"({"name":")" + std::string(name) + R"(","description":")" +
                                               description + R"(","inputSchema":{"type":"object"}})"));
    ASSERT_TRUE(thread_->loop().block_on(registry_->store_lists(id, lists)));
  };
  store("old");
  store("new");
  const Answer list = get("/drift?status=open&server=web");
  ASSERT_EQ(list.json()["items"].size(), 2u) << list.body;
  const json::View first = list.json()["items"][0];
  EXPECT_EQ(first["before"]["description"].as_string(), "old");
  EXPECT_EQ(first["after"]["description"].as_string(), "new");
  EXPECT_EQ(first["quarantined"].as_bool(), true);
  const std::string path = "/drift/" + *first["id"].as_string();
  EXPECT_EQ(get(path).status, 200);
  const Answer approved = request("POST", path + "/approve");
  EXPECT_EQ(approved.status, 200) << approved.body;
  EXPECT_EQ(approved.text("status"), "approved");
  const std::string second = *list.json()["items"][1]["id"].as_string();
  EXPECT_EQ(request("POST", "/drift/" + second + "/reject").text("status"), "rejected");
  EXPECT_EQ(get("/drift?status=open").json()["items"].size(), 0u);
  EXPECT_EQ(get("/drift?status=nonsense").status, 400);
  EXPECT_EQ(request("POST", "/drift/unknown/approve").status, 404);
}

TEST_F(OperationsTest, RestartUsesTheCurrentSpecWhileAnOldProcessDrains) {
  create("/mcp/servers", server_body("files"));
  ASSERT_EQ(operate("files", "refresh").status, 200);
  // A lease that counts as a call delays the drain of the process.
  auto lease = std::make_shared<std::optional<pool::Lease>>();
  on_loop([&] {
    static const auto acquire = [](pool::Pool& pool, std::shared_ptr<std::optional<pool::Lease>> into,
                                   std::promise<void>* done) -> Task<void> {
      Result<pool::Lease> acquired = co_await pool.acquire(pool::Target("files"));
      if (acquired) into->emplace(std::move(*acquired));
      done->set_value();
    };
    thread_->loop().spawn(acquire(server_->gateway().pool(), lease, &acquired_));
  });
  acquired_.get_future().wait();
  ASSERT_EQ(request("PATCH", "/mcp/servers/files", R"({"config":{"env":{"NEW":"1"}}})").status, 200);
  EXPECT_EQ(operate("files", "restart").status, 200);
  const std::size_t with_new = on_loop([&] {
    std::size_t count = 0;
    for (const auto& upstream : server_->gateway().pool().upstreams("files")) {
      const auto* const program = std::get_if<pool::Program>(&upstream->spec().transport);
      if (upstream->state() == pool::UpstreamState::ready && program && program->env.contains("NEW")) ++count;
    }
    lease->reset();
    return count;
  });
  EXPECT_EQ(with_new, 1u);
}

TEST_F(OperationsTest, ChangesOfDeniedToolsAreShownToManagersOnly) {
  const std::string id = create("/mcp/servers", R"({"name":"web","tools":{"deny":["b*"]},"transport":"http",
      "enabled":false,"config":{"url":"http://127.0.0.1:1/mcp"}})");
  const std::string ann = create_user("ann");
  for (const char* description : {"old", "new"}) {
    registry::FetchedEntries lists;
    lists.tools.emplace();
    for (const char* name : {"a", "b"})
      lists.tools->push_back(*json::Raw::parse(R"({"name":")" + std::string(name) + R"(","description":")" +
                                               description + R"(","inputSchema":{"type":"object"}})"));
    ASSERT_TRUE(thread_->loop().block_on(registry_->store_lists(id, lists)));
  }
  const Answer all = get("/drift");
  ASSERT_EQ(all.json()["items"].size(), 2u) << all.body;
  const Answer seen = get("/drift", ann);
  EXPECT_EQ(seen.body.find("\"name\":\"b\""), std::string::npos) << seen.body;
  for (std::size_t i = 0; i < 2; ++i) {
    const json::View drift = all.json()["items"][i];
    const bool denied = drift["name"].as_string() == "b";
    if (denied) {
      EXPECT_EQ(get("/drift/" + *drift["id"].as_string(), ann).status, 404);
    }
  }
  const std::string path = "/drift/" + *all.json()["items"][0]["id"].as_string();
  const std::string tag = get(path).header("ETag");
  EXPECT_EQ(request("POST", path + "/approve", {}, {"If-Match: \"other\""}).status, 412);
  EXPECT_EQ(request("POST", path + "/approve", {}, {"If-Match: " + tag}).status, 200);
}

TEST_F(OperationsTest, SessionsAreListedAndEnded) {
  std::vector<std::string> ended;
  options_.sessions = [] {
    std::vector<gateway::SessionInfo> sessions(3);
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      sessions[i].id = "s" + std::to_string(i);
      sessions[i].endpoint = i == 0 ? "/mcp" : "/mcp/e/dev";
      sessions[i].principal = Principal::anonymous("127.0.0.1:4711");
    }
    return sessions;
  };
  options_.end_session = [&](const std::string& id) {
    ended.push_back(id);
    return true;
  };
  stop();
  start();
  EXPECT_EQ(get("/sessions").json()["items"].size(), 3u);
  const Answer page = get("/sessions?limit=2&endpoint=/mcp/e/dev");
  EXPECT_EQ(page.json()["items"][0]["id"].as_string(), "s1");
  EXPECT_EQ(request("DELETE", "/sessions/s1").status, 204);
  EXPECT_EQ(request("DELETE", "/sessions/s9").status, 404);
  EXPECT_EQ(ended, std::vector<std::string>{"s1"});
  const std::string ann = create_user("ann");
  EXPECT_EQ(get("/sessions", ann).body.find("s1"), std::string::npos);
  EXPECT_NE(request("DELETE", "/sessions/s1", {}, {}, ann).status, 204);
}

// Begins a session and returns its id.
std::string session_id(const Answer& answer) {
  return answer.header("Mcp-Session-Id");
}

constexpr std::string_view kInitialize =
    R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},)"
    R"("clientInfo":{"name":"tester","version":"1"}}})";

TEST_F(OperationsTest, SessionsOfClientsAreShownWithoutTheirIdAndEndWithTheirToken) {
  const std::string ann = create_user("ann");
  const std::vector<std::string> accept = {"Accept: application/json, text/event-stream"};
  const Answer begun = request("POST", "/mcp", std::string(kInitialize), accept, ann);
  ASSERT_EQ(begun.status, 200) << begun.body;
  const std::string session = session_id(begun);
  ASSERT_FALSE(session.empty()) << begun.head;
  const Answer list = get("/sessions");
  ASSERT_EQ(list.json()["items"].size(), 1u) << list.body;
  EXPECT_EQ(list.body.find(session), std::string::npos) << "the usable id is shown";
  const json::View shown = list.json()["items"][0];
  EXPECT_EQ(shown["endpoint"].as_string(), "/mcp");
  EXPECT_EQ(shown["revision"].as_string(), "2025-11-25");
  EXPECT_EQ(get("/sessions", ann).json()["items"].size(), 1u);
  const auto ping = [&](const std::string& id) {
    std::vector<std::string> headers = accept;
    headers.push_back("Mcp-Session-Id: " + id);
    return request("POST", "/mcp", R"({"jsonrpc":"2.0","id":2,"method":"ping"})", headers, ann).status;
  };
  EXPECT_EQ(ping(session), 200);
  EXPECT_EQ(request("DELETE", "/sessions/" + *shown["id"].as_string()).status, 204);
  EXPECT_EQ(ping(session), 404);
  const std::string other = session_id(request("POST", "/mcp", std::string(kInitialize), accept, ann));
  EXPECT_EQ(ping(other), 200);
  const std::string token = *get("/tokens").json()["items"][0]["id"].as_string();
  EXPECT_EQ(request("DELETE", "/tokens/" + token).status, 204);
  EXPECT_TRUE(fairlead::test::wait_until([&] { return get("/sessions").json()["items"].size() == 0; }));
}

}  // namespace
}  // namespace fairlead::admin::test
