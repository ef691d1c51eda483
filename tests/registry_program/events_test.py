#!/usr/bin/env python3
"""GET /events: changes of rows, servers, configuration and drift as server-sent events, for those who may see them."""
import contextlib
import json
import socket
import sys
import unittest

sys.dont_write_bytecode = True

from harness import ADMIN_TOKEN, SANITIZED, RegistryTest, enter_namespace

HTTP = {"transport": "http", "config": {"transport": "http", "url": "http://127.0.0.1:9/mcp"}, "enabled": False}


class EventsTest(RegistryTest):
    def setUp(self):
        super().setUp()
        self.gateway = self.start()

    def tearDown(self):
        self.assert_exits_cleanly(self.gateway)

    def assert_event(self, stream, *words):
        event = stream.wait_for(lambda event: all(word in event.name + event.data for word in words), 10)
        self.assertTrue(event, (words, stream.seen))
        json.loads(event.data)

    def test_changes_of_rows_are_events(self):
        with self.gateway.stream("/events") as stream:
            self.assertEqual(stream.status, 200, stream.body)
            row = self.gateway.create("/mcp/servers", {"name": "remote", **HTTP})
            self.assert_event(stream, row["id"])
            self.gateway.patch(f"/mcp/servers/{row['id']}", {"title": "T"})
            self.assert_event(stream, row["id"])
            self.gateway.request("DELETE", f"/mcp/servers/{row['id']}")
            self.assert_event(stream, row["id"])
            user = self.gateway.create("/users", {"name": "ann", "role": "user"})
            self.assert_event(stream, user["id"])
            self.gateway.set_config("mcp.max_stdio_processes", 9)
            self.assert_event(stream, "mcp.max_stdio_processes")

    def test_state_of_a_server_is_an_event(self):
        row = self.add(self.gateway)
        with self.gateway.stream("/events") as stream:
            self.gateway.mcp().text("toy__pid")
            self.gateway.request("POST", f"/mcp/servers/{row['id']}/stop")
            self.assert_event(stream, "toy")

    def test_secrets_and_tokens_are_not_in_events(self):
        with self.gateway.stream("/events") as stream:
            body = self.toy("files", config={"env": {"KEY": "tiger-lily-secret"}}, enabled=False)
            self.gateway.create("/mcp/servers", body)
            user, token = self.user(self.gateway, "ann")
            last = self.gateway.create("/users", {"name": "bob", "role": "user"})
            self.assert_event(stream, last["id"])
            seen = " ".join(event.data for event in stream.seen)
            self.assertNotIn("tiger-lily-secret", seen)
            self.assertNotIn(token, seen)

    def test_users_get_events_of_what_they_see_only(self):
        _, token = self.user(self.gateway, "ann")
        with self.gateway.stream("/events", token=token) as stream:
            self.assertEqual(stream.status, 200, stream.body)
            hidden = self.gateway.create("/mcp/servers", {"name": "secret", "visibility": "hidden", **HTTP})
            self.gateway.create("/users", {"name": "bob", "role": "user"})
            shown = self.gateway.create("/mcp/servers", {"name": "shown", **HTTP})
            self.assert_event(stream, shown["id"])
            seen = " ".join(event.data for event in stream.seen)
            for text in (hidden["id"], "secret", "bob"):
                self.assertNotIn(text, seen)

    def test_changes_of_a_large_row_do_not_grow_the_gateway(self):
        head = f"GET /events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n\r\n".encode()
        row = self.gateway.create("/mcp/servers", {"name": "remote", **HTTP})
        with contextlib.ExitStack() as stack:
            for _ in range(3):
                client = stack.enter_context(socket.create_connection(("127.0.0.1", self.gateway.port)))
                client.sendall(head)
                self.assertIn(b" 200 ", client.recv(12 + 4))
            before = self.gateway.resident_mib()
            for number in range(150):
                self.gateway.patch(f"/mcp/servers/{row['id']}", {"metadata": {"text": f"{number} " * 200_000}})
            if not SANITIZED:
                self.assertLess(self.gateway.resident_mib() - before, 64)


if __name__ == "__main__":
    enter_namespace(__file__)
    unittest.main()
