#!/usr/bin/env python3
"""fairlead context: which gateway the commands use, and where its token comes from."""
import os
import subprocess
import unittest

from harness import ADMIN_TOKEN, PROGRAM
from command_line import CommandTest


class ContextsTest(CommandTest):
    def test_contexts_name_gateways_and_the_sources_of_tokens(self):
        gateway = self.start()
        address = f"http://127.0.0.1:{gateway.port}/mcp"
        self.assertIn("context add", self.error_of("context", "list", status=0))
        self.command("context", "add", "work", "--gateway", address, "--token-command", f"echo {ADMIN_TOKEN}", "--use")
        self.command("context", "add", "env", "--gateway", address, "--token-env", "MY_TOKEN")
        self.command("context", "add", "none", "--gateway", address)
        self.assertEqual(os.stat(self.path("config/fairlead/contexts.json")).st_mode & 0o777, 0o600)
        self.assertEqual(self.json_of("servers", "list"), [])
        self.assertEqual(self.json_of("servers", "list", "--context", "env", MY_TOKEN=ADMIN_TOKEN), [])
        self.assertIn("MY_TOKEN", self.error_of("servers", "list", FAIRLEAD_CONTEXT="env", status=2))
        self.assertIn("unauthenticated", self.error_of("servers", "list", "--context", "none", status=3))
        self.assertIn("work", self.command("context", "show"))
        self.assertIn("did you mean `work`", self.error_of("context", "use", "wrk", status=2))
        self.assertIn("--yes", self.error_of("context", "remove", "work", status=2))
        self.command("context", "remove", "work", "--yes")
        self.command("context", "use", "--none")
        self.assertEqual([row["name"] for row in self.json_of("context", "list")], ["env", "none"])

    def test_paths_of_contexts_are_valid_in_every_directory(self):
        self.command("servers", "add", "one", "--db", "sqlite:" + self.path("home.db"), "--", "true")
        for name in ("token", "ca.pem"):
            with open(self.path(name), "w", opener=lambda p, f: os.open(p, f, 0o600), encoding="utf-8") as file:
                file.write(ADMIN_TOKEN + "\n")
        options = {"capture_output": True, "cwd": self.scratch, "env": self.environment(), "check": True}
        subprocess.run([PROGRAM, "context", "add", "home", "--db", "sqlite:home.db", "--use"], **options)
        subprocess.run([PROGRAM, "context", "add", "work", "--gateway", "unix:run/x.sock", "--token-file", "token", "--ca-file", "./ca.pem"], **options)
        os.makedirs(self.path("elsewhere"))
        listed = subprocess.run([PROGRAM, "servers", "list", "-q"], **{**options, "cwd": self.path("elsewhere")})
        self.assertEqual(listed.stdout, b"one\n")
        row = self.json_of("context", "show", "work")
        self.assertEqual((row["gateway"], row["tokenFile"], row["caFile"]),
                         ("unix:" + self.path("run/x.sock"), self.path("token"), self.path("ca.pem")))  # fmt: skip

    def test_contexts_that_are_added_at_the_same_time_are_all_kept(self):
        names = [f"c{i}" for i in range(12)]
        joins = [self.in_background(self.command, "context", "add", name, "--gateway", "http://127.0.0.1:1") for name in names]
        for join in joins:
            join()
        self.assertEqual(sorted(row["name"] for row in self.json_of("context", "list")), sorted(names))

    def test_a_context_is_replaced_only_on_request(self):
        self.command("context", "add", "work", "--gateway", "http://127.0.0.1:1")
        self.command("context", "add", "work", "--gateway", "http://127.0.0.1:1")  # changes nothing
        self.assertIn("--yes", self.error_of("context", "add", "work", "--gateway", "http://127.0.0.1:2", status=2))
        self.command("context", "add", "work", "--gateway", "http://127.0.0.1:2", "--yes")
        self.assertEqual(self.json_of("context", "show", "work")["gateway"], "http://127.0.0.1:2")


if __name__ == "__main__":
    unittest.main()
