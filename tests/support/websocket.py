"""A WebSocket client that reads only when receive() is called, like a slow client."""
import base64
import json
import os
import socket
import struct


class WebSocket:
    def __init__(self, port, path="/mcp", timeout=30, headers=None):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # small, so that unread data stays in the server
        self.socket.settimeout(timeout)
        self.socket.connect(("127.0.0.1", port))
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                 f"Sec-WebSocket-Key: {key}", *(f"{name}: {value}" for name, value in (headers or {}).items())]  # fmt: skip
        self.socket.sendall("".join(line + "\r\n" for line in [*lines, ""]).encode())
        self.input = self.socket.makefile("rb")
        head = b"".join(iter(self.input.readline, b"\r\n"))
        if not head.startswith(b"HTTP/1.1 101 "):
            self.__exit__()
            raise ConnectionRefusedError(head.decode(errors="replace"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.input.close()
        self.socket.close()

    def send(self, **message):
        text = json.dumps({"jsonrpc": "2.0", **message}).encode()
        size = len(text)  # encoded in one, three or nine bytes
        head = struct.pack(">B", 0x80 | size) if size < 126 else struct.pack(">BH", 0xFE, size) if size < 65536 else struct.pack(">BQ", 0xFF, size)
        self.socket.sendall(b"\x81" + head + bytes(4) + text)  # masked with zeros

    def receive(self):
        """Returns the next message; None when the server has closed the connection."""
        while True:
            opcode, size = struct.unpack(">BB", self._exactly(2))
            if size > 125:
                size = struct.unpack(">H" if size == 126 else ">Q", self._exactly(2 if size == 126 else 8))[0]
            payload = self._exactly(size)
            if opcode == 0x81:
                return json.loads(payload)
            if opcode == 0x88:
                return None

    def wait_for_input(self):
        """Blocks until data has arrived, without reading it."""
        self.socket.recv(1, socket.MSG_PEEK)

    def _exactly(self, size):
        data = self.input.read(size)
        if len(data) < size:
            raise EOFError(f"the connection ended after {len(data)} of {size} bytes")
        return data
