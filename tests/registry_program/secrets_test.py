#!/usr/bin/env python3
"""Secrets of the built gateway: whose value a server gets, and that a value is nowhere else. The attacks search for a value in the
database, in other processes' command lines, in the log, in responses, in events and in a core dump."""
import glob
import os
import resource
import shutil
import signal
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True

from harness import ADMIN_TOKEN, LEGACY, MODERN, SANITIZED, RpcError, enter_namespace, until
from secrets_support import OTHERS, OWN, TOOLS, VALUE, SecretsTest, run


class ResolutionTest(SecretsTest):
    def test_users_get_their_own_values_and_others_that_of_the_server(self):
        gateway = self.start()
        _, ann = self.user(gateway, "ann")
        _, bob = self.user(gateway, "bob")
        _, eve = self.user(gateway, "eve")
        self.secret(gateway, VALUE)
        self.server(gateway)
        self.assertEqual(self.token_at(gateway, ann), VALUE)
        gateway.create("/secrets", {"name": "TOKEN", "value": OWN, "server": "toy"}, token=ann)
        gateway.create("/secrets", {"name": "TOKEN", "value": OTHERS, "server": "toy"}, token=bob)
        for era in (MODERN, LEGACY):
            self.assertEqual(self.token_at(gateway, ann, era=era), OWN)
            self.assertEqual(self.token_at(gateway, bob, era=era), OTHERS)
            self.assertEqual(self.token_at(gateway, eve, era=era), VALUE)
            self.assertEqual(self.token_at(gateway, ADMIN_TOKEN, era=era), VALUE)
        pids = {user: self.call(gateway.mcp(token=user), "toy__pid") for user in (ann, bob, eve)}
        self.assertEqual(len(set(pids.values())), 3, pids)
        self.assert_exits_cleanly(gateway)
        again = self.start()  # the lists are stored, and the values still belong to their users
        self.assertEqual(self.token_at(again, bob), OTHERS)
        self.assertEqual(self.token_at(again, ann), OWN)
        self.assertEqual(self.token_at(again, eve), VALUE)
        self.assert_exits_cleanly(again)

    def test_client_without_a_user_gets_the_value_of_the_server(self):
        gateway = self.start("--auth-mode", "none")
        _, ann = self.user(gateway, "ann")
        self.secret(gateway, VALUE)
        self.server(gateway)
        self.secret(gateway, OWN, server="toy", user="ann")
        self.assertEqual(self.token_at(gateway, None), VALUE)
        self.assertEqual(self.token_at(gateway, ann), OWN)
        self.assert_exits_cleanly(gateway)

    def test_tools_are_listed_if_only_the_caller_has_a_value(self):
        gateway = self.start()
        _, ann = self.user(gateway, "ann")
        _, bob = self.user(gateway, "bob")
        self.server(gateway)
        gateway.create("/secrets", {"name": "TOKEN", "value": OWN, "server": "toy"}, token=ann)
        self.assertEqual(self.token_at(gateway, ann), OWN)
        self.assertEqual([name for name in gateway.mcp(token=bob).tools() if name.startswith("toy__")], [])
        with self.assertRaises(RpcError) as caught:
            gateway.mcp(token=bob).call("toy__variable", name="TOKEN")
        self.assertNotIn(OWN, str(caught.exception))
        self.assert_exits_cleanly(gateway)

    def test_changed_value_replaces_the_processes_that_use_it_and_no_others(self):
        gateway = self.start()
        ann_row, ann = self.user(gateway, "ann")
        _, bob = self.user(gateway, "bob")
        shared = self.secret(gateway, VALUE)
        self.server(gateway)
        self.add(gateway, "other", TOOLS)
        own = self.secret(gateway, OWN, server="toy", user="ann")
        self.assertEqual(own["user"], ann_row["id"])
        self.assertEqual(self.token_at(gateway, ann), OWN)
        pid = {user: self.call(gateway.mcp(token=user), "toy__pid") for user in (ann, bob)}
        other = self.call(gateway.mcp(), "other__pid")
        gateway.patch(f"/secrets/{own['id']}", {"value": OWN + "2"})
        self.assertEqual(self.token_at(gateway, ann), OWN + "2")
        self.assertEqual(self.call(gateway.mcp(token=bob), "toy__pid"), pid[bob], "the value of bob is the same")
        now = self.call(gateway.mcp(token=ann), "toy__pid")
        gateway.patch(f"/secrets/{shared['id']}", {"value": VALUE + "2"})
        self.assertTrue(until(lambda: self.token_at(gateway, bob) == VALUE + "2", 10))
        self.assertEqual(self.call(gateway.mcp(token=ann), "toy__pid"), now, "ann has a value of her own")
        self.assertEqual(self.call(gateway.mcp(), "other__pid"), other, "the server does not refer to it")
        self.assert_exits_cleanly(gateway)

    def test_active_call_finishes_when_the_value_changes(self):
        gateway = self.start()
        secret = self.secret(gateway, VALUE)
        self.server(gateway)
        self.assertEqual(self.token_at(gateway, ADMIN_TOKEN), VALUE)
        path = self.path("go on")
        waiting = self.in_background(self.call, gateway.mcp(), "toy__wait", {"path": path})
        self.assertTrue(until(lambda: any(row["calls"] for row in gateway.items("/processes"))))
        gateway.patch(f"/secrets/{secret['id']}", {"value": VALUE + "2"})
        self.assertTrue(until(lambda: self.token_at(gateway, ADMIN_TOKEN) == VALUE + "2", 10))
        with open(path, "w", encoding="utf-8"):
            pass
        waiting()
        self.assert_exits_cleanly(gateway)

    def test_missing_value_names_server_key_secret_and_who_must_provide_it(self):
        gateway = self.start()
        _, ann = self.user(gateway, "ann")
        row = self.server(gateway)
        problem = self.assert_problem(gateway.request("POST", f"/mcp/servers/{row['id']}/refresh"), 502, "secret_unavailable")
        for text in ("toy", "env.TOKEN", "TOKEN", "fairlead secrets set TOKEN --server toy", "administrator"):
            self.assertIn(text, problem["detail"] + problem["remedy"])
        listed = gateway.get(f"/mcp/servers/{row['id']}/secrets", token=ann)["items"]
        self.assertEqual([(item["name"], item["source"]) for item in listed], [("TOKEN", "missing")])
        self.assertIn("fairlead secrets set TOKEN --server toy", listed[0]["remedy"])
        self.secret(gateway, VALUE)
        self.assertEqual(gateway.get(f"/mcp/servers/{row['id']}/secrets", token=ann)["items"], [{"name": "TOKEN", "source": "system"}])
        self.assertEqual(self.token_at(gateway, ann), VALUE)
        self.assert_exits_cleanly(gateway)

    def test_users_manage_their_own_secrets_only(self):
        gateway = self.start()
        _, ann = self.user(gateway, "ann")
        _, bob = self.user(gateway, "bob")
        self.server(gateway)
        self.server(gateway, "hidden", visibility="hidden")
        shared = self.secret(gateway, VALUE)
        own = gateway.create("/secrets", {"name": "TOKEN", "value": OWN, "server": "toy"}, token=ann)
        self.assertEqual([row["id"] for row in gateway.items("/secrets", token=ann)], [own["id"]])
        self.assertEqual(gateway.items("/secrets", token=bob), [])
        for token, row in ((bob, own), (ann, shared)):
            self.assert_problem(gateway.request("GET", f"/secrets/{row['id']}", token=token), 404)
            self.assert_problem(gateway.request("PATCH", f"/secrets/{row['id']}", {"value": "x"}, token=token), 404)
            self.assert_problem(gateway.request("DELETE", f"/secrets/{row['id']}", token=token), 404)
        self.assert_problem(gateway.request("POST", "/secrets", {"name": "A", "value": "x"}, token=ann), 422, pointer="/server")
        self.assert_problem(gateway.request("POST", "/secrets", {"name": "A", "value": "x", "server": "hidden"}, token=ann), 404)
        self.assert_problem(gateway.request("POST", "/secrets", {"name": "A", "value": "x", "server": "toy", "user": "bob"}, token=ann), 403)
        self.assert_problem(gateway.request("POST", "/secrets/rekey", {}, token=ann), 403)
        self.assert_problem(gateway.request("GET", "/secrets/status", token=ann), 403)
        self.assertEqual(gateway.request("DELETE", f"/secrets/{own['id']}", token=ann).status, 204)
        self.assert_exits_cleanly(gateway)


