#!/usr/bin/env python3
"""Values that users store for themselves: nobody else gets them, they change no host, blank no log, and they follow their user. Also
on PostgreSQL with two gateways."""
import http.server
import os
import subprocess
import sys
import threading
import unittest

sys.dont_write_bytecode = True

from harness import ADMIN_TOKEN, LEGACY, MODERN, enter_namespace, tool, until
from postgres import PostgresServer
from secrets_support import OTHERS, OWN, REFERENCE, TOOLS, VALUE, SecretsTest, run


class RecordingServer(http.server.ThreadingHTTPServer):
    """Refuses all requests, and keeps their headers."""

    def __init__(self):
        self.headers = []
        recorder = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                recorder.headers.append(str(self.headers))
                self.send_error(503)

            do_GET = do_POST

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def handle_error(self, *_):
        """A client that does not wait for the body is no error."""

    def close(self):
        self.shutdown()
        self.server_close()
        self.thread.join()


class PerSessionTest(SecretsTest):
    def start_with_values(self):
        """Returns a gateway that has lists of `toy`, but runs no process of it, and the tokens of two users."""
        gateway = self.start()
        _, ann = self.user(gateway, "ann")
        _, bob = self.user(gateway, "bob")
        self.secret(gateway, VALUE)
        self.server(gateway, config={**REFERENCE, "sharing": "per_session"})
        self.assertEqual(self.token_at(gateway, ADMIN_TOKEN), VALUE)
        gateway.create("/secrets", {"name": "TOKEN", "value": OWN, "server": "toy"}, token=ann)
        self.assert_exits_cleanly(gateway)
        return self.start(), ann, bob

    def test_own_value_serves_its_user_only(self):
        gateway, ann, bob = self.start_with_values()
        for era in (MODERN, LEGACY):
            self.assertEqual(self.token_at(gateway, ann, era=era), OWN)
            self.assertEqual(self.token_at(gateway, bob, era=era), VALUE)
            self.assertEqual(self.token_at(gateway, ADMIN_TOKEN, era=era), VALUE)
        self.assertEqual(self.token_at(gateway, ann), OWN)
        self.assert_exits_cleanly(gateway)

    def test_lists_of_an_own_process_are_shown_to_its_user_only(self):
        gateway, ann, bob = self.start_with_values()
        self.write_state("toy", [*TOOLS, tool("private")])
        self.call(gateway.mcp(token=ann), "toy__pid")
        self.assertTrue(until(lambda: "toy__private" in gateway.mcp(token=ann).tools()))
        self.write_state("toy", TOOLS)
        self.call(gateway.mcp(token=bob), "toy__pid")
        self.assertNotIn("toy__private", gateway.mcp(token=bob).tools())
        self.assertNotIn("private", [row["name"] for row in gateway.items("/mcp/servers/toy/tools")])
        self.assert_exits_cleanly(gateway)


class AttackTest(SecretsTest):
    def failure_code(self, gateway, token):
        """Returns the code of the error of a call."""
        return gateway.mcp(token=token).raw("tools/call", name="web__any", arguments={}).problem()

    def test_own_value_changes_no_host(self):
        gateway = self.start()
        _, ann = self.user(gateway, "ann")
        good, bad = RecordingServer(), RecordingServer()
        self.addCleanup(good.close)
        self.addCleanup(bad.close)
        self.secret(gateway, f"127.0.0.1:{good.server_port}", "HOST")
        self.secret(gateway, VALUE, "API")
        config = {"transport": "http", "url": "http://${secret:HOST}/mcp", "headers": {"Authorization": "Bearer ${secret:API}"}}
        row = gateway.create("/mcp/servers", {"name": "web", "transport": "http", "config": config})
        self.assertTrue(until(lambda: any(VALUE in headers for headers in good.headers)), gateway.log[-10:])
        for host in (f"127.0.0.1:{bad.server_port}", f"127.0.0.1:{bad.server_port}/?"):
            own = gateway.create("/secrets", {"name": "HOST", "value": host, "server": "web"}, token=ann)
            started = self.assert_problem(gateway.request("POST", f"/mcp/servers/{row['id']}/restart"), 502)
            self.assertNotEqual(started["code"], "secret_unavailable", "the administrator has no own value")
            # The first call may wait for the lists that all users share, and starts nothing for ann.
            self.assertTrue(until(lambda: self.failure_code(gateway, ann) == "secret_unavailable"), gateway.log[-10:])
            self.assertEqual(gateway.request("DELETE", f"/secrets/{own['id']}").status, 204)
        self.assertEqual(bad.headers, [])
        self.assert_exits_cleanly(gateway)

    def test_own_value_does_not_blank_the_log(self):
        gateway = self.start()
        _, ann = self.user(gateway, "ann")
        self.secret(gateway, VALUE)
        self.server(gateway)
        words = "server\nreason\nnot found\nfailed\ninfo"
        gateway.create("/secrets", {"name": "TOKEN", "value": words, "server": "toy"}, token=ann)
        self.assertEqual(self.token_at(gateway, ann), words)
        gateway.create("/mcp/servers", {"name": "bad", "transport": "stdio", "config": {"command": "no-such-program-of-the-tests"}})
        wanted = "command not found: no-such-program-of-the-tests"
        self.assertTrue(until(lambda: any("server=bad" in line and "failed" in line for line in gateway.log)), (wanted, gateway.log[-10:]))
        self.assertFalse([line for line in gateway.log if "***" in line])
        self.assert_exits_cleanly(gateway)


