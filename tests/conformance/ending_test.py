#!/usr/bin/env python3
"""The shutdown of a program that uses serve_http(). Run as `ending_test.py CONFORMANCE-SERVER [TEST…]`."""
import os
import re
import socket
import subprocess
import sys
import time
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from websocket import WebSocket

PROGRAM = os.path.abspath(sys.argv.pop(1))
DEADLINE = 30  # seconds; timeout of every operation that must not hang
LARGE = "x" * (8 << 20)  # does not fit into the socket buffers


class ShutdownTest(unittest.TestCase):
    def setUp(self):
        self.server = subprocess.Popen([PROGRAM, "--port", "0"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.server.communicate)
        self.addCleanup(self.server.kill)
        self.port = int(re.search(r":(\d+)/", self.server.stdout.readline())[1])

    def start_elicitation(self, client):
        """Calls a tool that elicits. Returns the id of the elicitation request; the result of the call will contain the response to it."""
        params = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "t", "version": "1"}}
        client.send(id=1, method="initialize", params=params)
        self.assertIn("result", client.receive())
        client.send(id=2, method="tools/call", params={"name": "test_elicitation", "arguments": {"message": "?"}})
        question = client.receive()
        self.assertEqual(question["method"], "elicitation/create")
        return question["id"]

    def begin_shutdown(self):
        """Sends SIGTERM, and waits until the server no longer listens."""
        self.server.terminate()
        until = time.monotonic() + DEADLINE
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except ConnectionError:
                return
            time.sleep(0.01)

    def respond(self, client, request_id, username):
        client.send(id=request_id, result={"action": "accept", "content": {"username": username, "email": "a@b.example"}})

    def assert_finished(self, client, username):
        self.assertIn(username, client.receive()["result"]["content"][0]["text"])
        self.assertIsNone(client.receive())
        self.assertEqual(self.server.wait(DEADLINE), 0)

    def test_websocket_call_in_progress_finishes(self):
        with WebSocket(self.port) as client:
            question = self.start_elicitation(client)
            self.begin_shutdown()
            self.respond(client, question, "alice")
            self.assert_finished(client, "alice")

    def test_slow_client_receives_the_whole_response(self):
        with WebSocket(self.port) as client:
            self.respond(client, self.start_elicitation(client), LARGE)
            client.wait_for_input()
            self.begin_shutdown()
            self.assert_finished(client, LARGE)

    def test_idle_websocket_does_not_delay_the_shutdown(self):
        with WebSocket(self.port) as client:
            began = time.monotonic()
            self.server.terminate()
            self.assertIsNone(client.receive())
            self.assertEqual(self.server.wait(DEADLINE), 0)
            self.assertLess(time.monotonic() - began, 4)  # the grace is 5 s


if __name__ == "__main__":
    unittest.main()
