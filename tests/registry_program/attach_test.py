#!/usr/bin/env python3
"""fairlead serve --stdio --attach: desktop clients share a gateway that runs; and serve --stdio with a database that is served."""
import json
import os
import re
import signal
import subprocess
import unittest

from harness import ADMIN_TOKEN, DEADLINE, PROGRAM, SANITIZED, RegistryTest, enter_namespace, tool, until
from stdio_client import StdioClient

TOOLS = [tool("pid", annotations={"readOnlyHint": True}), tool("echo"), tool("wait"), tool("progress"), tool("ask"), tool("announce")]


class AttachTest(RegistryTest):
    def setUp(self):
        super().setUp()
        self.clients = []

    def clean_up(self):
        for client in self.clients:
            if client.process.poll() is None:
                client.process.kill()
            client.close()
        super().clean_up()

    def client(self, *args, environment=None, capabilities=None):
        state = {"XDG_STATE_HOME": self.path("state"), "PYTHONDONTWRITEBYTECODE": "1", "TEST_WORD": self.word}
        client = StdioClient(*args, environment={**state, **(environment or {})}, capabilities=capabilities)
        self.clients.append(client)
        return client

    def attached(self, gateway, *args, token=ADMIN_TOKEN, **options):
        url = f"http://127.0.0.1:{gateway.port}/mcp"
        return self.client("--attach", url, *args, environment={"FAIRLEAD_TOKEN": token} if token else {}, **options)

    def served(self):
        gateway = self.start()
        self.add(gateway, listed=TOOLS, config={"sharing": "shared"})
        return gateway

    def address(self):
        return "sqlite:" + self.path("fairlead.db")

    def store_toy(self):
        """Stores the toy server in the database, which no gateway serves afterwards."""
        gateway = self.served()
        self.assertEqual(gateway.end(), 0)

    # ---- explicit ----

    def test_both_eras_list_and_call_tools_through_the_bridge(self):
        gateway = self.served()
        for capabilities in (None, {}):
            with self.subTest(capabilities):
                client = self.attached(gateway, capabilities=capabilities)
                self.assertIn("toy__echo", client.tools())
                self.assertEqual(client.text("toy__echo", word="a\u00e9\U0001f600"), '{"word": "a\\u00e9\\ud83d\\ude00"}')
                self.assertEqual(client.close(), 0)
        self.assertEqual(self.starts(), 1)
        self.assert_exits_cleanly(gateway)

    def test_session_of_a_legacy_client_ends_with_its_bridge(self):
        gateway = self.served()
        client = self.attached(gateway, capabilities={})
        client.tools()
        self.assertEqual(len(gateway.items("/sessions")), 1)
        self.assertEqual(client.close(), 0)
        self.assertEqual(gateway.items("/sessions"), [])

    def test_server_asks_the_client_through_the_bridge(self):
        gateway = self.served()
        client = self.attached(gateway, capabilities={"elicitation": {}})
        call = client.request("tools/call", {"name": "toy__ask", "arguments": {}})
        question = client.find(lambda message: message.get("method") == "elicitation/create")
        self.assertEqual(question["params"]["message"], "go on?")
        client.send({"id": question["id"], "result": {"action": "accept", "content": {}}})
        answer = json.loads(client.response(call)["result"]["content"][0]["text"])
        self.assertEqual(answer["action"], "accept")

    def test_progress_and_changed_lists_reach_the_client(self):
        gateway = self.served()
        client = self.attached(gateway, capabilities={})
        client.tools()
        client.call("toy__progress", token="mine")
        numbers = [client.notification("notifications/progress")["params"] for _ in range(3)]
        self.assertEqual([(entry["progressToken"], entry["progress"]) for entry in numbers], [("mine", 1), ("mine", 2), ("mine", 3)])
        self.write_state(tools=[*TOOLS, tool("another")])
        client.call("toy__announce")
        client.notification("notifications/tools/list_changed")
        self.assertIn("toy__another", client.tools())

    def test_cancelled_call_gets_no_response_and_later_calls_go_on(self):
        gateway = self.served()
        for capabilities in (None, {}):
            with self.subTest(capabilities):
                client = self.attached(gateway, capabilities=capabilities)
                waiting = client.request("tools/call", {"name": "toy__wait", "arguments": {"path": self.path("never")}})
                client.notify("notifications/cancelled", {"requestId": waiting, "reason": "enough"})
                self.assertIn("toy__echo", client.tools())
                self.assertEqual(client.close(), 0)
                self.assertFalse([message for message in client.set_aside if message.get("id") == waiting])

    def test_requests_in_flight_are_completed_after_the_end_of_input(self):
        gateway = self.served()
        client = self.attached(gateway)
        last = client.request("tools/call", {"name": "toy__echo", "arguments": {"last": 1}})
        client.process.stdin.close()
        self.assertEqual(client.response(last)["result"]["content"][0]["text"], '{"last": 1}')
        self.assertEqual(client.close(), 0)

    def test_ten_bridges_share_one_process_and_use_few_megabytes(self):
        gateway = self.served()
        clients = [self.attached(gateway, capabilities=None if number % 2 else {}) for number in range(10)]
        self.assertEqual(len({client.text("toy__pid") for client in clients}), 1)
        self.assertEqual(self.starts(), 1)
        if not SANITIZED:
            self.assertEqual([], [client.log for client in clients if private_mebibytes(client.process.pid) > 8])
        # No bridge has started a process of its own.
        self.assertEqual([], [client for client in clients if children(client.process.pid)])

    def test_batch_of_a_legacy_client_is_answered_as_a_batch(self):
        gateway = self.served()
        client = self.attached(gateway, capabilities={})
        client.process.stdin.write(b'[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","id":"b","method":"ping"},'
                                   b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}]\n')  # fmt: skip
        client.process.stdin.flush()
        batch = client.find(lambda message: "batch" in message)["batch"]
        self.assertEqual({entry["id"] for entry in batch}, {"a", "b"})

    def test_invalid_lines_get_errors_and_do_not_end_the_bridge(self):
        gateway = self.served()
        client = self.attached(gateway)
        client.process.stdin.write(b'nonsense\n{"jsonrpc":"2.0","id":7}\n')
        client.process.stdin.flush()
        self.assertEqual(client.find(lambda message: message.get("id") is None and "error" in message)["error"]["code"], -32700)
        self.assertEqual(client.response(7)["error"]["code"], -32600)
        self.assertIn("toy__echo", client.tools())

    # ---- failures ----

    def test_wrong_token_is_an_error_that_names_the_remedy(self):
        gateway = self.served()
        client = self.attached(gateway, token="this-is-not-a-token")
        error = client.response(client.request("tools/list"))["error"]
        self.assertEqual(error["data"]["code"], "unauthorized")
        self.assertIn("FAIRLEAD_TOKEN", error["data"]["remedy"])
        self.assertNotIn("this-is-not-a-token", json.dumps(error) + "".join(client.log))

    def test_token_file_is_read(self):
        gateway = self.served()
        with open(self.path("token"), "w", encoding="utf-8") as file:
            file.write(ADMIN_TOKEN + "\n")
        client = self.attached(gateway, "--token-file", self.path("token"), token=None)
        self.assertIn("toy__echo", client.tools())

    def test_absent_gateway_is_an_error_for_each_request(self):
        client = self.client("--attach", "http://127.0.0.1:9/mcp")
        for _ in range(2):
            error = client.response(client.request("tools/list"))["error"]
            self.assertEqual(error["data"]["code"], "connection_failed")
            self.assertIn("fairlead serve", error["data"]["remedy"])
        self.assertEqual(client.close(), 0)

    def test_calls_fail_when_the_gateway_dies_and_work_when_it_is_back(self):
        listen = None
        for capabilities in (None, {}):
            with self.subTest(capabilities):
                gateway = self.start("--listen", listen) if listen else self.served()
                listen = f"127.0.0.1:{gateway.port}"
                client = self.attached(gateway, capabilities=capabilities)
                client.tools()
                waiting = client.request("tools/call", {"name": "toy__wait", "arguments": {"path": self.path("never")}})
                gateway.end(signal.SIGKILL)
                error = client.response(waiting)["error"]
                self.assertIn(error["data"]["code"], ("connection_lost", "connection_failed"))
                again = self.start("--listen", listen)
                self.assertTrue(until(lambda: "result" in client.response(client.request("tools/list"))), client.log)
                self.assertEqual(client.close(), 0)
                again.end()

    def test_idle_client_learns_that_lists_may_have_changed_when_the_gateway_was_restarted(self):
        gateway = self.served()
        listen = f"127.0.0.1:{gateway.port}"
        client = self.attached(gateway, capabilities={})
        client.tools()
        gateway.end()
        again = self.start("--listen", listen)
        client.notification("notifications/tools/list_changed")
        self.assertEqual(len(again.items("/sessions")), 1)
        self.assertIn("toy__echo", client.tools())

    def test_entry_of_a_connected_client_works(self):
        gateway = self.served()
        url = f"http://127.0.0.1:{gateway.port}/mcp"
        user, _ = self.user(gateway, "ann")
        home = {"HOME": self.path("home"), "XDG_CONFIG_HOME": self.path("home/.config"), "XDG_STATE_HOME": self.path("state"),
                "FAIRLEAD_DB": self.address(), "FAIRLEAD_TOKEN": ADMIN_TOKEN}  # fmt: skip
        os.mkdir(self.path("home"))

        def connect(*args):
            return subprocess.run([PROGRAM, "connect", "--create", *args], env={**os.environ, **home}, capture_output=True, text=True, timeout=DEADLINE)

        refused = connect("cursor")
        self.assertEqual(refused.returncode, 2, refused)
        self.assertIn("--create-token", refused.stderr)
        self.assertEqual(os.listdir(self.path("home/.cursor")), [])
        self.assertEqual(connect("cursor", "--create-token", "ann").returncode, 0)
        with open(self.path("home/.cursor/mcp.json"), encoding="utf-8") as file:
            entry = json.load(file)["mcpServers"]["fairlead"]
        self.assertEqual(entry["url"], url)
        self.assertIn("toy__echo", gateway.mcp(token=entry["headers"]["Authorization"].removeprefix("Bearer ")).tools())
        self.assertEqual(connect("claude-desktop").returncode, 0)
        with open(self.path("home/.config/Claude/claude_desktop_config.json"), encoding="utf-8") as file:
            entry = json.load(file)["mcpServers"]["fairlead"]
        self.assertEqual(entry["args"], ["serve", "--stdio"])
        client = self.client(environment={"FAIRLEAD_DB": self.address(), "FAIRLEAD_TOKEN": ADMIN_TOKEN})
        self.assertIn("toy__echo", client.tools())

    def connect(self, *args, status=0, **variables):
        home = {"HOME": self.path("home"), "XDG_CONFIG_HOME": self.path("home/.config"), "XDG_STATE_HOME": self.path("other-state")}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FAIRLEAD_")}
        done = subprocess.run([PROGRAM, *args], env={**kept, **home, **variables}, capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual(done.returncode, status, done)
        return done.stdout + done.stderr

    def cursor_entry(self):
        with open(self.path("home/.cursor/mcp.json"), encoding="utf-8") as file:
            return json.load(file)["mcpServers"]["fairlead"]

    def test_token_is_created_at_the_gateway_that_the_entry_names(self):
        gateway = self.served()
        self.user(gateway, "ann")
        os.mkdir(self.path("home"))
        url = f"http://127.0.0.1:{gateway.port}"
        with open(self.path("token"), "w", encoding="ascii") as file:
            file.write(ADMIN_TOKEN)
        os.chmod(self.path("token"), 0o600)
        self.connect("context", "add", "work", "--gateway", url, "--token-file", self.path("token"), "--use")
        self.connect("connect", "cursor", "--create", "--create-token", "ann")
        entry = self.cursor_entry()
        self.assertEqual(entry["url"], url + "/mcp")
        self.assertIn("toy__echo", gateway.mcp(token=entry["headers"]["Authorization"].removeprefix("Bearer ")).tools())
        self.connect("connect", "cursor", "--create-token", "ann", "--url", url + "/mcp/", FAIRLEAD_TOKEN=ADMIN_TOKEN)
        self.connect("context", "remove", "work", "--yes")
        self.connect("connect", "cursor", "--endpoint", "dev", "--create-token", "ann", FAIRLEAD_GATEWAY=url, FAIRLEAD_TOKEN=ADMIN_TOKEN)
        self.assertEqual(self.cursor_entry()["url"], url + "/mcp/e/dev")
        self.connect("connect", "claude-desktop", "--create", "--create-token", "ann", FAIRLEAD_GATEWAY=url, FAIRLEAD_TOKEN=ADMIN_TOKEN)
        with open(self.path("home/.config/Claude/claude_desktop_config.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["mcpServers"]["fairlead"]["args"], ["serve", "--stdio", "--attach", url + "/mcp"])

    def test_host_whose_name_begins_like_the_path_gets_a_token(self):
        gateway = self.served()
        self.user(gateway, "ann")
        os.mkdir(self.path("home"))
        output = self.connect("connect", "cursor", "--create", "--url", "http://mcp.invalid:1/mcp", "--create-token", "ann", status=2,
                              FAIRLEAD_TOKEN=ADMIN_TOKEN)  # fmt: skip
        self.assertIn("cannot look up mcp.invalid", output)
        self.assertNotIn("is not a URL", output)

    def test_token_that_was_not_written_is_revoked(self):
        gateway = self.served()
        self.user(gateway, "ann")
        os.makedirs(self.path("home/.codex"))
        with open(self.path("home/.codex/config.toml"), "w", encoding="utf-8") as file:
            file.write('mcp_servers = { a = { command = "x" } }\n')  # cannot be extended
        url = f"http://127.0.0.1:{gateway.port}/mcp"
        self.connect("connect", "codex", "--url", url, "--create-token", "ann", status=2, FAIRLEAD_TOKEN=ADMIN_TOKEN)
        self.assertEqual([token["name"] for token in gateway.items("/tokens") if "revokedAt" in token], ["connect codex"])

    def test_usage_errors(self):
        for args, message in ((["--attach", "nonsense"], "is not the address of a gateway"),
                              (["--attach", "http://user:word@127.0.0.1/mcp"], "user info is not allowed")):  # fmt: skip
            client = self.client(*args)
            self.assertEqual(client.close(), 2)
            self.assertIn(message, "".join(client.log))

    # ---- automatic ----

    def test_database_that_a_gateway_serves_is_used_through_that_gateway(self):
        gateway = self.start(token=None)
        with open(self.path("state/fairlead/admin.token"), encoding="ascii") as file:
            gateway.token = file.read().strip()
        self.add(gateway, listed=TOOLS, config={"sharing": "shared"})
        gateway.create("/users", {"name": "ann", "role": "user"})  # from now on a token is needed
        pid = gateway.mcp().call("toy__pid")
        client = self.client("--db", self.address())
        self.assertEqual(client.text("toy__pid"), pid["content"][0]["text"] if isinstance(pid, dict) else pid)
        self.assertTrue(until(lambda: any("attaching" in line for line in client.log)), client.log)
        self.assertEqual(client.close(), 0)
        with open(self.path("fairlead.db.gateway"), encoding="utf-8") as file:
            self.assertEqual(json.load(file), {"url": f"http://127.0.0.1:{gateway.port}/mcp", "pid": gateway.process.pid})
        self.assertEqual(os.stat(self.path("fairlead.db.gateway")).st_mode & 0o777, 0o600)
        self.assert_exits_cleanly(gateway)
        self.assertFalse(os.path.exists(self.path("fairlead.db.gateway")))

    def test_clients_that_start_together_share_one_gateway(self):
        self.store_toy()
        clients = [self.client("--db", self.address()) for _ in range(5)]
        self.assertEqual(len({client.text("toy__pid") for client in clients}), 1)
        serving = [client for client in clients if not any("attaching" in line for line in client.log)]
        self.assertEqual(len(serving), 1)
        self.assertEqual(os.stat(self.path("fairlead.db.sock")).st_mode & 0o777, 0o600)

    def test_gateway_on_stdio_goes_on_until_the_last_attached_client_has_gone(self):
        self.store_toy()
        first = self.client("--db", self.address())
        pid = first.text("toy__pid")
        others = [self.client("--db", self.address(), capabilities=capabilities) for capabilities in (None, {})]
        for other in others:
            self.assertEqual(other.text("toy__pid"), pid)
        first.process.stdin.close()
        self.assertTrue(until(lambda: any("until the last has gone" in line for line in first.log)), first.log)
        for other in others:
            self.assertEqual(other.text("toy__pid"), pid)
            self.assertIsNone(first.process.poll())
            self.assertEqual(other.close(), 0)
        self.assertEqual(first.close(), 0)
        for name in ("fairlead.db.sock", "fairlead.db.gateway"):
            self.assertFalse(os.path.exists(self.path(name)), name)
        self.assert_no_survivors()

    def test_files_of_a_killed_gateway_are_ignored(self):
        self.store_toy()
        first = self.client("--db", self.address())
        first.text("toy__pid")
        first.process.kill()
        first.process.wait()
        self.assertTrue(os.path.exists(self.path("fairlead.db.gateway")))
        second = self.client("--db", self.address())
        self.assertIn("toy__echo", second.tools())
        self.assertFalse(any("attaching" in line for line in second.log), second.log)
        with open(self.path("fairlead.db.gateway"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["pid"], second.process.pid)

    def test_attached_client_gets_errors_when_the_serving_one_is_killed_and_finds_its_successor(self):
        self.store_toy()
        first = self.client("--db", self.address())
        first.text("toy__pid")
        other = self.client("--db", self.address())
        waiting = other.request("tools/call", {"name": "toy__wait", "arguments": {"path": self.path("never")}})
        other.tools()
        first.process.kill()
        self.assertIn("error", other.response(waiting))
        third = self.client("--db", self.address())
        pid = third.text("toy__pid")
        self.assertTrue(until(lambda: "result" in other.response(other.request("tools/list"))))
        self.assertEqual(other.text("toy__pid"), pid)


def private_mebibytes(pid):
    """Returns the memory of a process that is not shared with others."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"RssAnon:\s+(\d+)", file.read())[1]) / 1024


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return file.read().split()


if __name__ == "__main__":
    enter_namespace(__file__)
    unittest.main()
