#!/usr/bin/env python3
"""fairlead serve: the shutdown, failure codes, and an address that cannot be used."""
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

# A server whose tool `wait` reads a FIFO to its end, so that a call lasts until the test closes the FIFO.
BLOCKING_SERVER = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method")
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "wait", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        with open(sys.argv[1]) as fifo:
            fifo.read()
        times = request["params"].get("arguments", {}).get("times", 1)
        result = {"content": [{"type": "text", "text": "done" * times}]}
    elif "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


class FailureCodeTest(ServeTest):
    def test_every_failure_has_a_code_and_a_remedy(self):  # R10.5
        def code(answer):
            data = json.loads(answer)["error"]["data"]
            self.assertTrue(data["remedy"], data)
            return data["code"]

        with Gateway(*self.config(self.server())) as gateway:
            gateway.post("tools/list", {})
            self.assertEqual(code(gateway.call("s__large")), "frame_too_large")
            self.assertEqual(code(gateway.call("s__no")), "unknown_name")
        with Gateway() as upstream, Gateway(*self.config(f'[servers.up]\nurl = "http://127.0.0.1:{upstream.port}/mcp"')) as gateway:
            self.assertIn('"sum":3', gateway.call("up__demo__add", a=1, b=2))
            upstream.process.kill()
            upstream.process.wait(DEADLINE)
            self.assertEqual(code(gateway.call("up__demo__add", a=1, b=2)), "connection_failed")
        os.mkfifo(self.path("fifo"))
        limited = self.server(text=BLOCKING_SERVER, args=[self.path("fifo")], extra='max_calls = 1\nclocks.queue = "50ms"')
        with Gateway(*self.config('drain_grace = "100ms"\n' + limited)) as gateway:
            answers = []
            caller = threading.Thread(target=lambda: answers.append(gateway.call("s__wait")))
            caller.start()
            with open(self.path("fifo"), "w"):
                self.assertEqual(code(gateway.call("s__wait")), "resource_exhausted")
                gateway.process.terminate()
                caller.join(DEADLINE)
                self.assertEqual(code(answers[0]), "draining")


class ServeShutdownTest(ServeTest):
    def config_with_blocking_server(self, grace):
        """Returns the options of a gateway with the server BLOCKING_SERVER."""
        os.mkfifo(self.path("fifo"))
        return self.config(f'drain_grace = "{grace}"\n' + self.server(text=BLOCKING_SERVER, args=[self.path("fifo")]))

    def start_client(self, gateway, scheme):
        """Starts the program as a client that calls `wait`. Returns its process, and the FIFO that ends the call when it is closed."""
        client = program.start("tools", f"{scheme}://127.0.0.1:{gateway.port}/mcp", "s__wait", "{}")
        self.addCleanup(client.communicate)
        self.addCleanup(client.kill)
        return client, open(self.path("fifo"), "w")  # blocks until the server has opened the FIFO

    def call_on_stdin(self, gateway):
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "s__wait", "_meta": META}}
        gateway.process.stdin.write((json.dumps(call) + "\n").encode())
        gateway.process.stdin.flush()
        return open(self.path("fifo"), "w")

    def begin_shutdown(self, gateway):
        gateway.process.terminate()
        end = time.monotonic() + DEADLINE
        while not any("shutting down" in line for line in gateway.lines) and time.monotonic() < end:
            time.sleep(0.01)

    def test_calls_in_progress_finish_over_http_and_websocket(self):
        for scheme in ("http", "ws"):
            with self.subTest(scheme), Gateway(*self.config_with_blocking_server("60s")) as gateway:
                client, fifo = self.start_client(gateway, scheme)
                self.begin_shutdown(gateway)
                fifo.close()
                self.assertEqual((client.communicate(timeout=DEADLINE)[0], client.returncode), (b"done\n", 0))
                self.assertEqual(gateway.process.wait(DEADLINE), 0)
            os.unlink(self.path("fifo"))

    def test_slow_websocket_client_receives_the_whole_response(self):
        times = 2 << 20  # the response does not fit into the socket buffers
        with Gateway(*self.config_with_blocking_server("60s")) as gateway, WebSocket(gateway.port) as client:
            client.send(id=1, method="tools/call", params={"name": "s__wait", "arguments": {"times": times}, "_meta": META})
            open(self.path("fifo"), "w").close()
            client.wait_for_input()
            self.begin_shutdown(gateway)
            self.assertEqual(client.receive()["result"]["content"][0]["text"], "done" * times)
            self.assertIsNone(client.receive())
            self.assertEqual(gateway.process.wait(DEADLINE), 0)

    def test_calls_that_exceed_drain_grace_fail(self):
        for scheme in ("http", "ws"):
            with self.subTest(scheme), Gateway(*self.config_with_blocking_server("100ms")) as gateway:
                client, fifo = self.start_client(gateway, scheme)
                with fifo:
                    gateway.process.terminate()
                    self.assertIn(b"shuts down", client.communicate(timeout=DEADLINE)[1])
                self.assertEqual((client.returncode, gateway.process.wait(DEADLINE)), (1, 0))
            os.unlink(self.path("fifo"))

    def test_stdio_calls_that_exceed_drain_grace_fail(self):
        with Gateway(*self.config_with_blocking_server("100ms"), stdio=True) as gateway:
            with self.call_on_stdin(gateway):
                gateway.process.terminate()
                self.assertIn("shuts down", json.loads(gateway.process.stdout.readline())["error"]["message"])
            self.assertEqual(gateway.process.wait(DEADLINE), 0)

    def test_shutdown_at_end_of_stdin_waits_no_longer_than_drain_grace(self):
        with Gateway(*self.config_with_blocking_server("100ms"), stdio=True) as gateway:
            with self.call_on_stdin(gateway):
                began = time.monotonic()
                gateway.process.stdin.close()
                self.assertEqual(gateway.process.wait(DEADLINE), 0)
                self.assertLess(time.monotonic() - began, 4)  # the default is 5 s
            gateway.process.stdin = open(os.devnull, "wb")

    def test_second_signal_cancels_calls_at_once(self):
        with Gateway(*self.config_with_blocking_server("60s")) as gateway:
            client, fifo = self.start_client(gateway, "http")
            with fifo:
                self.begin_shutdown(gateway)
                gateway.process.terminate()
                self.assertIn(b"shuts down", client.communicate(timeout=DEADLINE)[1])
                self.assertEqual(gateway.process.wait(DEADLINE), 0)

    def test_idle_event_streams_do_not_delay_the_shutdown(self):
        with Gateway(*self.config_with_blocking_server("60s")) as gateway:
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=DEADLINE)) as client:
                client.request("GET", "/sse", headers={"Accept": "text/event-stream"})
                stream = client.getresponse()
                self.assertEqual(stream.status, 200)
                gateway.process.terminate()
                stream.read()
            self.assertEqual(gateway.process.wait(DEADLINE), 0)


class ServeStartTest(ServeTest):
    def test_no_server_is_started_when_the_address_is_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            result = program.run("serve", "--listen", address, *self.config(self.server()))
        self.assertEqual(result.returncode, 3)
        self.assertEqual(result.stderr.splitlines(),
                         [f"fairlead: connection failed: cannot listen on {address}: Address already in use",
                          "remedy: End the program that listens there, or choose another address with --listen HOST:PORT."])


if __name__ == "__main__":
    unittest.main()
