#!/usr/bin/env python3
"""serve_http() in a real program: how it ends. Run as `ending_test.py CONFORMANCE-SERVER [TEST…]`."""
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
DEADLINE = 30  # seconds, for whatever must not hang
LARGE = "x" * (8 << 20)  # more than the sockets between them hold


class Ending(unittest.TestCase):
    def setUp(self):
        self.server = subprocess.Popen([PROGRAM, "--port", "0"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.server.communicate)
        self.addCleanup(self.server.kill)
        self.port = int(re.search(r":(\d+)/", self.server.stdout.readline())[1])

    def asking(self, client):
        """The id of what the server asks in the midst of a call, whose answer has what it was answered."""
        about = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "t", "version": "1"}}
        client.send(id=1, method="initialize", params=about)
        self.assertIn("result", client.receive())
        client.send(id=2, method="tools/call", params={"name": "test_elicitation", "arguments": {"message": "?"}})
        question = client.receive()
        self.assertEqual(question["method"], "elicitation/create")
        return question["id"]

    def end(self):
        """Returns when the server has begun to end: it no longer listens."""
        self.server.terminate()
        until = time.monotonic() + DEADLINE
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except ConnectionError:
                return
            time.sleep(0.01)

    def answer(self, client, question, username):
        client.send(id=question, result={"action": "accept", "content": {"username": username, "email": "a@b.example"}})

    def finishes(self, client, username):
        self.assertIn(username, client.receive()["result"]["content"][0]["text"])
        self.assertIsNone(client.receive())
        self.assertEqual(self.server.wait(DEADLINE), 0)

    def test_a_call_under_way_on_a_websocket_finishes(self):
        with WebSocket(self.port) as client:
            question = self.asking(client)
            self.end()
            self.answer(client, question, "alice")
            self.finishes(client, "alice")

    def test_an_answer_reaches_a_slow_client_whole(self):
        with WebSocket(self.port) as client:
            self.answer(client, self.asking(client), LARGE)
            client.answer_begins()
            self.end()
            self.finishes(client, LARGE)

    def test_an_idle_websocket_does_not_hold_it_up(self):
        with WebSocket(self.port) as client:
            began = time.monotonic()
            self.server.terminate()
            self.assertIsNone(client.receive())
            self.assertEqual(self.server.wait(DEADLINE), 0)
            self.assertLess(time.monotonic() - began, 4)  # the grace is 5 s


if __name__ == "__main__":
    unittest.main()
