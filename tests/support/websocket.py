"""A WebSocket client that does what it is told and no more: it reads when it is asked to, as a slow client does."""
import base64
import json
import os
import socket
import struct


class WebSocket:
    def __init__(self, port, path="/mcp", timeout=30):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # what it does not read stays with the server
        self.socket.settimeout(timeout)
        self.socket.connect(("127.0.0.1", port))
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        self.input = self.socket.makefile("rb")
        head = b"".join(iter(self.input.readline, b"\r\n"))
        assert head.startswith(b"HTTP/1.1 101 "), head

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.input.close()
        self.socket.close()

    def send(self, **message):
        text = json.dumps({"jsonrpc": "2.0", **message}).encode()
        size = len(text)  # in as few bytes as it fits
        head = struct.pack(">B", 0x80 | size) if size < 126 else struct.pack(">BH", 0xFE, size) if size < 65536 else struct.pack(">BQ", 0xFF, size)
        self.socket.sendall(b"\x81" + head + bytes(4) + text)  # masked with zeros

    def receive(self):
        """The next message; None when the server has closed."""
        while True:
            opcode, size = struct.unpack(">BB", self._exactly(2))
            if size > 125:
                size = struct.unpack(">H" if size == 126 else ">Q", self._exactly(2 if size == 126 else 8))[0]
            payload = self._exactly(size)
            if opcode == 0x81:
                return json.loads(payload)
            if opcode == 0x88:
                return None

    def answer_begins(self):
        """Returns when something has come, without reading it."""
        self.socket.recv(1, socket.MSG_PEEK)

    def _exactly(self, size):
        data = self.input.read(size)
        if len(data) < size:
            raise EOFError(f"cut after {len(data)} of {size} bytes")
        return data
