#!/usr/bin/env python3
"""Which era a server speaks, found by the program: servers that start slowly, and servers that accept one session start only."""
import json
import unittest

import program
from program import run

# What the servers below share. answer() replies to one request; read() returns the next message.
COMMON = """
import json
def read():
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit(0)
def say(request, **answer):
    out.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}).encode() + b"\\n")
    out.flush()
def note(text):
    with open(os.path.join(os.path.dirname(__file__), "journal"), "a") as file:
        file.write(text + "\\n")
TOOLS = {"tools": [{"name": "hello", "inputSchema": {"type": "object"}}]}
DISCOVERED = {
    "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "slow", "version": "1"}},
}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "legacy", "version": "1"}}
MODERN_TOOLS = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **TOOLS}
note("start")
"""

# Reads its input after four seconds, longer than a probe waits.
SLOW_MODERN = """
time.sleep(4)
while True:
    request = read()
    if request.get("method") == "server/discover":
        say(request, result=DISCOVERED)
    elif request.get("method") == "tools/list":
        say(request, result=MODERN_TOOLS)
    elif "id" in request:
        say(request, error={"code": -32601, "message": "Method not found"})
"""

# Speaks both eras. It answers server/discover once it has `initialize` too, and then that.
SLOW_DUAL = """
probe = read()
request = probe
while request.get("method") != "initialize":
    note(request["method"])
    request = read()
say(probe, result=DISCOVERED)
%s
while True:
    request = read()
    note(request["method"])
    if request.get("method") == "tools/list":
        modern = "io.modelcontextprotocol/protocolVersion" in request.get("params", {}).get("_meta", {})
        say(request, result=MODERN_TOOLS if modern else TOOLS)
"""

# Takes its first request for the start of its only session, as supergateway does.
ONE_SESSION = """
first = read()
note(first["method"])
if first["method"] == "initialize":
    say(first, result=HELLO)
else:
    say(first, error={"code": -32000, "message": "Bad Request: no valid session"})
while True:
    request = read()
    note(request["method"])
    if request["method"] == "initialize":
        say(request, error={"code": %d, "message": "Server already initialized"})
    elif request["method"] == "tools/list":
        say(request, result=TOOLS)
"""


class Eras(program.ProgramTest):
    def server(self, text):
        return self.script(COMMON + text)

    def journal(self):
        with open(self.path("journal"), encoding="utf-8") as file:
            return file.read().split()

    def tools(self, server, *args):
        result = run("tools", server, "--json", *args)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([tool["name"] for tool in json.loads(result.stdout)], ["hello"])

    def test_a_pinned_revision_waits_for_the_whole_handshake(self):
        self.tools(self.server(SLOW_MODERN), "--revision", "2026-07-28", "--timeout", "25s")

    def test_a_server_that_never_answers_a_pinned_revision_is_a_timeout(self):
        result = run("tools", self.server("read(); read()"), "--revision", "2026-07-28", "--timeout", "1s")
        self.assert_ended(result, 4)
        self.assertIn("handshake", result.stderr)

    def test_a_late_discover_answer_wins_while_initialize_is_unanswered(self):
        for later in ("", "say(request, result=HELLO)", 'say(request, error={"code": -32601, "message": "Method not found"})'):
            with self.subTest(initialize=later):
                self.setUp()
                self.tools(self.server(SLOW_DUAL % later), "--timeout", "4s")
                seen = self.journal()
                self.assertIn("server/discover", seen)
                self.assertNotIn("notifications/initialized", seen)
                self.assertEqual(seen.count("server/discover"), 1)
                self.assertEqual(seen.count("notifications/cancelled"), 0)

    def test_a_server_that_refuses_initialize_after_a_probe_is_started_again_without_one(self):
        for code in (-32000, -32600, -32601):
            with self.subTest(code=code):
                self.setUp()
                self.tools(self.server(ONE_SESSION % code))
                seen = self.journal()
                self.assertEqual(seen[-4:], ["start", "initialize", "notifications/initialized", "tools/list"], seen)

    def test_a_server_that_refuses_initialize_even_then_is_started_twice_and_reported(self):
        server = self.server('while True:\n    request = read()\n    say(request, error={"code": -32000, "message": "no licence"})\n')
        result = run("tools", server)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("no licence", result.stderr)
        self.assertEqual(self.journal(), ["start", "start"])


if __name__ == "__main__":
    unittest.main()
