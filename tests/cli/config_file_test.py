#!/usr/bin/env python3
"""Configuration files on the built program: places of mistakes, warnings about misspelt keys, envFile."""
import json
import sys
import unittest

import program
from program import run

# A server whose tool `env` returns a variable, and which writes that variable to its stderr.
SERVER = """import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    if request["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
    elif request["method"] == "tools/call":
        if request["params"]["name"] == "fail":
            sys.stderr.write("the token is " + os.environ["TOKEN"] + "\\n")
            sys.exit(3)
        result = {"content": [{"type": "text", "text": json.dumps([os.environ.get(name) for name in ("TOKEN", "MODE", "PLAIN")])}]}
    elif request["method"] == "server/discover":
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "unknown"}}), flush=True)
        continue
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


class ConfigFileTest(program.ProgramTest):
    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def test_mistakes_have_line_column_and_key(self):
        for name, text, message in (
            ("a.toml", "[servers.a]\ncommand = 'x'\ncomand = 'y'\n", ":3:1: unknown key `comand` in [servers.a] (did you mean `command`?)"),
            ("b.toml", "[servers.a]\ncommand = 'x\n", "(key `command` in [servers.a])"),
            ("c.json", '{"mcpServers": {\n  "a": {"command": 5}}}', ":2:9: `mcpServers.a.command` is not a string"),
        ):
            path = self.write(name, text)
            result = run("serve", "--config", path)
            self.assert_exited(result, 2, b"", message)
            self.assertIn(f"fairlead: invalid: {path}:", result.stderr)

    def test_misspelt_keys_are_logged_and_known_ones_are_not(self):
        path = self.write("mcp.json", json.dumps({"mcpServers": {"a": {
            "command": "true", "agrs": [], "timeout": 5, "autoApprove": [], "disabledTools": [], "type": "stdio", "oauth": {}}}}))
        result = run("serve", "--stdio", "--config", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        warnings = [line for line in result.stderr.splitlines() if "unknown key" in line]
        self.assertEqual(len(warnings), 1, result.stderr)
        self.assertIn("did you mean `args`?", warnings[0])
        self.assertIn(" warning ", warnings[0])
        result = run("config", "check", path)
        self.assert_exited(result, 0, f"{path}: usable, 1 server\n".encode(), "did you mean `args`?")
        self.assertTrue(result.stderr.startswith(f"warning: {path}:1:"), result.stderr)

    def test_env_file_is_read_and_redacted(self):
        self.write("server.py", SERVER)
        self.write("secrets.env", "# the token\nexport TOKEN='s3cret-$value'\nMODE=file\nPLAIN=${HOME} # not expanded\n")
        path = self.write("mcp.json", json.dumps({"mcpServers": {"a": {
            "command": sys.executable, "args": [self.path("server.py")], "env": {"MODE": "entry"}, "envFile": "secrets.env"}}}))
        result = run("tools", "a", "env", "--config", path, cwd="/")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout), ["s3cret-$value", "entry", "${HOME}"])
        result = run("tools", "a", "fail", "--config", path)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("the token is", result.stderr)
        self.assertNotIn("s3cret", result.stderr)


if __name__ == "__main__":
    unittest.main()
