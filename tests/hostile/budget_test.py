#!/usr/bin/env python3
"""Clients that make the gateway buffer more than their budget, and a gateway without memory or descriptors: the attacker's
requests fail with the name of the limit, and other clients are served. Run as `budget_test.py PROGRAM [TEST…]`."""
import contextlib
import json
import re
import resource
import select
import socket
import sys
import unittest

sys.dont_write_bytecode = True

from harness import DEADLINE, META, SANITIZED, HostileTest, enter_namespace, until
from hostile_upstream import Upstream
from websocket import WebSocket

ATTACKERS = ["127.0.0.2", "127.0.0.3", "127.0.0.4"]  # not the address of well-behaved clients
HEAD = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def connect_attacker(gateway, address=ATTACKERS[0]):
    client = socket.create_connection(("127.0.0.1", gateway.port), DEADLINE, source_address=(address, 0))
    client.settimeout(DEADLINE)
    return client


def send_half_body(gateway, size, address=ATTACKERS[0]):
    """Returns a connection on which `size` bytes of a larger body were sent. The gateway may have closed it."""
    client = connect_attacker(gateway, address)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        client.sendall(f"{HEAD}Content-Length: {size + 1000}\r\n\r\n".encode() + b"x" * size)
    return client


def call_head(tool, size):
    return (
        f"{HEAD}Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
        f"Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\nContent-Length: {size}\r\n\r\n"
    ).encode()


