#!/usr/bin/env python3
"""The program determines the era of a server: servers that start slowly, and servers that accept only one session."""
import json
import unittest

import program
from program import run

# The common part of the servers below. read() returns the next message, respond() sends a response, and record() appends a
# line to the journal that the test reads.
COMMON = """
import json
def read():
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit(0)
def respond(request, **answer):
    out.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}).encode() + b"\\n")
    out.flush()
def record(text):
    with open(os.path.join(os.path.dirname(__file__), "journal"), "a") as file:
        file.write(text + "\\n")
TOOLS = {"tools": [{"name": "hello", "inputSchema": {"type": "object"}}]}
DISCOVERED = {
    "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "slow", "version": "1"}},
}
INITIALIZED = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "legacy", "version": "1"}}
MODERN_TOOLS = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **TOOLS}
record("start")
"""

# A modern server that does not read its input for four seconds, which is longer than a probe waits.
SLOW_MODERN = """
time.sleep(4)
while True:
    request = read()
    if request.get("method") == "server/discover":
        respond(request, result=DISCOVERED)
    elif request.get("method") == "tools/list":
        respond(request, result=MODERN_TOOLS)
    elif "id" in request:
        respond(request, error={"code": -32601, "message": "Method not found"})
"""

# A server of both eras. It responds to server/discover only after it has received `initialize`, and then as %s says.
SLOW_DUAL = """
probe = read()
request = probe
while request.get("method") != "initialize":
    record(request["method"])
    request = read()
respond(probe, result=DISCOVERED)
%s
while True:
    request = read()
    record(request["method"])
    if request.get("method") == "tools/list":
        modern = "io.modelcontextprotocol/protocolVersion" in request.get("params", {}).get("_meta", {})
        respond(request, result=MODERN_TOOLS if modern else TOOLS)
"""

# A server that treats its first request as the start of its only session, as supergateway does.
SINGLE_SESSION = """
first = read()
record(first["method"])
if first["method"] == "initialize":
    respond(first, result=INITIALIZED)
else:
    respond(first, error={"code": -32000, "message": "Bad Request: no valid session"})
while True:
    request = read()
    record(request["method"])
    if request["method"] == "initialize":
        respond(request, error={"code": %d, "message": "Server already initialized"})
    elif request["method"] == "tools/list":
        respond(request, result=TOOLS)
"""


class EraTest(program.ProgramTest):
    def server(self, text):
        return self.script(COMMON + text)

    def journal(self):
        with open(self.path("journal"), encoding="utf-8") as file:
            return file.read().split()

    def tools(self, server, *args):
        result = run("tools", server, "--json", *args)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([tool["name"] for tool in json.loads(result.stdout)], ["hello"])

    def test_pinned_revision_waits_for_a_slow_handshake(self):
        self.tools(self.server(SLOW_MODERN), "--revision", "2026-07-28", "--timeout", "25s")

    def test_handshake_with_pinned_revision_times_out_when_server_never_responds(self):
        result = run("tools", self.server("read(); read()"), "--revision", "2026-07-28", "--timeout", "1s")
        self.assert_exited(result, 4)
        self.assertIn("handshake", result.stderr)

    def test_late_discover_response_is_used_while_initialize_is_pending(self):
        for later in ("", "respond(request, result=INITIALIZED)", 'respond(request, error={"code": -32601, "message": "Method not found"})'):
            with self.subTest(initialize=later):
                self.setUp()
                self.tools(self.server(SLOW_DUAL % later), "--timeout", "4s")
                journal = self.journal()
                self.assertIn("server/discover", journal)
                self.assertNotIn("notifications/initialized", journal)
                self.assertEqual(journal.count("server/discover"), 1)
                self.assertEqual(journal.count("notifications/cancelled"), 0)

    def test_server_that_rejects_initialize_after_a_probe_is_restarted_without_a_probe(self):
        for code in (-32000, -32600, -32601):
            with self.subTest(code=code):
                self.setUp()
                self.tools(self.server(SINGLE_SESSION % code))
                journal = self.journal()
                self.assertEqual(journal[-4:], ["start", "initialize", "notifications/initialized", "tools/list"], journal)

    def test_server_that_always_rejects_initialize_is_started_twice_and_reported(self):
        server = self.server('while True:\n    request = read()\n    respond(request, error={"code": -32000, "message": "no licence"})\n')
        result = run("tools", server)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("no licence", result.stderr)
        self.assertEqual(self.journal(), ["start", "start"])


if __name__ == "__main__":
    unittest.main()
