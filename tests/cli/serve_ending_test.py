#!/usr/bin/env python3
"""fairlead serve: how it ends, and that it does not begin where it cannot listen."""
import contextlib
import http.client
import json
import os
import socket
import sys
import threading
import time
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import program
from program import DEADLINE
from serve_test import META, Gateway, ServeTest
from websocket import WebSocket

# Its tool takes as long as it is held: it reads a pipe to the end.
HOLDS = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method")
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "wait", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        with open(sys.argv[1]) as held:
            held.read()
        times = request["params"].get("arguments", {}).get("times", 1)
        result = {"content": [{"type": "text", "text": "done" * times}]}
    elif "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


class Failures(ServeTest):
    def test_every_failure_has_a_code_and_a_remedy(self):  # R10.5
        def code(answer):
            data = json.loads(answer)["error"]["data"]
            self.assertTrue(data["remedy"], data)
            return data["code"]

        with Gateway(*self.config(self.server())) as gateway:
            gateway.post("tools/list", {})
            self.assertEqual(code(gateway.call("s__large")), "frame_too_large")
            self.assertEqual(code(gateway.call("s__no")), "unknown_name")
        with Gateway() as behind, Gateway(*self.config(f'[servers.up]\nurl = "http://127.0.0.1:{behind.port}/mcp"')) as gateway:
            self.assertIn('"sum":3', gateway.call("up__demo__add", a=1, b=2))
            behind.process.kill()
            behind.process.wait(DEADLINE)
            self.assertEqual(code(gateway.call("up__demo__add", a=1, b=2)), "connection_failed")
        os.mkfifo(self.path("held"))
        limited = self.server(text=HOLDS, args=[self.path("held")], extra='max_calls = 1\nclocks.queue = "50ms"')
        with Gateway(*self.config('drain_grace = "100ms"\n' + limited)) as gateway:
            answers = []
            caller = threading.Thread(target=lambda: answers.append(gateway.call("s__wait")))
            caller.start()
            with open(self.path("held"), "w"):
                self.assertEqual(code(gateway.call("s__wait")), "resource_exhausted")
                gateway.process.terminate()
                caller.join(DEADLINE)
                self.assertEqual(code(answers[0]), "draining")


class Ending(ServeTest):
    def holding(self, grace):
        """A config with a server whose tool waits."""
        os.mkfifo(self.path("held"))
        return self.config(f'drain_grace = "{grace}"\n' + self.server(text=HOLDS, args=[self.path("held")]))

    def caller(self, gateway, scheme):
        """The program itself as a client, in the midst of its call; and what holds the call up."""
        client = program.start("tools", f"{scheme}://127.0.0.1:{gateway.port}/mcp", "s__wait", "{}")
        self.addCleanup(client.communicate)
        self.addCleanup(client.kill)
        return client, open(self.path("held"), "w")  # opens when the server has opened it

    def call_on_stdin(self, gateway):
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "s__wait", "_meta": META}}
        gateway.process.stdin.write((json.dumps(call) + "\n").encode())
        gateway.process.stdin.flush()
        return open(self.path("held"), "w")

    def end(self, gateway):
        gateway.process.terminate()
        end = time.monotonic() + DEADLINE
        while not any("shutting down" in line for line in gateway.lines) and time.monotonic() < end:
            time.sleep(0.01)

    def test_calls_under_way_finish_over_http_and_websocket(self):
        for scheme in ("http", "ws"):
            with self.subTest(scheme), Gateway(*self.holding("60s")) as gateway:
                client, held = self.caller(gateway, scheme)
                self.end(gateway)
                held.close()
                self.assertEqual((client.communicate(timeout=DEADLINE)[0], client.returncode), (b"done\n", 0))
                self.assertEqual(gateway.process.wait(DEADLINE), 0)
            os.unlink(self.path("held"))

    def test_an_answer_reaches_a_slow_client_on_a_websocket_whole(self):
        times = 2 << 20  # more than the sockets between them hold
        with Gateway(*self.holding("60s")) as gateway, WebSocket(gateway.port) as client:
            client.send(id=1, method="tools/call", params={"name": "s__wait", "arguments": {"times": times}, "_meta": META})
            open(self.path("held"), "w").close()
            client.answer_begins()
            self.end(gateway)
            self.assertEqual(client.receive()["result"]["content"][0]["text"], "done" * times)
            self.assertIsNone(client.receive())
            self.assertEqual(gateway.process.wait(DEADLINE), 0)

    def test_calls_that_take_too_long_are_answered_with_an_error(self):
        for scheme in ("http", "ws"):
            with self.subTest(scheme), Gateway(*self.holding("100ms")) as gateway:
                client, held = self.caller(gateway, scheme)
                with held:
                    gateway.process.terminate()
                    self.assertIn(b"shuts down", client.communicate(timeout=DEADLINE)[1])
                self.assertEqual((client.returncode, gateway.process.wait(DEADLINE)), (1, 0))
            os.unlink(self.path("held"))

    def test_they_are_on_stdin_and_stdout_too(self):
        with Gateway(*self.holding("100ms"), stdio=True) as gateway:
            with self.call_on_stdin(gateway):
                gateway.process.terminate()
                self.assertIn("shuts down", json.loads(gateway.process.stdout.readline())["error"]["message"])
            self.assertEqual(gateway.process.wait(DEADLINE), 0)

    def test_the_end_of_stdin_waits_no_longer_than_drain_grace(self):
        with Gateway(*self.holding("100ms"), stdio=True) as gateway:
            with self.call_on_stdin(gateway):
                began = time.monotonic()
                gateway.process.stdin.close()
                self.assertEqual(gateway.process.wait(DEADLINE), 0)
                self.assertLess(time.monotonic() - began, 4)  # the default is 5 s
            gateway.process.stdin = open(os.devnull, "wb")

    def test_asked_twice_it_gives_calls_up_at_once(self):
        with Gateway(*self.holding("60s")) as gateway:
            client, held = self.caller(gateway, "http")
            with held:
                self.end(gateway)
                gateway.process.terminate()
                self.assertIn(b"shuts down", client.communicate(timeout=DEADLINE)[1])
                self.assertEqual(gateway.process.wait(DEADLINE), 0)

    def test_streams_on_which_nothing_is_asked_do_not_hold_it_up(self):
        with Gateway(*self.holding("60s")) as gateway:
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=DEADLINE)) as client:
                client.request("GET", "/sse", headers={"Accept": "text/event-stream"})
                stream = client.getresponse()
                self.assertEqual(stream.status, 200)
                gateway.process.terminate()
                stream.read()
            self.assertEqual(gateway.process.wait(DEADLINE), 0)


class Beginning(ServeTest):
    def test_where_it_cannot_listen_no_server_is_started(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            result = program.run("serve", "--listen", address, *self.config(self.server()))
        self.assertEqual(result.returncode, 3)
        self.assertEqual(result.stderr.splitlines(),
                         [f"fairlead: connection failed: cannot listen on {address}: Address already in use",
                          "remedy: End the program that listens there, or choose another address with --listen HOST:PORT."])


if __name__ == "__main__":
    unittest.main()
