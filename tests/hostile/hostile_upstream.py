"""An HTTP MCP server that attacks its client. Upstream(ATTACK) listens on a free port of 127.0.0.1, in threads of this process.

The server completes the handshake (2025-11-25, no session), lists one tool `go`, and attacks when `go` is called or when the
GET stream is opened. Every attack is bounded or ends with stop()."""
import contextlib
import json
import os
import socket
import threading

FLOOD_BYTES = int(os.environ.get("TEST_FLOOD_BYTES", 48 << 20))


class Upstream:
    def __init__(self, attack):
        self.attack = attack
        self.connection_count = 0
        self.stream_count = 0
        self.stopped = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/mcp"
        threading.Thread(target=self.accept, daemon=True).start()

    def stop(self):
        self.stopped.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connection_count += 1
                threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection, contextlib.suppress(OSError, ValueError, IndexError):
            reader = connection.makefile("rb")
            while not self.stopped.is_set():
                verb = reader.readline().split()[0]
                length = 0
                while (header := reader.readline().strip()) != b"":
                    if header.lower().startswith(b"content-length:"):
                        length = int(header.split(b":")[1])
                if verb == b"GET":
                    return self.stream(connection)
                self.answer(connection, json.loads(reader.read(length)))

    def answer(self, connection, request):
        id, method = request.get("id"), request.get("method")
        if id is None:
            return connection.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
        if method == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "h", "version": "1"}}
        elif method == "tools/list":
            result = {"tools": [{"name": "go", "inputSchema": {"type": "object"}}]}
        elif method == "tools/call":
            if not self.attack_call(connection, id):
                return None
            result = {"content": [{"type": "text", "text": "went"}]}
        else:
            return self.json(connection, {"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}})
        return self.json(connection, {"jsonrpc": "2.0", "id": id, "result": result})

    @staticmethod
    def json(connection, message):
        body = json.dumps(message).encode()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    def flood(self, connection, line, total=FLOOD_BYTES):
        block = line * max(1, (64 << 10) // len(line))
        for _ in range(total // len(block)):
            connection.sendall(block)

    def attack_call(self, connection, id):
        """Attacks during a call. Returns whether the caller has to send the ordinary response."""
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        answer = json.dumps({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "went"}]}}).encode()
        if self.attack == "comments":
            connection.sendall(head)
            self.flood(connection, b": x\n\n")
            connection.sendall(b"data: " + answer + b"\n\n")
            connection.shutdown(socket.SHUT_WR)
            return False
        if self.attack == "notifications":
            connection.sendall(head)
            self.flood(connection, b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"x"}}\n\n')
            connection.sendall(b"data: " + answer + b"\n\n")
            connection.shutdown(socket.SHUT_WR)
            return False
        if self.attack == "interim":
            self.flood(connection, b"HTTP/1.1 100 Continue\r\n\r\n")
        if self.attack == "endless_head":
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            self.flood(connection, b"X-Filler: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n")
            return False
        if self.attack == "endless_line":
            connection.sendall(head + b"data: ")
            self.flood(connection, b"z" * 65536, max(FLOOD_BYTES, 16 << 20))  # more than max_frame_bytes
            return False
        if self.attack in ("huge_answer", "large_answer"):  # above and just below max_frame_bytes
            text = "x" * (12 << 20 if self.attack == "huge_answer" else 9_000_000)
            self.json(connection, {"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}})
            return False
        return True

    def stream(self, connection):
        if self.attack != "retry_zero":
            connection.sendall(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
            return
        self.stream_count += 1
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\nretry: 0\nid: 1\ndata:\n\n")