def send_large_call(gateway, tool, size, address=ATTACKERS[0]):
    arguments = {"padding": "x" * size}
    params = {"name": tool, "arguments": arguments, "_meta": META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    client = connect_attacker(gateway, address)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        client.sendall(call_head(tool, len(body)) + body)
    return client


def read_response(client):
    """Reads until the response is complete or the connection ends, and returns the bytes as text."""
    answer = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := client.recv(65536):
            answer += piece
            head, _, body = answer.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            if length and len(body) >= int(length[1]):
                break
    return answer.decode(errors="replace")


class BudgetTest(HostileTest):
    def limits_table(self, client="2M", total="64M"):
        return f'[limits]\nmax_client_buffer_bytes = "{client}"\nmax_buffer_bytes = "{total}"\n'

    def test_bodies_of_one_address_are_rejected_with_429_and_others_are_served(self):
        gateway = self.start(head=self.limits_table())

        def attack():
            with contextlib.ExitStack() as clients:
                connections = [clients.enter_context(send_half_body(gateway, 1_500_000)) for _ in range(3)]
                refused, _, _ = select.select(connections, [], [], DEADLINE)
                return read_response(refused[0])

        answer = self.assert_others_served_during(gateway, attack)
        self.assertIn("HTTP/1.1 429 ", answer)
        self.assertIn("max_client_buffer_bytes (2097152 bytes)", answer)
        self.assert_exits_cleanly(gateway)

    def test_bodies_of_many_addresses_are_rejected_with_503(self):
        gateway = self.start(head=self.limits_table("4M", "4M"))
        with contextlib.ExitStack() as clients:
            connections = [clients.enter_context(send_half_body(gateway, 1_900_000, address)) for address in ATTACKERS]
            refused, _, _ = select.select(connections, [], [], DEADLINE)  # the one that the gateway read last
            answer = read_response(refused[0])
        self.assertIn("HTTP/1.1 503 ", answer)
        self.assertIn("max_buffer_bytes (4194304 bytes)", answer)
        self.assertTrue(until(lambda: "result" in gateway.call("good__go")))
        self.assert_exits_cleanly(gateway)

    def test_waiting_calls_are_charged_until_they_end(self):
        gateway = self.start_listed(self.server("bad", "none"), head=self.limits_table())
        with contextlib.ExitStack() as clients:
            waiting = clients.enter_context(send_large_call(gateway, "bad__wait", 1_500_000))
            self.assertTrue(until(lambda: self.calls_at(gateway, "bad") == 1))
            refused = read_response(clients.enter_context(send_large_call(gateway, "bad__wait", 1_000_000)))
            self.assertIn("HTTP/1.1 429 ", refused)
            self.assertIn("max_client_buffer_bytes (2097152 bytes)", refused)
            self.assertTrue(gateway.text("good__go"))
            waiting.close()  # a modern client cancels a call by closing its connection
            self.assertTrue(until(lambda: self.calls_at(gateway, "bad") == 0))
        with send_large_call(gateway, "bad__go", 1_000_000) as client:
            answer = read_response(client)
        self.assertIn("HTTP/1.1 200 ", answer)
        self.assert_exits_cleanly(gateway)

    def initialize(self, gateway, **params):
        body = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}, **params}
        message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": body}).encode()
        with connect_attacker(gateway) as client:
            client.sendall(f"{HEAD}Accept: application/json, text/event-stream\r\nContent-Length: {len(message)}\r\n\r\n".encode() + message)
            return read_response(client)

    def test_sessions_store_only_a_small_description_of_their_client(self):
        gateway = self.start()
        before = gateway.resident_mib()
        for _ in range(60):
            self.assertIn("HTTP/1.1 200 ", self.initialize(gateway, padding="x" * (3 << 20)))
        if not SANITIZED:  # a sanitizer keeps freed memory
            self.assertLess(gateway.resident_mib() - before, 60)
        self.assertIn("max_client_description_bytes (65536)", self.initialize(gateway, capabilities={"experimental": {"a": "x" * 70_000}}))
        self.assert_exits_cleanly(gateway)

    def test_idle_sessions_with_open_streams_use_little_memory(self):
        gateway = self.start()
        with contextlib.ExitStack() as clients:
            self.open_streams(gateway, clients, 50)  # what the gateway allocates once
            before = gateway.resident_mib()
            self.open_streams(gateway, clients, 1000)
            if not SANITIZED:
                self.assertLess((gateway.resident_mib() - before) * 1024, 1000 * 8, "KiB per session")
        self.assert_exits_cleanly(gateway)

    def open_streams(self, gateway, clients, count):
        for _ in range(count):
            session = re.search(r"(?i)mcp-session-id: ([^\r]+)", self.initialize(gateway))[1]
            client = clients.enter_context(connect_attacker(gateway))
            client.sendall(f"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n".encode())
            self.assertTrue(client.recv(65536).startswith(b"HTTP/1.1 200"))

    def test_client_descriptions_of_sessions_are_charged(self):
        gateway = self.start(head=self.limits_table("1M"))
        described = {"experimental": {"a": "x" * 60_000}}
        answers = [self.initialize(gateway, capabilities=described) for _ in range(20)]
        self.assertIn("protocolVersion", answers[0])
        self.assertIn("max_client_buffer_bytes (1048576 bytes)", answers[-1])
        self.assert_exits_cleanly(gateway)

    def calls_at(self, gateway, server):
        return next(status for status in gateway.health()["servers"] if status["name"] == server)["calls"]