class AttackTest(SecretsTest):
    def files_with(self, text):
        """Returns the files of the database that contain the text."""
        found = []
        for path in glob.glob(self.path("fairlead.db") + "*"):
            with open(path, "rb") as file:
                if text.encode() in file.read():
                    found.append(path)
        return found

    def command_lines_with(self, text):
        found = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path, "rb") as file:
                    line = file.read()
            except OSError:
                continue
            if text.encode() in line:
                found.append((path, line))
        return found

    def test_value_is_not_in_database_log_responses_and_events(self):
        gateway = self.start("--log-level", "trace")
        events = gateway.stream("/events")
        row = self.server(gateway, config={"env": {"TOKEN": "${secret:TOKEN}", "BOTH": "x ${secret:TOKEN} y"}})
        answers = []

        def send(method, path, body=None, **options):
            answers.append(gateway.request(method, path, body, **options))
            return answers[-1]

        created = send("POST", "/secrets", {"name": "TOKEN", "value": VALUE}, headers={"Idempotency-Key": "k1"})
        self.assertEqual(created.status, 201, created)
        repeated = send("POST", "/secrets", {"name": "TOKEN", "value": VALUE}, headers={"Idempotency-Key": "k1"})
        self.assertEqual((repeated.status, repeated.headers["Idempotency-Replayed"]), (201, "true"))
        self.assertEqual(send("POST", "/secrets", {"name": "TOKEN", "value": VALUE + "2"}, headers={"Idempotency-Key": "k1"}).status, 422)
        self.assertEqual(self.token_at(gateway, ADMIN_TOKEN), VALUE)
        secret = created.json()["id"]
        # Errors of every kind with the value in the body.
        send("POST", "/secrets", {"name": "TOKEN", "value": VALUE})
        send("POST", "/secrets", {"name": "A B", "value": VALUE})
        send("POST", "/secrets", {"name": "A", "value": VALUE, "server": "nothing"})
        send("POST", "/secrets", {"name": "A", "value": [VALUE]})
        send("POST", "/secrets", {"name": "A", "value": VALUE * 4000})
        send("POST", "/secrets", {"name": "A", "value": VALUE, "more": 1})
        send("POST", "/secrets", f'{{"name":"A","value":"{VALUE}"'.encode())
        send("POST", "/secrets", f'{{"name":"A","value":"{VALUE}\\x"}}'.encode())
        send("POST", "/secrets", {"name": "A", "value": VALUE}, token="wrong-token-of-the-tests")
        send("POST", "/secrets", {"name": "A", "value": VALUE}, headers={"Content-Type": "text/plain"})
        send("PATCH", f"/secrets/{secret}", {"value": VALUE, "name": "B"})
        send("PATCH", f"/secrets/{secret}", {"value": VALUE, "version": 7})
        for answer in answers[3:]:
            self.assertGreaterEqual(answer.status, 400, answer)
        for path in ("/secrets", f"/secrets/{secret}", f"/mcp/servers/{row['id']}/secrets", f"/mcp/servers/{row['id']}", "/mcp/servers", "/secrets/status", "/processes", "/health", "/config", "/openapi.json", f"/mcp/servers/{row['id']}/logs"):
            send("GET", path)
        send("POST", f"/mcp/servers/{row['id']}/test")
        for answer in answers:
            self.assertNotIn(VALUE, answer.text)
            self.assertNotIn(VALUE, str(answer.headers))
        events.wait_for(lambda event: event.name == "secret.created")
        self.assertNotIn(VALUE, str(events.seen))
        events.close()
        self.assertEqual(self.files_with(VALUE), [])
        self.assertNotIn(VALUE, "\n".join(gateway.log))
        self.assert_exits_cleanly(gateway)
        self.assertEqual(self.files_with(VALUE), [])
        self.assertNotIn(VALUE, "\n".join(gateway.log))

    def test_value_is_in_the_arguments_of_the_child_that_asked_for_it_only(self):
        gateway = self.start()
        self.secret(gateway, VALUE)
        self.server(gateway)
        self.assertEqual(self.token_at(gateway, ADMIN_TOKEN), VALUE)
        self.assertEqual(self.command_lines_with(VALUE), [])
        body = self.toy("asks", TOOLS)
        body["config"]["args"].append("${secret:TOKEN}")
        gateway.create("/mcp/servers", body)
        mcp = gateway.mcp()
        self.assertTrue(until(lambda: "asks__pid" in mcp.tools(), 20))
        pid = self.call(mcp, "asks__pid")
        self.assertEqual([path for path, _ in self.command_lines_with(VALUE)], [f"/proc/{pid}/cmdline"])
        self.assert_exits_cleanly(gateway)

    def test_key_is_private_and_not_in_the_environment(self):
        gateway = self.start()
        path = self.path("fairlead.db.key")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assert_exits_cleanly(gateway)
        with open(path, encoding="utf-8") as file:
            key = file.read().strip()
        gateway = self.start(environment={"FAIRLEAD_SECRET_KEY": key})
        self.assertEqual(gateway.get("/secrets/status")["source"], "FAIRLEAD_SECRET_KEY")
        self.add(gateway)
        for path in glob.glob("/proc/[0-9]*/environ"):
            try:
                with open(path, "rb") as file:
                    self.assertNotIn(key.encode(), file.read(), path)
            except OSError:
                pass
        self.assert_exits_cleanly(gateway)

    @unittest.skipIf(SANITIZED, "a sanitizer handles the signal itself")
    def test_gateway_dumps_no_core(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))  # inherited: without the gateway's own limit it dumps
        self.addCleanup(resource.setrlimit, resource.RLIMIT_CORE, (soft, hard))
        for options, expected in (((), {"1"}), (("--core-dumps",), {"unlimited" if hard == resource.RLIM_INFINITY else str(hard)})):
            gateway = self.start(*options)
            if not options:
                self.secret(gateway, VALUE)
                self.server(gateway)
            self.assertEqual(self.token_at(gateway, ADMIN_TOKEN), VALUE)
            pid = gateway.process.pid
            limits = {self.core_limit(process) for process in (pid, *gateway.server_processes("toy"))}
            if hard != 0:  # otherwise the processes cannot have the limit 1
                self.assertEqual(limits, expected)
            if not options:
                directory = os.readlink(f"/proc/{pid}/cwd")
                before = set(os.listdir(directory))
                os.kill(pid, signal.SIGABRT)
                gateway.process.wait(30)
                self.assertEqual([name for name in set(os.listdir(directory)) - before if name.startswith("core")], [])
            else:
                self.assert_exits_cleanly(gateway)

    def core_limit(self, pid):
        with open(f"/proc/{pid}/limits", encoding="utf-8") as file:
            return next(line for line in file if line.startswith("Max core file size"))[26:].split()[0]

    @unittest.skipIf(SANITIZED or not shutil.which("gcore"), "needs gcore")
    def test_core_of_a_debugger_has_no_key(self):
        gateway = self.start()
        self.secret(gateway, VALUE)
        with open(self.path("fairlead.db.key"), encoding="utf-8") as file:
            key = file.read().strip()
        self.assert_exits_cleanly(gateway)
        gateway = self.start()  # the value is not in use, and was not sent to this process
        dump = subprocess.run(["gcore", "-o", self.path("dump"), str(gateway.process.pid)], capture_output=True, text=True, timeout=120, check=False)
        path = self.path("dump") + f".{gateway.process.pid}"
        if dump.returncode != 0 or not os.path.exists(path):
            self.skipTest("gcore cannot attach here")
        with open(path, "rb") as file:
            core = file.read()
        self.assertGreater(len(core), 100_000)
        for secret in (bytes.fromhex(key), key.encode(), VALUE.encode()):
            self.assertTrue(secret not in core)
        self.assert_exits_cleanly(gateway)

    def test_file_that_others_can_read_or_another_key_stops_the_start(self):
        gateway = self.start()
        self.secret(gateway, VALUE)
        self.assert_exits_cleanly(gateway)
        path = self.path("fairlead.db.key")
        database = ("serve", "--db", "sqlite:" + self.path("fairlead.db"), "--listen", "127.0.0.1:0")
        state = {"XDG_STATE_HOME": self.path("state")}
        os.chmod(path, 0o644)
        refused = run(*database, environment=state)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("chmod 600", refused.stderr)
        os.rename(path, path + ".away")
        refused = run(*database, environment=state)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("does not exist", refused.stderr)
        self.assertIn("Restore the key file", refused.stderr)
        self.assertNotIn("openssl", refused.stderr, "a new key cannot decrypt what the database has")
        self.assertFalse(os.path.exists(path), "no new key for secrets that need the old one")
        other = "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE="
        refused = run(*database, "--secret-key-command", f"echo {other}", environment=state)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("--secret-key-command", refused.stderr)
        self.assertNotIn(other, refused.stderr.replace(f"echo {other}", ""))
        gateway = self.start("--secret-key-command", f"cat '{path}.away'")
        self.assertEqual(gateway.get("/secrets/status")["usable"], True)
        self.assert_exits_cleanly(gateway)


if __name__ == "__main__":
    enter_namespace(__file__)
    unittest.main()
