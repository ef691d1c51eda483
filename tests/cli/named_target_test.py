#!/usr/bin/env python3
"""The name of a server as TARGET: of the gateway of the default database, or of a configuration file."""
import json
import os
import re
import threading
import time
import unittest

import program
from program import run


# A server with the tool `variable`, which returns the variable A.
PRINTS_VARIABLE = """
for line in sys.stdin:
    request = json.loads(line)
    method, result = request["method"], {}
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "variable", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": os.environ.get("A", "none")}]}
    elif method != "ping":
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


class RunningGateway:
    """`fairlead serve` with the default database in the directory `state`, which has one server, `demo`."""

    def __init__(self, state, *args):
        self.environment = {"XDG_STATE_HOME": state, "XDG_CONFIG_HOME": state, "HOME": state}
        self.process = program.start("serve", "--listen", "127.0.0.1:0", *args, env=self.environment)
        for line in self.process.stderr:
            found = re.search(rb"endpoint=(http://127.0.0.1:\d+)/mcp", line)
            if found:
                self.url = found[1].decode()
                break
        else:
            raise AssertionError("the gateway did not start")
        self.reader = threading.Thread(target=self.process.stderr.read)
        self.reader.start()
        # The gateway logs its address before it has written the file by which other programs find it.
        end = time.monotonic() + program.DEADLINE
        while not os.path.exists(os.path.join(state, "fairlead", "fairlead.db.gateway")):
            if time.monotonic() > end:
                raise AssertionError("the gateway has not published its address")
            time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(program.DEADLINE)
        self.reader.join(program.DEADLINE)
        self.process.stdout.close()
        self.process.stderr.close()
        self.process.stdin.close()


class NamedTargetTest(program.ProgramTest):
    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def test_server_of_the_running_gateway(self):
        with RunningGateway(self.scratch) as gateway:
            result = run("tools", "demo", "add", "a=2", "b=3", env=gateway.environment)
            self.assert_exited(result, 0, b'{"sum":5}\n')
            self.assertIn(b"echo", run("tools", "demo", env=gateway.environment).stdout)
            result = run("tools", "demon", env=gateway.environment)
            self.assert_exited(result, 2, b"", "`demon` is not an address, and the gateway ")
            self.assertIn("has no server of this name (did you mean `demo`?)", result.stderr)
            result = run("tools", "quite-different", env=gateway.environment)
            self.assert_exited(result, 2, b"", "(it has demo)")
            self.assertIn("write it as one argument: stdio:quite-different", result.stderr)
            elsewhere = {"XDG_STATE_HOME": self.path("other"), "HOME": self.path("other")}
            token = os.path.join(self.scratch, "fairlead", "admin.token")
            result = run("tools", "demo", "--gateway", gateway.url, "--token-file", token, env=elsewhere)
            self.assertIn(b"echo", result.stdout, result.stderr)

    def test_name_without_a_gateway(self):
        result = run("tools", "files", env={"HOME": self.scratch})
        self.assert_exited(result, 2, b"", "`files` is not an address, and no gateway runs")
        for remedy in ("fairlead serve", "--gateway URL", "--config FILE", "stdio:files"):
            self.assertIn(remedy, result.stderr)

    def test_server_of_a_file(self):
        config = self.write("servers.toml", f"""
[servers.demo]
command = {program.PROGRAM!r}
args = ["demo"]
env = {{ SECRET = "${{NAME_OF_SECRET:-x}}" }}

[servers.off]
command = "false"
enabled = false
""")
        self.assert_exited(run("tools", "demo", "add", "a=2", "b=3", "--config", config), 0, b'{"sum":5}\n')
        for name, message in (("dmo", f"{config} has no server of this name (did you mean `demo`?)"), ("off", "(it has demo)")):
            self.assert_exited(run("tools", name, "--config", config), 2, b"", message)
        client = self.write("mcp.json", '{"mcpServers": {"My demo": {"command": "%s", "args": ["demo"]}}}' % program.PROGRAM)
        self.assert_exited(run("tools", "My-demo", "echo", "message=hi", "--config", client), 0, b"hi\n")
        self.assert_exited(run("tools", "demo", "--config", self.path("missing")), 2, b"", "cannot read")

    def test_variables_reach_a_server_of_a_file(self):
        script = self.script("import json\n" + PRINTS_VARIABLE).removeprefix("stdio:").split(" ")
        config = self.write("mcp.json", json.dumps({"mcpServers": {"own": {"command": script[0], "args": script[1:], "env": {"A": "file"}},
                                                                   "far": {"url": "http://127.0.0.1:1/mcp"}}}))  # fmt: skip
        self.assert_exited(run("tools", "own", "variable", "--config", config), 0, b"file\n")
        self.assert_exited(run("tools", "own", "variable", "--config", config, "--env", "A=b"), 0, b"b\n")
        self.assert_exited(run("tools", "far", "--config", config, "--env", "A=b"), 2, b"", "--env is allowed only")


if __name__ == "__main__":
    unittest.main()