class DescriptorLimitTest(HostileTest):
    def limits_of(self, pid, name):
        with open(f"/proc/{pid}/limits", encoding="utf-8") as file:
            soft, hard = re.search(rf"{name}\s+(\S+)\s+(\S+)", file.read()).groups()
        return soft, hard

    def test_descriptor_limit_is_raised_for_the_gateway_only(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        low = 300
        if hard != resource.RLIM_INFINITY and hard <= low:
            self.skipTest(f"the hard limit of descriptors is {hard}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (low, hard))
        try:
            gateway = self.start()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        self.assertTrue(gateway.text("good__go"))
        raised, ceiling = self.limits_of(gateway.process.pid, "Max open files")
        self.assertEqual(raised, ceiling)
        children = self.survivors()
        self.assertTrue(children)
        for child in children:
            self.assertEqual(self.limits_of(child, "Max open files"), (str(low), ceiling))
        self.assert_exits_cleanly(gateway)


@unittest.skipIf(SANITIZED, "a sanitizer reserves more address space than a limit leaves")
class OutOfMemoryTest(HostileTest):
    """A failed allocation of 64 KiB or more ends only the operation that needed the memory."""

    HEAD = '[limits]\nmax_client_buffer_bytes = "1G"\nmax_buffer_bytes = "1G"\n'

    def limit_memory(self, gateway):
        with open(f"/proc/{gateway.process.pid}/status", encoding="utf-8") as file:
            used = int(re.search(r"VmSize:\s+(\d+)", file.read())[1]) * 1024
        resource.prlimit(gateway.process.pid, resource.RLIMIT_AS, (used + (16 << 20), resource.RLIM_INFINITY))

    def assert_still_serves(self, gateway):
        self.assertTrue(until(lambda: self.is_served(gateway)), gateway.log[-5:])
        self.assertIsNone(gateway.process.poll(), gateway.log[-5:])
        self.assert_exits_cleanly(gateway)

    def is_served(self, gateway):
        try:
            return "result" in gateway.call("good__go")
        except (OSError, ValueError, AssertionError):
            return False

    def test_gateway_survives_request_bodies_that_do_not_fit(self):
        gateway = self.start(head=self.HEAD)
        self.limit_memory(gateway)
        with contextlib.ExitStack() as clients:
            for i in range(20):
                clients.enter_context(send_half_body(gateway, 3_000_000, ATTACKERS[i % 3]))
            self.assert_logged(gateway, "out of memory")
        self.assert_still_serves(gateway)

    def test_gateway_survives_a_websocket_message_that_does_not_fit(self):
        gateway = self.start(head=self.HEAD)
        self.limit_memory(gateway)
        with contextlib.ExitStack() as clients:
            sockets = [clients.enter_context(WebSocket(gateway.port)) for _ in range(8)]
            for client in sockets:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    client.socket.sendall(b"\x81\xff" + (9_000_000).to_bytes(8, "big") + bytes(4) + b"x" * 8_000_000)
            closed, _, _ = select.select([client.socket for client in sockets], [], [], DEADLINE)
            self.assertTrue(closed)  # a close frame (1013, out of memory), or EOF if the frame could not be sent
        self.assert_still_serves(gateway)

    def call_often(self, gateway, tool, count):
        """Makes `count` concurrent calls. Returns their responses."""
        with contextlib.ExitStack() as clients:
            waiting = [clients.enter_context(send_large_call(gateway, tool, 10, ATTACKERS[i % 3])) for i in range(count)]
            return [read_response(client) for client in waiting]

    def test_gateway_survives_a_stdio_response_that_does_not_fit(self):
        gateway = self.start_listed(self.server("bad", "large_answer"), head=self.HEAD)
        self.limit_memory(gateway)
        answers = self.call_often(gateway, "bad__go", 8)
        self.assertTrue(any("out of memory" in answer for answer in answers), [answer[:300] for answer in answers])
        self.assert_still_serves(gateway)

    def test_gateway_survives_an_http_response_that_does_not_fit(self):
        upstream = Upstream("large_answer")
        self.addCleanup(upstream.stop)
        gateway = self.start_listed(f'[servers.bad]\nurl = "{upstream.url}"\n', head=self.HEAD)
        self.limit_memory(gateway)
        answers = self.call_often(gateway, "bad__go", 8)
        self.assertTrue(any("out of memory" in answer for answer in answers), [answer[:300] for answer in answers])
        self.assert_still_serves(gateway)

    def test_gateway_survives_a_list_that_does_not_fit(self):
        gateway = self.start_listed(self.server("bad", "list_grows"), head=self.HEAD)
        self.limit_memory(gateway)
        with contextlib.suppress(AssertionError):
            gateway.call("bad__go")  # after this call the list has 10 MB
        self.assert_logged(gateway, "out of memory")
        self.assert_still_serves(gateway)


if __name__ == "__main__":
    enter_namespace(__file__)
    unittest.main()