class OwnerTest(SecretsTest):
    def test_server_of_a_user_who_is_no_administrator_any_more_loses_the_values_of_the_system(self):
        gateway = self.start()
        row, _ = self.user(gateway, "ann", role="admin")
        self.secret(gateway, VALUE)
        server = self.server(gateway, owner=row["id"], visibility="visible")
        self.assertEqual(self.token_at(gateway, ADMIN_TOKEN), VALUE)
        gateway.patch(f"/users/{row['id']}", {"role": "user"})
        self.assert_refused(gateway, server)
        gateway.patch(f"/users/{row['id']}", {"role": "admin"})
        self.assertTrue(until(lambda: self.value_or_error(gateway) == VALUE, 20))
        self.assert_exits_cleanly(gateway)

    def test_server_that_is_given_to_a_user_loses_the_values_of_the_system(self):
        gateway = self.start()
        row, _ = self.user(gateway, "ann")
        self.secret(gateway, VALUE)
        server = self.server(gateway, visibility="visible")
        self.assertEqual(self.token_at(gateway, ADMIN_TOKEN), VALUE)
        gateway.patch(f"/mcp/servers/{server['id']}", {"owner": row["id"]})
        self.assert_refused(gateway, server)
        self.secret(gateway, OWN, server="toy", user="ann")
        self.assertTrue(until(lambda: self.value_or_error(gateway) == OWN, 20))
        self.assert_exits_cleanly(gateway)

    def value_or_error(self, gateway):
        answer = gateway.mcp().post("tools/call", name="toy__variable", arguments={"name": "TOKEN"})
        return answer["result"]["content"][0]["text"] if "result" in answer else "error"

    def assert_refused(self, gateway, server):
        self.assertTrue(until(lambda: self.value_or_error(gateway) == "error", 20))
        problem = self.assert_problem(gateway.request("POST", f"/mcp/servers/{server['id']}/restart"), 502, "secret_unavailable")
        self.assertIn("ann", problem["remedy"])


class OperationTest(SecretsTest):
    def test_tested_server_gets_the_value_of_the_caller(self):
        gateway = self.start()
        row, token = self.user(gateway, "adm", role="admin")
        server = self.server(gateway)
        self.secret(gateway, OWN, server="toy", user="adm")
        outcome = gateway.request("POST", f"/mcp/servers/{server['id']}/test", token=token).json()
        self.assertTrue(outcome["ok"], outcome)
        outcome = gateway.request("POST", f"/mcp/servers/{server['id']}/test").json()
        self.assertEqual(outcome["error"]["code"], "secret_unavailable")
        refused = self.assert_problem(gateway.request("POST", f"/mcp/servers/{server['id']}/refresh", token=token), 502, "secret_unavailable")
        self.assertNotIn("caller", refused["detail"], "the lists that are stored are those of no user")
        self.assert_exits_cleanly(gateway)


class PostgresTest(SecretsTest):
    @classmethod
    def setUpClass(cls):
        cls.postgres = PostgresServer()
        cls.addClassCleanup(cls.postgres.close)

    def setUp(self):
        super().setUp()
        self.database = self.postgres.new_database("t" + self.word)
        self.key_file = self.path("key")
        with open(os.open(self.key_file, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write("5" * 64)

    def files_with(self, text):
        """Returns the files of PostgreSQL, with its write-ahead log, that contain the text."""
        self.postgres.sql("CHECKPOINT")
        found = subprocess.run(["grep", "-rlaF", text, self.postgres.data], capture_output=True, text=True, check=False)
        return found.stdout.split()

    def test_own_values_at_two_gateways_are_in_no_file(self):
        gateways = [self.start("--secret-key-file", self.key_file) for _ in range(2)]
        _, ann = self.user(gateways[0], "ann")
        _, bob = self.user(gateways[0], "bob")
        self.secret(gateways[0], VALUE)
        self.server(gateways[0])
        self.assertTrue(until(lambda: gateways[1].request("GET", "/mcp/servers/toy", token=ann).status == 200))
        gateways[1].create("/secrets", {"name": "TOKEN", "value": OWN, "server": "toy"}, token=ann)
        gateways[0].create("/secrets", {"name": "TOKEN", "value": OTHERS, "server": "toy"}, token=bob)
        for gateway in gateways:
            self.assertTrue(until(lambda: len(gateway.items("/secrets")) == 3))
            self.assertEqual(self.token_at(gateway, ann), OWN)
            self.assertEqual(self.token_at(gateway, bob), OTHERS)
            self.assertEqual(self.token_at(gateway, ADMIN_TOKEN), VALUE)
        for value in (VALUE, OWN, OTHERS, "5" * 64):
            self.assertEqual(self.files_with(value), [])
        self.assertNotEqual(self.files_with("ann"), [], "names are found")
        self.assertEqual([gateway.end() for gateway in gateways], [0, 0])
        self.assert_no_survivors()

    def test_gateway_without_the_key_of_the_database_does_not_start(self):
        gateway = self.start()
        self.assertTrue(until(lambda: any("no secrets can be stored" in line and "--secret-key-file" in line for line in gateway.log)), gateway.log)
        self.assertEqual(gateway.request("POST", "/secrets", {"name": "A", "value": VALUE}).problem(), "secret_key_missing")
        self.assert_exits_cleanly(gateway)
        gateway = self.start("--secret-key-file", self.key_file)
        self.secret(gateway, VALUE)
        self.assert_exits_cleanly(gateway)
        refused = run("serve", "--db", self.database, "--listen", "127.0.0.1:0", environment={"XDG_STATE_HOME": self.path("state")})
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("--secret-key-file", refused.stderr)


if __name__ == "__main__":
    enter_namespace(__file__)
    unittest.main()
