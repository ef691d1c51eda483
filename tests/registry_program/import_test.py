#!/usr/bin/env python3
"""fairlead servers import and export, with a running gateway and with a database that nobody serves."""
import glob
import json
import os
import re
import shlex
import subprocess
import sys
import unittest
import zipfile

from harness import ADMIN_TOKEN, HERE, PROGRAM, RegistryTest, until

SECRET = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"


class ImportTest(RegistryTest):
    def setUp(self):
        super().setUp()
        self.home = self.path("home")
        os.makedirs(self.home)

    def fairlead(self, *arguments, gateway=None, status=0, environment=None, stdin=""):
        """Runs the program, with the address and the token of the gateway. Returns stdout and stderr."""
        env = {key: value for key, value in os.environ.items() if not key.startswith(("FAIRLEAD_", "XDG_"))}
        env.update({"HOME": self.home, "XDG_STATE_HOME": self.path("state"), "XDG_DATA_HOME": self.path("data")})
        token = self.path("token")
        with open(token, "w", encoding="ascii") as file:
            file.write(ADMIN_TOKEN)
        os.chmod(token, 0o600)
        options = ["--gateway", f"http://127.0.0.1:{gateway.port}", "--token-file", token] if gateway else []
        # A session of its own: the program must find no terminal to ask on.
        result = subprocess.run([PROGRAM, *arguments, *options], capture_output=True, text=True, timeout=60, input=stdin,
                                env={**env, **(environment or {})}, start_new_session=True, cwd=self.home)  # fmt: skip
        self.assertEqual(result.returncode, status, result)
        return result.stdout, result.stderr

    def write(self, name, content):
        path = os.path.join(self.home, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content, indent=2))
        return path

    def desktop_file(self):
        """Writes the file of Claude Desktop, with a server that works, one behind a bridge, our own entry and one that is disabled."""
        self.write_state("files")
        return self.write(".config/Claude/claude_desktop_config.json", {
            "globalShortcut": "Ctrl+Space",
            "mcpServers": {
                "files": {"command": sys.executable, "args": [os.path.join(HERE, "toy_server.py"), self.state_file("files")],
                          "env": {"GITHUB_TOKEN": SECRET, "LOG": "info"}},
                "remote": {"command": "npx", "args": ["-y", "mcp-remote@0.1.18", "https://mcp.example.com/mcp", "--header", "X-Team: blue"]},
                "fairlead": {"command": PROGRAM, "args": ["serve", "--stdio"]},
            },
        })  # fmt: skip

    def names(self, gateway):
        return sorted(row["name"] for row in gateway.items("/mcp/servers"))

    def test_servers_of_a_desktop_client_are_found_and_work(self):
        self.desktop_file()
        gateway = self.start()
        out, _ = self.fairlead("servers", "import", "claude-desktop", "--move-secrets", gateway=gateway)
        self.assertIn("+ files: new", out)
        self.assertRegex(out, "- fairlead: skipped")
        self.assertNotIn(SECRET, out)
        self.assertEqual(self.names(gateway), ["files", "remote"])
        rows = {row["name"]: row for row in gateway.items("/mcp/servers")}
        self.assertEqual(rows["remote"]["config"]["url"], "https://mcp.example.com/mcp")
        self.assertEqual(rows["remote"]["config"]["headers"], {"X-Team": "blue"})
        self.assertTrue(rows["files"]["enabled"])
        self.assertRegex(rows["files"]["config"]["env"]["GITHUB_TOKEN"], r"^\$\{secret:\w+\}$")
        self.assertEqual(rows["files"]["config"]["env"]["LOG"], "info")
        self.wait_until_listed(gateway, rows["files"])
        client = gateway.mcp()
        result = client.call("files__echo", word="hello")
        self.assertIn("hello", json.dumps(result))
        pid = gateway.server_processes("files")[0]
        with open(f"/proc/{pid}/environ", "rb") as file:
            self.assertIn(f"GITHUB_TOKEN={SECRET}".encode(), file.read().split(b"\0"))

    def test_note_about_a_literal_secret_has_the_command_that_moves_it(self):
        path = self.desktop_file()
        gateway = self.start()
        out, _ = self.fairlead("servers", "import", path, gateway=gateway)
        (command,) = re.findall(r"note: files: env/GITHUB_TOKEN looks like a secret; this stores it encrypted: fairlead (.*)", out)
        self.fairlead(*shlex.split(command), gateway=gateway)
        (row,) = (row for row in gateway.items("/mcp/servers") if row["name"] == "files")
        self.assertEqual(row["config"]["env"]["GITHUB_TOKEN"], "${secret:GITHUB_TOKEN}")

    def test_a_second_import_changes_nothing(self):
        self.desktop_file()
        gateway = self.start()
        self.fairlead("servers", "import", "claude-desktop", "--move-secrets", gateway=gateway)
        before = gateway.items("/mcp/servers")
        out, _ = self.fairlead("servers", "import", "claude-desktop", "--json", gateway=gateway)
        servers = json.loads(out)["files"][0]["servers"]
        self.assertEqual({server["name"]: server["action"] for server in servers},
                         {"files": "unchanged", "remote": "unchanged", "fairlead": "skip"})  # fmt: skip
        self.assertEqual(gateway.items("/mcp/servers"), before)

    def test_dry_run_shows_the_difference_and_changes_nothing(self):
        path = self.desktop_file()
        gateway = self.start()
        out, _ = self.fairlead("servers", "import", path, "--dry-run", gateway=gateway)
        self.assertIn("Nothing was changed", out)
        self.assertIn("config.command:", out)
        self.assertNotIn(SECRET, out)
        self.assertEqual(self.names(gateway), [])
        self.fairlead("servers", "import", path, "--keep-secrets", gateway=gateway)
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        document["mcpServers"]["files"]["args"].append("--more")
        self.write(".config/Claude/claude_desktop_config.json", document)
        out, _ = self.fairlead("servers", "import", path, "--dry-run", gateway=gateway)
        self.assertRegex(out, r"~ files: exists and differs; --update changes it\n *config\.args: .* -> .*--more")
        self.fairlead("servers", "import", path, gateway=gateway)
        self.assertNotIn("--more", json.dumps(gateway.items("/mcp/servers")))
        self.fairlead("servers", "import", path, "--update", gateway=gateway)
        self.assertIn("--more", json.dumps(gateway.items("/mcp/servers")))

    def test_a_database_that_nobody_serves_is_changed_directly(self):
        path = self.desktop_file()
        database = "sqlite:" + self.path("offline.db")
        out, _ = self.fairlead("servers", "import", path, "remote", "--db", database)
        self.assertIn("+ remote: new", out)
        self.assertNotIn("files", out)
        self.assertEqual(glob.glob(self.path("files.json") + ".starts"), [], "no server is started")
        gateway = self.start(database=database)
        self.assertEqual(self.names(gateway), ["remote"])

    def test_unknown_sources_are_explained(self):
        gateway = self.start()
        _, err = self.fairlead("servers", "import", "cursr", gateway=gateway, status=2)
        self.assertIn("did you mean `cursor`?", err)
        _, err = self.fairlead("servers", "import", "cursor", gateway=gateway, status=2)
        self.assertIn(os.path.join(self.home, ".cursor/mcp.json"), err)
        _, err = self.fairlead("servers", "import", self.write("x.json", "{"), gateway=gateway, status=2)
        self.assertIn("x.json", err)
        self.assertEqual(self.names(gateway), [])

    def test_one_server_that_is_refused_does_not_stop_the_others(self):
        path = self.write("many.json", {"mcpServers": {"good": {"url": "https://a.example/mcp"}, "bad": {"url": "ftp://b.example/"},
                                                       "also": {"url": "https://c.example/mcp"}}})  # fmt: skip
        gateway = self.start()
        self.fairlead("servers", "import", path, gateway=gateway)
        self.assertEqual(self.names(gateway), ["also", "good"])

    def test_an_exported_file_can_be_imported_by_another_gateway(self):
        self.desktop_file()
        first = self.start()
        self.fairlead("servers", "import", "claude-desktop", "--move-secrets", gateway=first)
        for client in ("claude-code", "vscode", "codex", "goose", "opencode"):
            target = os.path.join(self.home, client)
            _, err = self.fairlead("servers", "export", client, "-o", target, gateway=first)
            with open(target, encoding="utf-8") as file:
                self.assertNotIn(SECRET, file.read())
            self.assertEqual(os.stat(target).st_mode & 0o777, 0o600)
            self.fairlead("servers", "export", client, "-o", target, gateway=first, status=2)  # it exists
            second = self.start(database="sqlite:" + self.path(f"{client}.db"))
            self.fairlead("servers", "import", target, "--format", client, gateway=second)
            rows = {row["name"]: row["config"] for row in second.items("/mcp/servers")}
            self.assertEqual(rows["files"]["args"], [os.path.join(HERE, "toy_server.py"), self.state_file("files")], client)
            self.assertEqual(rows["remote"]["url"], "https://mcp.example.com/mcp", client)
            second.end()

    def test_a_server_json_of_the_public_registry_is_imported(self):
        path = self.write("server.json", {
            "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
            "name": "com.example/notes", "description": "Notes", "version": "2.1.0",
            "packages": [{
                "registryType": "npm", "identifier": "@acme/notes", "version": "2.1.0", "runtimeHint": "npx",
                "transport": {"type": "stdio"},
                "packageArguments": [{"type": "named", "name": "--root", "isRequired": True, "format": "filepath"}],
                "environmentVariables": [{"name": "NOTES_KEY", "isSecret": True, "isRequired": True}],
            }],
        })  # fmt: skip
        gateway = self.start()
        _, err = self.fairlead("servers", "import", path, gateway=gateway, status=2)
        self.assertRegex(err, "root")
        name = json.loads(self.fairlead("servers", "import", path, "--dry-run", "--json", "--input", "--root=/srv/n", "--input", "root=/srv/n",
                                        gateway=gateway)[0])["files"][0]["servers"][0]["name"]  # fmt: skip
        out, _ = self.fairlead("servers", "import", path, "--input", "--root=/srv/n", "--input", "root=/srv/n", "--disabled", gateway=gateway)
        self.assertRegex(out, "needs the secret NOTES_KEY")
        row = gateway.items("/mcp/servers")[0]
        self.assertEqual(row["name"], name)
        self.assertIn("@acme/notes@2.1.0", row["config"]["args"])
        self.assertIn("/srv/n", row["config"]["args"])
        self.assertEqual(row["config"]["env"], {"NOTES_KEY": "${secret:NOTES_KEY}"})

    def test_a_rotated_secret_is_stored_by_an_update(self):
        path = self.desktop_file()
        gateway = self.start()
        self.fairlead("servers", "import", path, "--move-secrets", gateway=gateway)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.write(os.path.relpath(path, self.home), text.replace(SECRET, "ghp_" + SECRET[:3:-1]))
        out, _ = self.fairlead("servers", "import", path, "--move-secrets", gateway=gateway)
        self.assertIn("= files: exists and is equal; its secrets may differ, --update stores them", out)
        self.assertEqual([row["version"] for row in gateway.items("/secrets")], [1])
        out, _ = self.fairlead("servers", "import", path, "--move-secrets", "--update", gateway=gateway)
        self.assertIn("~ files: exists and is equal; its secrets are stored again", out)
        self.assertEqual([row["version"] for row in gateway.items("/secrets")], [2])

    def test_a_server_whose_secrets_cannot_be_stored_is_removed_and_can_be_imported_again(self):
        gateway = self.start()
        path = self.write("big.json", {"mcpServers": {"big": {"command": "true", "env": {"GITHUB_TOKEN": "ghp_" + "x" * 70_000}}}})
        out, _ = self.fairlead("servers", "import", path, "--move-secrets", gateway=gateway, status=1)
        self.assertIn("max_secret_value_bytes", out)
        self.assertEqual(self.names(gateway), [])
        self.write("big.json", {"mcpServers": {"big": {"command": "true", "env": {"GITHUB_TOKEN": SECRET}}}})
        self.fairlead("servers", "import", path, "--move-secrets", gateway=gateway)
        self.assertTrue(gateway.items("/mcp/servers")[0]["enabled"])
        self.assertEqual(len(gateway.items("/secrets")), 1)

    def test_files_of_a_client_without_servers_are_passed_over(self):
        gateway = self.start()
        self.write(".claude.json", {"numStartups": 3})
        self.write("shop/.mcp.json", {"mcpServers": {"a": {"url": "https://a.example/mcp"}}})
        out, _ = self.fairlead("servers", "import", "claude-code", "--project", os.path.join(self.home, "shop"), gateway=gateway)
        self.assertIn("note: the file has no `mcpServers`", out)
        self.assertEqual(self.names(gateway), ["a"])
        _, err = self.fairlead("servers", "import", "claude-code", gateway=gateway, status=2)
        self.assertIn("Claude Code has no servers in", err)

    def test_servers_of_one_name_in_several_files_are_all_imported_as_the_dry_run_says(self):
        gateway = self.start()
        self.write(".claude.json", {"mcpServers": {"s": {"url": "https://user.example/mcp"}, "t": {"url": "https://t.example/mcp"}}})
        self.write("shop/.mcp.json", {"mcpServers": {"s": {"url": "https://shop.example/mcp"}, "t": {"url": "https://t.example/mcp"}}})
        source = ("servers", "import", "claude-code", "--project", os.path.join(self.home, "shop"), "--json")
        plan = json.loads(self.fairlead(*source, "--dry-run", gateway=gateway)[0])["files"]
        done = json.loads(self.fairlead(*source, "--update", gateway=gateway)[0])["files"]
        self.assertEqual(plan, done)
        urls = {row["name"]: row["config"]["url"] for row in gateway.items("/mcp/servers")}
        self.assertEqual(urls, {"s": "https://user.example/mcp", "s-2": "https://shop.example/mcp", "t": "https://t.example/mcp"})
        again = json.loads(self.fairlead(*source, "--update", gateway=gateway)[0])["files"]
        self.assertEqual([[server["action"] for server in file["servers"]] for file in again], [["unchanged", "unchanged"], ["unchanged", "skip"]])

    def test_a_server_without_a_value_does_not_stop_the_others(self):
        gateway = self.start()
        path = self.write("editor.json", {"servers": {"ok": {"command": "true"}, "ws": {"command": "true", "args": ["${workspaceFolder}/a"]}}})
        out, _ = self.fairlead("servers", "import", path, "--format", "vscode", "--dry-run", gateway=gateway)
        self.assertIn("+ ok: new", out)
        self.assertIn('config.args[0]: "<workspaceFolder>/a"', out)
        self.assertIn("needs a value for workspaceFolder: --input workspaceFolder=VALUE", out)
        _, err = self.fairlead("servers", "import", path, "--format", "vscode", gateway=gateway, status=2)
        self.assertIn("`ws` was not imported: it needs a value: pass --input workspaceFolder=VALUE", err)
        self.assertEqual(self.names(gateway), ["ok"])
        self.fairlead("servers", "import", path, "--format", "vscode", "--input", "workspaceFolder=/p", gateway=gateway)
        self.assertEqual(self.names(gateway), ["ok", "ws"])

    def test_the_project_of_a_file_is_known_by_its_place(self):
        gateway = self.start()
        self.write("shop/.env", "COLOUR=blue\n")
        self.write("shop/.vscode/mcp.json", {"servers": {"ws": {"command": "${workspaceFolder}/run", "cwd": "${workspaceFolder}",
                                                                "envFile": "${workspaceFolder}/.env"}}})  # fmt: skip
        self.fairlead("servers", "import", "shop/.vscode/mcp.json", "--disabled", gateway=gateway)
        shop = os.path.join(self.home, "shop")
        config = gateway.items("/mcp/servers")[0]["config"]
        self.assertEqual((config["command"], config["cwd"], config["env"]), (shop + "/run", shop, {"COLOUR": "blue"}))

    def test_values_of_secrets_are_not_taken_from_arguments(self):
        gateway = self.start()
        path = self.write("inputs.json", {
            "inputs": [{"id": "key", "type": "promptString", "password": True}],
            "servers": {"cloud": {"command": "true", "env": {"KEY": "${input:key}"}}},
        })  # fmt: skip
        _, err = self.fairlead("servers", "import", path, "--input", "key=hunter22", gateway=gateway, status=2)
        self.assertIn("--input-file key=FILE", err)
        self.assertEqual(self.names(gateway), [])
        self.fairlead("servers", "import", path, "--input-file", "key=" + self.write("key", "hunter22\n"), gateway=gateway)
        self.assertEqual([row["version"] for row in gateway.items("/secrets")], [1])
        self.fairlead("servers", "import", path, "--update", "--input-file", "key=-", stdin="hunter23\n", gateway=gateway)
        self.assertEqual([row["version"] for row in gateway.items("/secrets")], [2])

    def test_a_fifo_is_rejected_and_not_opened(self):
        os.mkfifo(self.path("fifo"))
        _, errors = self.fairlead("servers", "import", self.path("fifo"), "--dry-run", status=2)
        self.assertIn("regular file", errors)

    def test_every_address_of_the_gateway_is_skipped(self):
        gateway = self.start()
        urls = [f"http://127.0.0.1:{gateway.port}/sse", f"ws://LOCALHOST:{gateway.port}/mcp", f"http://[::1]:{gateway.port}/mcp/e/x"]
        path = self.write("own.json", {"mcpServers": {f"s{i}": {"url": url} for i, url in enumerate(urls)}})
        self.fairlead("servers", "import", path, gateway=gateway)
        database = "sqlite:" + self.path("fairlead.db")
        self.fairlead("servers", "import", path, "--db", database, environment={"FAIRLEAD_TOKEN": ADMIN_TOKEN})
        self.assertEqual(self.names(gateway), [])

    def bundle(self):
        path = os.path.join(self.home, "notes.mcpb")
        manifest = {
            "manifest_version": "0.3", "name": "notes", "version": "1.0.0", "description": "Notes", "author": {"name": "Ada"},
            "server": {"type": "binary", "entry_point": "run", "mcp_config": {"command": "${__dirname}/run", "args": ["--level=${user_config.level}"]}},
            "user_config": {"level": {"type": "number", "title": "Level", "description": "of detail", "min": 1, "max": 5, "required": True}},
        }  # fmt: skip
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("manifest.json", json.dumps(manifest))
            archive.writestr("run", "#!/bin/sh\n")
        return path

    def test_a_bundle_is_unpacked_only_if_its_server_is_imported(self):
        gateway = self.start()
        path = self.bundle()
        bundles = self.path("data/fairlead/bundles")
        out, _ = self.fairlead("servers", "import", path, "--dry-run", gateway=gateway)
        self.assertIn("signature: unsigned", out)
        _, err = self.fairlead("servers", "import", path, "--input", "level=99", gateway=gateway, status=2)
        self.assertIn("must be at most 5", err)
        self.fairlead("servers", "import", path, "other*", "--input", "level=3", gateway=gateway)
        self.assertFalse(os.path.exists(bundles))
        self.fairlead("servers", "import", path, "--input", "level=3", "--disabled", gateway=gateway)
        config = gateway.items("/mcp/servers")[0]["config"]
        self.assertTrue(config["command"].startswith(bundles), config)
        self.assertTrue(os.path.isfile(config["command"]))
        self.assertEqual(config["args"], ["--level=3"])

    def test_an_exported_file_replaces_another_one_atomically(self):
        gateway = self.start()
        gateway.create("/mcp/servers", {"name": "a", "config": {"url": "https://a.example/mcp"}})
        real = self.write("real.json", "old")
        os.chmod(real, 0o640)
        os.link(real, os.path.join(self.home, "second-name.json"))
        link = os.path.join(self.home, "link.json")
        os.symlink("real.json", link)
        self.fairlead("servers", "export", "cursor", "-o", link, "--overwrite", gateway=gateway)
        self.assertTrue(os.path.islink(link))
        with open(real, encoding="utf-8") as file:
            self.assertIn("https://a.example/mcp", file.read())
        with open(os.path.join(self.home, "second-name.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "old")
        self.assertEqual(os.stat(real).st_mode & 0o777, 0o640)
        self.fairlead("servers", "export", "cursor", "-o", "/dev/null", "--overwrite", gateway=gateway)
        self.assertFalse(os.path.isfile("/dev/null"))

    def test_an_export_as_json_has_the_text_and_the_remarks(self):
        gateway = self.start()
        gateway.create("/mcp/servers", {"name": "a", "config": {"url": "https://a.example/mcp", "sharing": "shared"}})
        result = json.loads(self.fairlead("servers", "export", "codex", "--json", gateway=gateway)[0])
        self.assertIn("[mcp_servers.a]", result["text"])
        self.assertEqual((result["client"], result["servers"], len(result["remarks"])), ("codex", 1, 1))
        target = os.path.join(self.home, "x.toml")
        result = json.loads(self.fairlead("servers", "export", "codex", "--json", "-o", target, gateway=gateway)[0])
        self.assertEqual(result["file"], target)
        self.assertTrue(os.path.exists(target))


if __name__ == "__main__":
    unittest.main()
