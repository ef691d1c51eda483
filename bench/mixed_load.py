"""The load of the section `mixed` of mcp_http.py: clients that begin sessions, call with JSON and with event streams, list the tools,
open and close standalone streams, and end their sessions."""
import itertools
import json
import re
import socket
import threading
import time

REVISION = "2025-11-25"
JSON_TYPES = "application/json, text/event-stream"
EVENT_TYPES = "text/event-stream"
CALLS_PER_SESSION = 20
LONG_SESSION_CALLS = 5000  # of every LONG_SESSION_INTERVALth session: more than a session retains events
LONG_SESSION_INTERVAL = 50
TIMEOUT = 30


class Client:
    """One keep-alive connection to the server."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT)
        self.buffer = b""
        self.session = None

    def send(self, method, body=b"", accept=JSON_TYPES):
        head = f"{method} /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {accept}\r\nMCP-Protocol-Version: {REVISION}\r\n"
        if self.session:
            head += f"Mcp-Session-Id: {self.session}\r\n"
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self.socket.sendall(head.encode() + b"\r\n" + body)

    def read_until(self, complete):
        """Reads until `complete(buffer)` returns the length of a response. Returns the response."""
        while True:
            length = complete(self.buffer)
            if length:
                response, self.buffer = self.buffer[:length], self.buffer[length:]
                return response
            piece = self.socket.recv(1 << 16)
            if not piece:
                raise OSError("the server closed the connection")
            self.buffer += piece

    def request(self, method, body=b"", accept=JSON_TYPES):
        self.send(method, body, accept)
        response = self.read_until(response_length)
        if not response.startswith(b"HTTP/1.1 20"):
            raise OSError(f"unexpected response: {response[:300]!r}")
        return response

    def call(self, number, method, params, accept=JSON_TYPES):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        response = self.request("POST", json.dumps(message).encode(), accept)
        if b'"result"' not in response or b'"isError":true' in response:
            raise OSError(f"unexpected response: {response[:600]!r}")
        return response

    def initialize(self):
        client = {"name": "mixed_load", "version": "1"}
        response = self.call(0, "initialize", {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client})
        self.session = re.search(rb"(?i)mcp-session-id: ([^\r]+)", response)[1].decode()
        self.request("POST", b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def open_stream(self):
        self.send("GET", accept=EVENT_TYPES)
        self.read_until(lambda data: data.find(b"\r\n\r\n") + 4 if b"\r\n\r\n" in data else 0)

    def close(self):
        self.socket.close()


def response_length(data):
    """Returns the length of the first response in `data`; 0 if it is not complete."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return 0
    head = data[:end].lower()
    if b"transfer-encoding: chunked" in head:
        last = data.find(b"\r\n0\r\n\r\n", end)
        return last + 7 if last >= 0 else 0
    length = re.search(rb"\r\ncontent-length: (\d+)", head)
    whole = end + 4 + (int(length[1]) if length else 0)
    return whole if len(data) >= whole else 0


def run_session(port, number, tools):
    """Makes the calls of one session. Every second session has a standalone stream; half of the calls are answered with event streams."""
    calls = CALLS_PER_SESSION if number % LONG_SESSION_INTERVAL else LONG_SESSION_CALLS
    client = Client(port)
    stream = None
    try:
        client.initialize()
        if number % 2:
            stream = Client(port)
            stream.session = client.session
            stream.open_stream()
        client.call(1, "tools/list", {})
        for call, tool in zip(range(2, 2 + calls), itertools.cycle(tools)):
            params = {"name": tool, "arguments": {"message": "x" * (100 + 400 * (call % 5))}, "_meta": {"progressToken": call}}
            client.call(call, "tools/call", params, EVENT_TYPES if call % 2 else JSON_TYPES)
        if stream and number % 4 == 1:
            stream.close()  # the others are ended by the end of the session
        client.request("DELETE")
    finally:
        client.close()
        if stream:
            stream.close()


class MixedLoad:
    """Runs sessions on several threads until stop() is called."""

    def __init__(self, port, tools, threads=8):
        self.port = port
        self.tools = tools
        self.sessions = 0
        self.failure = None
        self.stopping = False
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def run(self):
        while not self.stopping and not self.failure:
            with self.lock:
                self.sessions += 1
                number = self.sessions
            try:
                run_session(self.port, number, self.tools)
            except OSError as error:
                self.failure = error

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()


def resident_by_time(port, tools, resident, seconds, samples):
    """Runs the load for `seconds`. Returns the number of sessions and the results of resident() at equal intervals."""
    load = MixedLoad(port, tools)
    begin = time.monotonic()
    figures = []
    try:
        for number in range(1, samples + 1):
            while time.monotonic() < begin + seconds * number / samples and not load.failure:
                time.sleep(0.1)
            if load.failure:
                raise load.failure
            figures.append(resident())
    finally:
        load.stop()
    return load.sessions, figures
