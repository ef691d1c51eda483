#!/usr/bin/env python3
"""fairlead connect: the files of clients in a home directory of the test."""
import glob
import json
import os
import random
import signal
import stat
import subprocess
import time
import unittest

from program import DEADLINE, ENVIRONMENT, PROGRAM, ProgramTest

URL = "http://127.0.0.1:9/mcp"  # nothing listens there
CLAUDE = '{\n\t// mine\n\t"numStartups": 3,\n\t"mcpServers": {\n\t\t"files": {"command": "npx"}, // last\n\t},\n}\n'


class ConnectTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.home = self.path("home")
        os.mkdir(self.home)

    def environment(self):
        return {**ENVIRONMENT, "HOME": self.home, "XDG_STATE_HOME": self.path("state"), "XDG_CONFIG_HOME": self.file(".config")}

    def file(self, name):
        return os.path.join(self.home, name)

    def write(self, name, text):
        path = self.file(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        return path

    def read(self, path):
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()

    def connect(self, *args, status=0, **options):
        options.setdefault("cwd", self.scratch)
        result = subprocess.run([PROGRAM, "connect", *args], env=self.environment(), capture_output=True, text=True, timeout=DEADLINE, **options)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result.stdout if status == 0 else result.stderr

    def backups(self, path):
        return sorted(glob.glob(path + ".before-fairlead-*Z"))

    def test_entry_is_added_and_everything_else_kept_and_undone(self):
        path = self.write(".claude.json", CLAUDE)
        os.chmod(path, 0o640)
        printed = self.connect("claude-code", "--url", URL)
        self.assertIn(path, printed)
        self.assertIn("No gateway answers", printed)
        text = self.read(path)
        self.assertIn(f'\t\t"fairlead": {{\n\t\t\t"type": "http",\n\t\t\t"url": "{URL}"\n\t\t}},\n\t}},\n}}\n', text)
        self.assertTrue(text.startswith(CLAUDE[: CLAUDE.index("\t},\n}")]))
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o640)
        (backup,) = self.backups(path)
        self.assertEqual(self.read(backup), CLAUDE)
        self.assertEqual(stat.S_IMODE(os.stat(backup).st_mode), 0o640)
        self.assertIn("connected already", self.connect("claude-code", "--url", URL))
        self.assertEqual(self.read(path), text)
        self.assertIn("restored", self.connect("--undo", "claude-code"))
        self.assertEqual(self.read(path), CLAUDE)
        self.assertEqual(self.backups(path), [])
        self.assertIn("is not connected", self.connect("--undo", "claude-code"))

    def test_undo_removes_only_the_entry_of_a_file_that_was_changed_since(self):
        path = self.write(".cursor/mcp.json", '{"mcpServers": {"a": {"command": "x"}}}\n')
        self.connect("cursor", "--url", URL)
        changed = self.read(path).replace('"x"', '"y"')
        self.write(".cursor/mcp.json", changed)
        self.assertIn("changed since", self.connect("--undo", "cursor"))
        self.assertEqual(self.read(path), '{"mcpServers": {"a": {"command": "y"}}}\n')

    def test_file_that_connecting_created_is_removed_by_undo(self):
        os.mkdir(self.file(".cursor"))
        self.connect("cursor", "--url", URL)
        self.assertEqual(json.loads(self.read(self.file(".cursor/mcp.json"))), {"mcpServers": {"fairlead": {"url": URL}}})
        self.assertIn("removed", self.connect("--undo", "cursor"))
        self.assertFalse(os.path.exists(self.file(".cursor/mcp.json")))

    def write_token(self):
        with open(self.path("token"), "w", encoding="utf-8") as file:
            file.write("a-token-of-the-test-1234\n")
        return self.path("token")

    def test_undo_recognises_a_toml_file_that_is_as_connecting_left_it(self):
        os.mkdir(self.file(".codex"))
        path = self.file(".codex/config.toml")
        for token in (["--token-file", self.write_token()], ["--token-env", "TOKEN"]):
            self.connect("codex", "--url", URL, *token)
            self.assertIn("removed", self.connect("--undo", "codex"))
            self.assertEqual(os.listdir(os.path.dirname(path)), [])
            self.write(".codex/config.toml", 'model = "m" # mine\n')
            self.connect("codex", "--url", URL, *token)
            self.assertIn("restored", self.connect("--undo", "codex"))
            self.assertEqual(self.read(path), 'model = "m" # mine\n')
            self.assertEqual(os.listdir(os.path.dirname(path)), ["config.toml"])
            os.remove(path)

    def test_undo_keeps_other_changes_of_a_toml_file(self):
        path = self.write(".codex/config.toml", 'model = "m"\n')
        self.connect("codex", "--url", URL, "--token-env", "TOKEN")
        self.write(".codex/config.toml", self.read(path).replace('"m"', '"n"'))
        self.assertIn("changed since", self.connect("--undo", "codex"))
        self.assertEqual(self.read(path), 'model = "n"\n')

    def test_client_that_is_not_installed_is_reported(self):
        self.assertIn("does not seem to be installed", self.connect("cursor", "--url", URL, status=2))
        self.connect("cursor", "--url", URL, "--create")
        self.assertTrue(os.path.exists(self.file(".cursor/mcp.json")))
        self.assertIn("the clients are", self.connect("nobody", status=2))

    def test_client_without_urls_starts_this_program(self):
        os.makedirs(self.file(".config/Claude"))
        path = self.file(".config/Claude/claude_desktop_config.json")
        self.connect("claude-desktop")
        entry = json.loads(self.read(path))["mcpServers"]["fairlead"]
        self.assertEqual(entry, {"command": os.path.realpath(PROGRAM), "args": ["serve", "--stdio"]})
        self.connect("claude-desktop", "--url", URL)
        entry = json.loads(self.read(path))["mcpServers"]["fairlead"]
        self.assertEqual(entry["args"], ["serve", "--stdio", "--attach", URL])
        self.connect("claude-desktop", "--endpoint", "dev")
        entry = json.loads(self.read(path))["mcpServers"]["fairlead"]
        self.assertEqual(entry["args"][-1], "http://127.0.0.1:8808/mcp/e/dev")

    def test_toml_and_yaml_files_are_edited(self):
        codex = self.write(".codex/config.toml", 'model = "m" # mine\n')
        self.connect("codex", "--url", URL, "--token-env", "TOKEN")
        self.assertEqual(self.read(codex), f'model = "m" # mine\n\n[mcp_servers.fairlead]\nurl = "{URL}"\nbearer_token_env_var = "TOKEN"\n')
        self.connect("--undo", "codex")
        self.assertEqual(self.read(codex), 'model = "m" # mine\n')
        goose = self.write(".config/goose/config.yaml", "# g\nextensions:\n  a:\n    enabled: true\n")
        self.connect("goose", "--url", URL)
        self.assertIn(f'    uri: "{URL}"\n  a:\n', self.read(goose))

    def test_symbolic_link_is_followed(self):
        real = self.write("dotfiles/mcp.json", "{}\n")
        os.mkdir(self.file(".cursor"))
        link = self.file(".cursor/mcp.json")
        os.symlink("../dotfiles/mcp.json", link)
        self.connect("cursor", "--url", URL)
        self.assertTrue(os.path.islink(link))
        self.assertIn("fairlead", self.read(real))
        self.assertEqual(len(self.backups(real)), 1)
        os.remove(real)
        self.assertIn("symbolic link", self.connect("cursor", "--url", URL, status=3))

    def test_file_that_cannot_be_parsed_is_left_alone(self):
        path = self.write(".cursor/mcp.json", '{\n  "mcpServers": {\n    "a" {}\n  }\n}\n')
        self.assertIn("line 3", self.connect("cursor", "--url", URL, status=2))
        self.assertEqual(self.read(path), '{\n  "mcpServers": {\n    "a" {}\n  }\n}\n')
        self.assertEqual(os.listdir(os.path.dirname(path)), ["mcp.json"])

    def test_dry_run_shows_the_change_and_writes_nothing(self):
        path = self.write(".cursor/mcp.json", '{\n  "a": 1\n}\n')
        with open(self.path("token"), "w", encoding="utf-8") as file:
            file.write("a-token-of-the-test-1234\n")
        diff = self.connect("cursor", "--url", URL, "--token-file", self.path("token"), "--dry-run")
        self.assertIn(f"--- {path}\n+++ {path}\n@@ -1,3 +1,11 @@\n {{\n-  \"a\": 1\n+  \"a\": 1,\n+  \"mcpServers\": {{\n", diff)
        self.assertIn("Bearer (token)", diff)
        self.assertNotIn("a-token-of-the-test-1234", diff)
        self.assertEqual(self.read(path), '{\n  "a": 1\n}\n')
        self.connect("cursor", "--url", URL, "--token-file", self.path("token"))
        self.assertIn("Bearer a-token-of-the-test-1234", self.read(path))

    def test_dry_run_of_undo_writes_nothing(self):
        path = self.write(".cursor/mcp.json", "{}\n")
        self.connect("cursor", "--url", URL)
        connected = self.read(path)
        self.assertIn('-  "mcpServers": {\n', self.connect("--undo", "--dry-run", "cursor"))
        self.assertEqual(self.read(path), connected)

    def test_invalid_name_is_refused(self):
        self.write(".cursor/mcp.json", "{}\n")
        self.assertIn("--name", self.connect("cursor", "--url", URL, "--name", 'a"b', status=2))

    def test_only_the_newest_backups_are_kept(self):
        path = self.write(".cursor/mcp.json", "{}\n")
        for number in range(8):
            self.connect("cursor", "--url", f"http://127.0.0.1:9/mcp/{number}")
        self.assertEqual(len(self.backups(path)), 5)

    def test_list_shows_which_clients_are_installed_and_connected(self):
        self.write(".claude.json", CLAUDE)
        self.write(".cursor/mcp.json", "{}")
        self.write(".gemini/settings.json", "{")
        self.connect("claude-code", "--url", URL)
        rows = {row["client"]: row for row in json.loads(self.connect("--list", "--json", "--url", URL))}
        self.assertEqual({name: row["state"] for name, row in rows.items()},
                         {"claude-code": "connected", "cursor": "not connected", "gemini": "unreadable"})  # fmt: skip
        self.assertEqual(json.loads(self.connect("--list", "--json"))[0]["state"], "outdated")
        self.assertIn("not installed", self.connect("--list", "--all"))

    def test_entry_that_attaches_to_another_gateway_is_outdated(self):
        os.makedirs(self.file(".config/Claude"))
        self.connect("claude-desktop", "--url", URL)
        state = {row["client"]: row["state"] for row in json.loads(self.connect("--list", "--json", "--url", URL))}
        self.assertEqual(state, {"claude-desktop": "connected"})
        state = {row["client"]: row["state"] for row in json.loads(self.connect("--list", "--json", "--url", "http://127.0.0.1:8/mcp"))}
        self.assertEqual(state, {"claude-desktop": "outdated"})

    def test_every_endpoint_of_the_gateway_is_connected(self):
        self.write(".cursor/mcp.json", "{}\n")
        os.makedirs(self.file(".config/Claude"))
        for client in ("cursor", "claude-desktop"):
            self.connect(client, "--endpoint", "discover")
        rows = {row["client"]: row for row in json.loads(self.connect("--list", "--json"))}
        for client in ("cursor", "claude-desktop"):
            self.assertEqual((rows[client]["state"], rows[client]["endpoint"]), ("connected", "e/discover"), rows)
        self.assertIn("connected (e/discover)", self.connect("--list"))
        self.connect("cursor", "--url", "http://127.0.0.1:9/behind/a/proxy")
        rows = {row["client"]: row for row in json.loads(self.connect("--list", "--json", "--url", "http://127.0.0.1:9/behind/a/proxy"))}
        self.assertEqual(rows["cursor"]["state"], "connected")
        rows = {row["client"]: row for row in json.loads(self.connect("--list", "--json", "--url", "http://127.0.0.1:8/mcp"))}
        self.assertEqual({name: row["state"] for name, row in rows.items()}, {"cursor": "outdated", "claude-desktop": "outdated"})

    def test_result_is_printed_as_json(self):
        path = self.write(".cursor/mcp.json", "{}\n")
        result = json.loads(self.connect("cursor", "--url", URL, "--dry-run", "--json"))
        self.assertEqual((result["action"], result["file"], result["dryRun"]), ("connected", path, True))
        self.assertIn(URL, result["diff"])
        result = json.loads(self.connect("cursor", "--url", URL, "--json"))
        self.assertEqual(result["backup"], self.backups(path)[0])
        self.assertEqual(json.loads(self.connect("cursor", "--url", URL, "--json"))["action"], "unchanged")
        self.assertEqual(json.loads(self.connect("--undo", "cursor", "--json"))["action"], "restored")
        self.assertEqual(json.loads(self.connect("--undo", "cursor", "--json"))["action"], "unchanged")

    def test_remains_of_a_killed_process_are_no_backup(self):
        path = self.write(".claude.json", CLAUDE)
        self.connect("claude-code", "--url", URL)
        self.write(os.path.basename(self.backups(path)[0]) + ".new-abcdef", "")
        self.assertIn("restored", self.connect("--undo", "claude-code"))
        self.assertEqual(self.read(path), CLAUDE)

    def test_undo_says_that_the_token_stays_valid(self):
        self.write(".cursor/mcp.json", "{}\n")
        with open(self.path("token"), "w", encoding="utf-8") as file:
            file.write("a-token-of-the-test-1234\n")
        self.connect("cursor", "--url", URL, "--token-file", self.path("token"))
        self.assertIn("stays valid", self.connect("--undo", "cursor"))
        self.connect("cursor", "--url", URL, "--token-env", "TOKEN")
        self.assertNotIn("stays valid", self.connect("--undo", "cursor"))

    def test_project_file_is_written_into_the_current_directory(self):
        self.connect("claude-code", "--project", "--url", URL)
        self.assertEqual(json.loads(self.read(self.path(".mcp.json")))["mcpServers"]["fairlead"]["url"], URL)

    def test_directory_that_cannot_be_written_is_an_error(self):
        path = self.write(".cursor/mcp.json", "{}\n")
        if os.geteuid() == 0:
            os.chmod(self.scratch, 0o755)
            options = {"user": 65534, "group": 65534, "extra_groups": []}
        else:
            os.chmod(os.path.dirname(path), 0o555)
            options = {}
        try:
            self.assertIn("Permission denied", self.connect("cursor", "--url", URL, status=3, **options))
        except PermissionError:
            self.skipTest("the program cannot be run as another user")
        self.assertEqual(self.read(path), "{}\n")

    def test_file_is_old_or_new_whenever_the_program_is_killed(self):
        path = self.write(".claude.json", CLAUDE)
        self.connect("claude-code", "--url", URL)
        connected = self.read(path)
        for number in range(20):
            self.write(".claude.json", CLAUDE)
            process = subprocess.Popen([PROGRAM, "connect", "claude-code", "--url", URL], env=self.environment(),
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
            time.sleep(random.uniform(0, 0.03))  # not a synchronisation: the moment of the kill is arbitrary
            process.send_signal(signal.SIGKILL)
            process.wait(DEADLINE)
            self.assertIn(self.read(path), (CLAUDE, connected), number)
            for backup in self.backups(path):
                self.assertIn(self.read(backup), (CLAUDE, connected))


if __name__ == "__main__":
    unittest.main()
