#!/usr/bin/env python3
"""The commands that manage a gateway, on a terminal: confirmations, the editor, tables that fit."""
import json
import os
import signal
import stat
import sys
import unittest

from harness import HERE, tool
from command_line import CommandTest


class TerminalTest(CommandTest):
    def editor(self, script):
        """Returns the variables that make a Python script the editor; the document is `document`, the path `path`."""
        path = self.path("editor.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                "#!/usr/bin/env python3\nimport json, os, sys\npath = sys.argv[1]\n"
                "text = open(path).read()\ndocument = json.loads(text) if len(text) > 1 else None\n" + script
            )
        os.chmod(path, stat.S_IRWXU)
        return {"EDITOR": path}

    def edited_files(self):
        return [name for name in os.listdir(self.scratch) if name.startswith("fairlead-")]

    def save(self):
        return "open(path, 'w').write(json.dumps(document))\n"

    def test_a_removal_is_confirmed(self):
        gateway = self.start()
        self.command("servers", "add", "one", "--", "true", gateway=gateway)
        for answer in ("n", "", "nope"):
            terminal = self.on_terminal("servers", "remove", "one", gateway=gateway)
            terminal.read_until("Remove the server `one`? [y/N] ")
            terminal.type(answer + "\n")
            self.assertEqual(terminal.end(), 1, terminal.text)
        terminal = self.on_terminal("servers", "remove", "one", gateway=gateway)
        terminal.read_until("[y/N]")
        terminal.type("y\n")
        self.assertEqual(terminal.end(), 0, terminal.text)
        self.assertEqual(gateway.items("/mcp/servers"), [])

    def test_an_interrupted_question_is_no_consent(self):
        database = "sqlite:" + self.path("fairlead.db")
        self.command("servers", "add", "one", "--db", database, "--", "true")
        terminal = self.on_terminal("servers", "remove", "one", "--db", database)
        terminal.read_until("[y/N]")
        terminal.type("\x03")
        self.assertEqual(terminal.end(), 128 + signal.SIGINT, terminal.text)
        self.assertNotIn("fairlead:", terminal.text)
        self.assertEqual(self.command("servers", "list", "-q", "--db", database), "one\n")
        self.assertEqual(self.edited_files(), [])

    def test_a_question_without_an_answer_ends_after_the_timeout(self):
        database = "sqlite:" + self.path("fairlead.db")
        self.command("servers", "add", "one", "--db", database, "--", "true")
        terminal = self.on_terminal("servers", "remove", "one", "--db", database, "--timeout", "2s")
        self.assertEqual(terminal.end(), 4, terminal.text)
        self.assertIn("no answer within 2s (--timeout)", terminal.text)
        self.assertEqual(self.command("servers", "list", "-q", "--db", database), "one\n")

    def test_every_kind_of_row_is_removed_after_a_question(self):
        gateway = self.start()
        for group, noun in (("users", "user"), ("groups", "group"), ("endpoints", "endpoint")):
            self.command(group, "add", "ann", gateway=gateway)
            for answer, status in (("n", 1), ("y", 0)):
                terminal = self.on_terminal(group, "remove", "ann", gateway=gateway)
                terminal.read_until(f"Remove the {noun} `ann`? [y/N]")
                terminal.type(answer + "\n")
                self.assertEqual(terminal.end(), status, terminal.text)

    def test_a_context_is_removed_or_replaced_after_a_question(self):
        self.command("context", "add", "work", "--gateway", "http://127.0.0.1:1")
        for answer, status in (("n", 1), ("y", 0)):
            terminal = self.on_terminal("context", "add", "work", "--gateway", "http://127.0.0.1:2")
            terminal.read_until("Replace the context `work`? [y/N]")
            terminal.type(answer + "\n")
            self.assertEqual(terminal.end(), status, terminal.text)
        self.assertEqual(self.json_of("context", "show", "work")["gateway"], "http://127.0.0.1:2")
        for answer, status in (("n", 1), ("y", 0)):
            terminal = self.on_terminal("context", "remove", "work")
            terminal.read_until("Remove the context `work`? [y/N]")
            terminal.type(answer + "\n")
            self.assertEqual(terminal.end(), status, terminal.text)
        self.assertEqual(self.json_of("context", "list"), [])

    def test_the_start_of_a_server_is_shown_while_it_is_tested_and_operated(self):
        gateway = self.start()
        os.mkfifo(self.path("go"))
        self.write_state()
        wait = f'echo "downloading toy" >&2; read line < "{self.path("go")}"; exec "$@"'
        server = [sys.executable, os.path.join(HERE, "toy_server.py"), self.state_file()]
        self.command("servers", "add", "toy", "--disabled", "--", "sh", "-c", wait, "sh", *server, gateway=gateway)

        def shown(operation, *texts):
            terminal = self.on_terminal("servers", operation, "toy", gateway=gateway, columns=120, TERM="xterm")
            for text in texts:
                terminal.read_until(text)
            with open(self.path("go"), "w", encoding="utf-8") as file:
                file.write("\n")
            self.assertEqual(terminal.end(), 0, terminal.text)
            return terminal.text

        self.assertRegex(shown("test", "testing toy: handshake", "downloading toy"), r"\d+\.\d s")
        self.command("servers", "edit", "toy", "--set", "enabled=true", "--set", "config.clocks.idle=60s", gateway=gateway)
        shown("refresh", "refreshing toy")
        shown("restart", "restarting toy")

    def test_revoking_a_token_is_confirmed(self):
        gateway = self.start()
        _, token = self.user(gateway, "ann")
        identity = gateway.items("/tokens")[0]["id"]
        terminal = self.on_terminal("tokens", "revoke", identity, gateway=gateway)
        terminal.read_until("[y/N]")
        terminal.type("yes\n")
        self.assertEqual(terminal.end(), 0, terminal.text)
        self.assertEqual(gateway.request("GET", "/mcp/servers", token=token).status, 401)

    def test_a_change_of_a_tool_is_shown_before_it_is_approved(self):
        gateway = self.start()
        self.add(gateway, drift="quarantine", listed=[tool("read", "Reads files.")])
        self.write_state("toy", [tool("read", "Mails files.")])
        gateway.request("POST", "/mcp/servers/toy/refresh")
        identity = gateway.items("/drift")[0]["id"]
        terminal = self.on_terminal("drift", "approve", identity, gateway=gateway)
        terminal.read_until("Approve this change? [y/N]")
        self.assertIn("Mails files.", terminal.text)
        terminal.type("y\n")
        self.assertEqual(terminal.end(), 0, terminal.text)
        self.assertEqual(gateway.items("/drift?status=open"), [])

    def test_a_change_of_a_tool_is_rejected_after_a_question(self):
        gateway = self.start()
        self.add(gateway, drift="quarantine", listed=[tool("read", "Reads files.")])
        self.write_state("toy", [tool("read", "Mails files.")])
        gateway.request("POST", "/mcp/servers/toy/refresh")
        identity = gateway.items("/drift")[0]["id"]
        for answer, status in (("n", 1), ("y", 0)):
            terminal = self.on_terminal("drift", "reject", identity, gateway=gateway)
            terminal.read_until("Reject this change? [y/N]")
            terminal.type(answer + "\n")
            self.assertEqual(terminal.end(), status, terminal.text)
        self.assertEqual([row["status"] for row in gateway.items("/drift")], ["rejected"])

    def test_an_edited_row_is_sent_as_a_difference(self):
        gateway = self.start()
        self.command("servers", "add", "one", "--env", "A=1", "--", "true", gateway=gateway)
        editor = self.editor("assert 'id' not in document\ndocument['title'] = 'One'\ndel document['config']['env']\n" + self.save())
        terminal = self.on_terminal("servers", "edit", "one", gateway=gateway, **editor)
        self.assertEqual(terminal.end(), 0, terminal.text)
        row = gateway.get("/mcp/servers/one")
        self.assertEqual((row["title"], "env" in row["config"]), ("One", False))
        self.assertEqual(self.edited_files(), [])

    def test_an_unchanged_document_changes_nothing(self):
        gateway = self.start()
        self.command("servers", "add", "one", "--", "true", gateway=gateway)
        terminal = self.on_terminal("servers", "edit", "one", gateway=gateway, **self.editor("pass\n"))
        self.assertEqual(terminal.end(), 0, terminal.text)
        self.assertIn("Nothing was changed", terminal.text)
        self.assertEqual(gateway.get("/mcp/servers/one")["version"], 1)

    def test_a_document_that_is_not_json_is_edited_again(self):
        gateway = self.start()
        self.command("users", "add", "ann", gateway=gateway)
        script = "broken = path + '.broken'\nif os.path.exists(broken): open(path, 'w').write('{\"name\":\"bea\",\"role\":\"user\",\"enabled\":true}')\nelse: open(path, 'w').write('{'); open(broken, 'w')\n"
        terminal = self.on_terminal("users", "edit", "ann", gateway=gateway, **self.editor(script))
        terminal.read_until("Edit again? [y/N]")
        terminal.type("y\n")
        self.assertEqual(terminal.end(), 0, terminal.text)
        self.assertEqual([row["name"] for row in gateway.items("/users")], ["bea"])

    def test_a_row_that_changed_meanwhile_is_not_overwritten(self):
        gateway = self.start()
        self.command("servers", "add", "one", "--", "true", gateway=gateway)
        wait = f"open({self.path('opened')!r}, 'w').close()\ninput()\n"
        editor = self.editor(wait + "document['title'] = 'Mine'\n" + self.save())
        terminal = self.on_terminal("servers", "edit", "one", gateway=gateway, **editor)
        while not os.path.exists(self.path("opened")):
            self.assertIsNone(terminal.process.poll(), terminal.text)
        gateway.patch("/mcp/servers/one", {"title": "Theirs"})
        terminal.type("\n")
        self.assertEqual(terminal.end(), 1, terminal.text)
        self.assertIn("version_mismatch", terminal.text)
        self.assertEqual(gateway.get("/mcp/servers/one")["title"], "Theirs")
        (kept,) = self.edited_files()
        with open(self.path(kept), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["title"], "Mine")
        self.assertEqual(os.stat(self.path(kept)).st_mode & 0o777, 0o600)

    def test_a_failing_editor_changes_nothing(self):
        gateway = self.start()
        self.command("servers", "add", "one", "--", "true", gateway=gateway)
        terminal = self.on_terminal("servers", "edit", "one", gateway=gateway, EDITOR="false")
        self.assertNotEqual(terminal.end(), 0)
        self.assertIn("the editor `false`", terminal.text)
        self.assertEqual(gateway.get("/mcp/servers/one")["version"], 1)

    def test_tables_fit_the_terminal_and_align_wide_characters(self):
        gateway = self.start()
        self.command("servers", "add", "one", "--tag", "日本語", "--", "true", "x" * 200, gateway=gateway)
        self.command("servers", "add", "two", "--tag", "plain", "--", "true", gateway=gateway)
        terminal = self.on_terminal("servers", "list", gateway=gateway, columns=60)
        self.assertEqual(terminal.end(), 0)
        lines = terminal.text.replace("\r", "").splitlines()
        self.assertEqual(len(lines), 3, terminal.text)
        widths = [sum(2 if ord(c) > 0x2e80 else 1 for c in line) for line in lines]
        self.assertLessEqual(max(widths), 60, terminal.text)
        self.assertIn("…", lines[1])
        column = lines[0].index("COMMAND")
        self.assertEqual(lines[2][column:], "true")
        self.assertEqual(lines[1][column - 3 :][:4], "true")  # three characters are two columns wide
        whole = self.command("servers", "list", gateway=gateway)
        self.assertIn("x" * 200, whole)

    def test_the_width_of_a_narrow_terminal_is_respected_as_far_as_possible(self):
        gateway = self.start()
        self.command("servers", "add", "one", "--", "true", "x" * 200, gateway=gateway)
        terminal = self.on_terminal("servers", "list", gateway=gateway, columns=1)
        self.assertEqual(terminal.end(), 0)


if __name__ == "__main__":
    unittest.main()
