#!/usr/bin/env python3
"""The questions of fairlead servers import, on a terminal: values, hidden values, and the offer to move secrets."""
import json
import os
import unittest

import harness  # noqa: F401 (before command_line)
from command_line import CommandTest

SECRET = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
INTERRUPTIONS = {"Ctrl-C": "\x03", "Ctrl-D": "\x04"}


class ImportTerminalTest(CommandTest):
    def setUp(self):
        super().setUp()
        os.makedirs(self.path("home"))

    def write(self, name, content):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(content, file)
        return path

    def literal_file(self):
        return self.write("literal.json", {"mcpServers": {"git": {"command": "true", "env": {"GITHUB_TOKEN": SECRET}}}})

    def inputs_file(self):
        return self.write("inputs.json", {
            "inputs": [{"id": "region", "type": "promptString", "description": "The region"},
                       {"id": "api-key", "type": "promptString", "description": "The key", "password": True}],
            "servers": {"cloud": {"command": "true", "args": ["--region", "${input:region}"], "env": {"KEY": "${input:api-key}"}}},
        })  # fmt: skip

    def import_on_terminal(self, path, *arguments, gateway=None):
        return self.on_terminal("servers", "import", path, *arguments, gateway=gateway)

    def test_an_interrupted_offer_to_move_secrets_imports_nothing(self):
        gateway = self.start()
        database = "sqlite:" + self.path("offline.db")
        for name, key in INTERRUPTIONS.items():
            for arguments, target in (((), gateway), (("--db", database), None)):
                terminal = self.import_on_terminal(self.literal_file(), *arguments, gateway=target)
                terminal.read_until("Store them encrypted")
                terminal.read_until("[y/N] ")
                terminal.type(key)
                self.assertNotEqual(terminal.end(), 0, (name, terminal.text))
                self.assertNotIn("git: new", terminal.text, name)
                self.assertNotIn("cannot connect", terminal.text, name)
        self.assertEqual(gateway.items("/mcp/servers"), [])
        self.assertEqual(self.command("servers", "list", "-q", "--db", database), "")

    def test_an_interrupted_question_for_a_value_imports_nothing(self):
        gateway = self.start()
        for key in INTERRUPTIONS.values():
            for first in ([], ["eu\n"]):
                terminal = self.import_on_terminal(self.inputs_file(), gateway=gateway)
                terminal.read_until("cloud needs `region` (The region)")
                for line in first:
                    terminal.type(line)
                    terminal.read_until("cloud needs `api-key` (The key); empty: later")
                terminal.type(key)
                self.assertNotEqual(terminal.end(), 0, terminal.text)
        self.assertEqual(gateway.items("/mcp/servers"), [])

    def test_the_answer_decides_whether_secrets_are_moved(self):
        gateway = self.start()
        for answer, shown in (("n", SECRET), ("y", "${secret:GITHUB_TOKEN}")):
            terminal = self.import_on_terminal(self.literal_file(), gateway=gateway)
            terminal.read_until("[y/N] ")
            terminal.type(answer + "\n")
            self.assertEqual(terminal.end(), 0, terminal.text)
            self.assertNotIn(SECRET, terminal.text)
            row = gateway.items("/mcp/servers")[0]
            self.assertEqual(row["config"]["env"]["GITHUB_TOKEN"], shown)
            gateway.request("DELETE", "/mcp/servers/git")

    def test_values_are_asked_for_and_secret_ones_are_not_shown(self):
        gateway = self.start()
        terminal = self.import_on_terminal(self.inputs_file(), gateway=gateway)
        terminal.read_until("cloud needs `region` (The region):")
        terminal.type("eu-1\n")
        terminal.read_until("cloud needs `api-key` (The key); empty: later:")
        terminal.type("hunter22\n")
        self.assertEqual(terminal.end(), 0, terminal.text)
        self.assertIn("eu-1", terminal.text)
        self.assertNotIn("hunter22", terminal.text)
        row = gateway.items("/mcp/servers")[0]
        self.assertEqual(row["config"]["args"], ["--region", "eu-1"])
        self.assertEqual(row["config"]["env"], {"KEY": "${secret:api-key}"})
        self.assertTrue(row["enabled"])
        self.assertEqual(len(gateway.items("/secrets")), 1)

    def test_an_empty_answer_leaves_a_secret_for_later(self):
        gateway = self.start()
        terminal = self.import_on_terminal(self.inputs_file(), "--input", "region=eu", gateway=gateway)
        terminal.read_until("empty: later:")
        terminal.type("\n")
        self.assertEqual(terminal.end(), 0, terminal.text)
        self.assertIn("needs the secret api-key", terminal.text)
        self.assertEqual(gateway.items("/secrets"), [])


if __name__ == "__main__":
    unittest.main()
