#!/usr/bin/env python3
"""Counts the allocations of a call through the gateway to a server on stdio: the gateway runs with a library that counts malloc.

    allocations_test.py PROGRAM FIXTURES [TEST…]

One client sends one call after the other, and the count is read before and after, so that the result is exact. A call may not
allocate more than MAX_ALLOCATIONS. A change that raises the number needs a reason; one that lowers it lowers the constant."""
import http.client
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

PROGRAM, FIXTURES = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
DEADLINE = 60  # seconds; timeout of every operation that must not hang
CALLS = 500
MAX_ALLOCATIONS = {"legacy": 1, "modern": 1, "events": 2}  # of a call, for each kind of client
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


class Client:
    """One connection to the gateway. The kind is a key of MAX_ALLOCATIONS; `events` is a modern client that accepts only event streams."""

    def __init__(self, port, kind):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
        self.modern = kind != "legacy"
        self.headers = {"Content-Type": "application/json", "Accept": "text/event-stream" if kind == "events" else "application/json, text/event-stream"}
        if self.modern:
            self.headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "f__pid"}
        else:
            self.begin_session()

    def begin_session(self):
        self.post({"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
        self.headers |= {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": "2025-06-18"}
        self.post({"method": "notifications/initialized"})

    def post(self, message):
        self.connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")), self.headers)
        response = self.connection.getresponse()
        self.session = response.headers.get("Mcp-Session-Id")
        text = response.read()
        if response.status // 100 != 2:
            raise AssertionError(f"{response.status}: {text!r}")
        return text

    def call(self, count):
        params = {"name": "f__pid", "arguments": {"message": "x" * 100}, **({"_meta": META} if self.modern else {})}
        for number in range(count):
            text = self.post({"id": 1000 + number % 1000, "method": "tools/call", "params": params})
            if b'"content":[{"type":"text"' not in text:
                raise AssertionError(f"not a result: {text!r}")


class AllocationsTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.mkdtemp(prefix="fairlead-")
        self.addCleanup(shutil.rmtree, scratch, True)
        config = os.path.join(scratch, "gateway.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'[servers.f]\ncommand = "{FIXTURES}/mcp_server"\nsharing = "shared"\n')
        counter = os.path.join(scratch, "count")
        environment = {key: value for key, value in os.environ.items() if not key.startswith("FAIRLEAD_")}
        environment |= {"LD_PRELOAD": os.path.join(FIXTURES, "liballocation_counter.so"), "ALLOCATION_COUNTER": counter, "XDG_STATE_HOME": scratch}
        self.gateway = subprocess.Popen([PROGRAM, "serve", "--config", config, "--listen", "127.0.0.1:0"], env=environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)  # fmt: skip
        self.addCleanup(self.end_gateway)
        self.counter = f"{counter}.{self.gateway.pid}"
        self.port = self.read_port()
        self.reader = threading.Thread(target=self.gateway.stderr.read)
        self.reader.start()

    def read_port(self):
        log = []
        for line in self.gateway.stderr:
            log.append(line)
            found = re.search(rb"endpoint=http://127.0.0.1:(\d+)/mcp", line)
            if found:
                return int(found[1])
        raise AssertionError(f"the gateway did not start: {log}")

    def end_gateway(self):
        self.gateway.terminate()
        status = self.gateway.wait(DEADLINE)
        self.reader.join(DEADLINE)
        self.gateway.stderr.close()
        self.assertEqual(status, 0)

    def count(self):
        with open(self.counter, "rb") as file:
            return struct.unpack("Q", file.read(8))[0]

    def allocations_of(self, client, calls):
        before = self.count()
        client.call(calls)
        return self.count() - before

    def check(self, kind):
        """Compares CALLS and twice as many calls. The few allocations that belong to no call, such as those of a timer, are far
        fewer than CALLS / 2, so that the rounded number is exact."""
        client = Client(self.port, kind)
        self.addCleanup(client.connection.close)
        client.call(CALLS)
        once, twice = (self.allocations_of(client, calls) for calls in (CALLS, 2 * CALLS))
        per_call = round((twice - once) / CALLS)
        print(f"{kind}: {once} for {CALLS} calls, {twice} for {2 * CALLS}: {per_call} for a call", file=sys.stderr)
        self.assertLessEqual(per_call, MAX_ALLOCATIONS[kind])
        self.assertGreater(self.count(), 100)  # the library counts: the start of the gateway allocates

    def test_call_of_legacy_client_allocates_at_most_the_limit(self):
        self.check("legacy")

    def test_call_of_modern_client_allocates_at_most_the_limit(self):
        self.check("modern")

    def test_call_with_event_stream_allocates_at_most_the_limit(self):
        self.check("events")


if __name__ == "__main__":
    unittest.main()
