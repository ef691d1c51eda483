#!/usr/bin/env python3
"""fairlead secrets: the commands that store, list, replace and remove values, and replace the key."""
import json
import os
import sys
import unittest

sys.dont_write_bytecode = True

from harness import ADMIN_TOKEN, enter_namespace, until
from command_line import Terminal
from secrets_support import OWN, VALUE, SecretsTest, run


class CommandTest(SecretsTest):
    def setUp(self):
        super().setUp()
        self.gateway = self.start()
        self.environment = {"FAIRLEAD_GATEWAY": f"http://127.0.0.1:{self.gateway.port}", "XDG_CONFIG_HOME": self.path("config"), "XDG_STATE_HOME": self.path("state")}
        self.token_file = self.path("token")
        with open(os.open(self.token_file, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write(ADMIN_TOKEN)

    def secrets(self, *args, value=None, status=0, environment=None):
        done = run("secrets", args[0], "--token-file", self.token_file, *args[1:], value=value, environment={**self.environment, **(environment or {})})
        self.assertEqual(done.returncode, status, done)
        self.assertNotIn(VALUE, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_values_are_stored_listed_replaced_and_removed(self):
        self.server(self.gateway)
        self.assertIn("No secrets", self.secrets("list"))
        self.assertIn("Stored TOKEN of server toy", self.secrets("set", "TOKEN", "--server", "toy", value=VALUE + "\n"))
        self.assertEqual(self.token_at(self.gateway, ADMIN_TOKEN), VALUE)
        self.assertIn("toy", self.secrets("list"))
        path = self.path("value")
        with open(path, "w", encoding="utf-8") as file:
            file.write("another value\n")
        self.secrets("set", "TOKEN", "--server", "toy", "--from-file", path)
        self.assertTrue(until(lambda: self.token_at(self.gateway, ADMIN_TOKEN) == "another value", 10))
        self.secrets("set", "TOKEN", "--from-env", "SOME_VARIABLE", environment={"SOME_VARIABLE": VALUE})
        rows = json.loads(self.secrets("list", "--json"))
        self.assertEqual(sorted(bool(row.get("server")) for row in rows), [False, True])
        self.assertEqual(self.secrets("remove", "TOKEN", "--server", "toy", "--yes"), "Removed TOKEN of server toy.\n")
        self.assertTrue(until(lambda: self.token_at(self.gateway, ADMIN_TOKEN) == VALUE, 10))
        self.assertIn("there is no secret", self.secrets("remove", "TOKEN", "--server", "toy", "--yes", status=2))

    def test_value_in_the_arguments_is_refused(self):
        self.assertIn("arguments of every process", self.secrets("set", "TOKEN", "hunter22", status=2))
        self.assertEqual(self.gateway.items("/secrets"), [])
        self.secrets("set", "TOKEN", "-", value=VALUE)
        self.assertEqual(len(self.gateway.items("/secrets")), 1)

    def answer(self, arguments, question, text):
        """Runs a command on a terminal, and types `text` when it asks. Returns its exit status, and what it has shown."""
        terminal = Terminal(["secrets", *arguments, "--token-file", self.token_file], {**os.environ, **self.environment, "TERM": "xterm"})
        self.addCleanup(terminal.close)
        terminal.read_until(question)
        terminal.type(text)
        return terminal.end(), terminal.text

    def test_prompt_does_not_show_the_value(self):
        status, shown = self.answer(["set", "TOKEN"], "Value of TOKEN:", VALUE + "\n")
        self.assertEqual(status, 0, shown)
        self.assertIn("Stored TOKEN.", shown)
        self.assertNotIn(VALUE, shown)
        self.assertEqual([row["name"] for row in self.gateway.items("/secrets")], ["TOKEN"])

    def test_removal_is_confirmed(self):
        self.secrets("set", "TOKEN", value=VALUE)
        for text in ("n\n", "\n", "nope\n", "\x03", "\x04"):
            status, shown = self.answer(["remove", "TOKEN"], "Remove the secret TOKEN? [y/N] ", text)
            self.assertNotEqual(status, 0, shown)
            if text.endswith("\n"):
                self.assertEqual(status, 1, shown)
            self.assertEqual(len(self.gateway.items("/secrets")), 1)
        status, shown = self.answer(["remove", "TOKEN"], "[y/N]", "y\n")
        self.assertEqual(status, 0, shown)
        self.assertEqual(self.gateway.items("/secrets"), [])

    def test_new_key_is_confirmed(self):
        former = self.gateway.get("/secrets/status")["keyId"]
        for text in ("n\n", "\n", "\x03", "\x04"):
            status, shown = self.answer(["rekey"], "former key. [y/N] ", text)
            self.assertNotEqual(status, 0, shown)
            if text.endswith("\n"):
                self.assertEqual(status, 1, shown)
            self.assertEqual(self.gateway.get("/secrets/status")["keyId"], former)
        status, shown = self.answer(["rekey"], "[y/N]", "y\n")
        self.assertEqual(status, 0, shown)
        self.assertNotEqual(self.gateway.get("/secrets/status")["keyId"], former)

    def test_value_of_a_user_is_removed_with_user_only(self):
        self.server(self.gateway)
        _, ann = self.user(self.gateway, "ann")
        self.gateway.create("/secrets", {"name": "TOKEN", "value": OWN, "server": "toy"}, token=ann)
        self.assertIn("--user USER", self.secrets("remove", "TOKEN", "--server", "toy", "--yes", status=2))
        self.assertEqual(len(self.gateway.items("/secrets")), 1)
        self.assertEqual(self.secrets("remove", "TOKEN", "--server", "toy", "--user", "ann", "--yes"), "Removed TOKEN of server toy for user ann.\n")
        self.assertEqual(self.gateway.items("/secrets"), [])

    def test_user_replaces_and_removes_own_values_of_one_name(self):
        for server in ("one", "two"):
            self.server(self.gateway, server)
        self.secrets("set", "TOKEN", "--server", "one", value=VALUE)
        _, ann = self.user(self.gateway, "ann")
        with open(self.token_file, "w", encoding="utf-8") as file:
            file.write(ann)
        for value in (OWN, OWN + "2"):
            for server in ("one", "two"):
                self.assertIn(f"Stored TOKEN of server {server}", self.secrets("set", "TOKEN", "--server", server, value=value))
        self.assertEqual(self.token_at(self.gateway, ann, "one"), OWN + "2")
        self.assertEqual(self.token_at(self.gateway, ann, "two"), OWN + "2")
        self.secrets("remove", "TOKEN", "--server", "one", "--yes")
        self.assertEqual(self.token_at(self.gateway, ann, "one"), VALUE)
        self.assertEqual(self.token_at(self.gateway, ann, "two"), OWN + "2")
        self.assertIn("there is no secret", self.secrets("remove", "TOKEN", "--server", "one", "--yes", status=2))

    def test_rekey_replaces_the_key_file_and_values_stay(self):
        self.server(self.gateway)
        self.secrets("set", "TOKEN", value=VALUE)
        with open(self.path("fairlead.db.key"), encoding="utf-8") as file:
            before = file.read()
        former = self.gateway.get("/secrets/status")["keyId"]
        self.assertIn(former, self.secrets("status"))
        self.assertIn("--yes", self.secrets("rekey", status=2))
        self.assertIn(former, self.secrets("rekey", "--data-key", "--yes"))
        with open(self.path("fairlead.db.key"), encoding="utf-8") as file:
            self.assertNotEqual(file.read(), before)
        self.assertNotEqual(self.gateway.get("/secrets/status")["keyId"], former)
        self.assertEqual(self.token_at(self.gateway, ADMIN_TOKEN), VALUE)
        self.assert_exits_cleanly(self.gateway)
        again = self.start()
        self.assertEqual(self.token_at(again, ADMIN_TOKEN), VALUE)
        self.assert_exits_cleanly(again)


if __name__ == "__main__":
    enter_namespace(__file__)
    unittest.main()
