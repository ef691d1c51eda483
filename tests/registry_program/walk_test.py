#!/usr/bin/env python3
"""The life of one server, with the file server of the MCP project from npm: register, test, refresh, discover, execute, crash, limit
of processes, drain, kill of the gateway, terminator."""
import json
import os
import signal
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True

from harness import DEADLINE, PROGRAM, RegistryTest, enter_namespace, tool, until

INTEROP = os.environ["FAIRLEAD_TEST_INTEROP"]
FILE_SERVER = os.path.join(INTEROP, "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js")


class WalkTest(RegistryTest):
    def setUp(self):
        super().setUp()
        self.folder = os.path.realpath(self.path("shared"))
        os.mkdir(self.folder)
        with open(os.path.join(self.folder, "memo.txt"), "w", encoding="utf-8") as file:
            file.write("the first memo")

    def body(self):
        return {
            "name": "files", "description": "Files of the project.", "domain": "storage", "transport": "stdio",
            "config": {"transport": "stdio", "command": os.path.join(INTEROP, "node"), "args": [FILE_SERVER, self.folder], "env": {"LANG": "C"},
                       "clocks": {"queue": "500ms"}},
        }  # fmt: skip

    def pid(self):
        [pid] = self.gateway.server_processes("files")
        return pid

    def read_memo(self):
        params = {"path": os.path.join(self.folder, "memo.txt")}
        result = self.discover.call("execute_tool", tool_id="files__read_text_file", params=params)
        return result["content"][0]["text"]

    def test_life_of_a_server(self):
        manifest = self.path("manifest")
        config = self.path("gateway.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'terminator_manifest = "{manifest}"\n')
        self.gateway = gateway = self.start("--config", config)
        self.discover = gateway.mcp("/mcp/e/discover")

        # Register.
        row = gateway.create("/mcp/servers", self.body())
        path = f"/mcp/servers/{row['id']}"
        self.assertEqual((row["name"], row["version"]), ("files", 1))

        # Test and refresh.
        report = gateway.request("POST", path + "/test").json()
        self.assertTrue(report["ok"], report)
        self.assertGreater(report["tools"], 5)
        refreshed = gateway.request("POST", path + "/refresh").json()
        self.assertEqual(refreshed["tools"], report["tools"])
        names = {entry["name"] for entry in gateway.items(path + "/tools")}
        self.assertIn("read_text_file", names)
        self.assertEqual(len(names), report["tools"])

        # Discover and execute.
        found = self.discover.call("discover_tools", query="show the content of a text file")["structuredContent"]["items"]
        self.assertIn("files__read_text_file", [item["tool_id"] for item in found[:5]])
        schema = self.discover.call("get_tool_schema", tool_id="files__read_text_file")
        self.assertIn("path", json.dumps(schema))
        self.assertEqual(self.read_memo(), "the first memo")
        first = self.pid()

        # The process dies; the next call starts another.
        os.kill(first, signal.SIGKILL)
        self.assertTrue(until(lambda: first not in gateway.server_processes("files")))
        self.assertEqual(self.read_memo(), "the first memo")
        second = self.pid()
        self.assertNotEqual(first, second)

        # The limit of processes. `busy` holds the only place while it serves a call.
        busy = self.add(gateway, "busy", [tool("wait")])
        gateway.request("POST", path + "/stop")
        self.assertTrue(until(lambda: not gateway.server_processes("files")))
        release = self.path("release")
        waiting = self.in_background(lambda: gateway.mcp().text("busy__wait", path=release))
        self.assertTrue(until(lambda: gateway.server_processes("busy")))
        gateway.set_config("mcp.max_stdio_processes", 1)
        answer = self.discover.post("tools/call", name="execute_tool", arguments={
            "tool_id": "files__read_text_file", "params": {"path": os.path.join(self.folder, "memo.txt")}})  # fmt: skip
        self.assertIn("max_stdio_processes", json.dumps(answer))
        gateway.set_config("mcp.max_stdio_processes", 50)
        self.assertEqual(self.read_memo(), "the first memo")

        # Drain: a server that is removed during a call finishes the call, and then ends.
        [busy_pid] = gateway.server_processes("busy")
        self.assertEqual(gateway.request("DELETE", f"/mcp/servers/{busy['id']}").status, 204)
        self.assertTrue(until(lambda: "busy__wait" not in gateway.mcp().tools()))
        os.stat(f"/proc/{busy_pid}")
        with open(release, "w", encoding="utf-8"):
            pass
        self.assertEqual(waiting(), "waited")
        self.assertTrue(until(lambda: not os.path.exists(f"/proc/{busy_pid}")))

        # The gateway and the keeper are killed at once; the terminator ends what remains.
        third = self.pid()
        keepers = [pid for pid in self.survivors() if pid != third and self.name_of(pid).startswith("fairlead")]
        for pid in (gateway.process.pid, *keepers):
            os.kill(pid, signal.SIGKILL)
        gateway.end()
        result = subprocess.run([PROGRAM, "terminate", manifest], capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertFalse(os.path.exists(f"/proc/{third}") and self.name_of(third))
        self.assert_no_survivors()

        # The registry is intact, and complete with nothing running.
        gateway = self.start()
        self.assertEqual(gateway.get(path)["name"], "files")
        self.assertIn("files__read_text_file", gateway.mcp().tools())
        self.assertEqual(gateway.server_processes("files"), [])
        self.assert_exits_cleanly(gateway)

    def name_of(self, pid):
        """Returns the name of a process that runs; empty if it has ended."""
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                text = file.read()
        except OSError:
            return ""
        name, _, rest = text.partition("(")[2].rpartition(")")
        return "" if rest.split()[0] == "Z" else name


if __name__ == "__main__":
    enter_namespace(__file__)
    unittest.main()
