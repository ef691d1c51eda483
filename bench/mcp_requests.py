"""Requests of MCP clients. Those of http_load are a body, and the options of http_load that belong to it."""
import json
import re
import socket

ENVELOPE = (
    '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    '"io.modelcontextprotocol/clientCapabilities":{},"progressToken":1}'
)
# The headers of a request with no `Accept` of its own. The client lets the server choose between JSON and events.
COMMON = ("--header", "Content-Type: application/json", "--header", "Accept: application/json, text/event-stream")
EVENTS_ONLY = ("--header", "Content-Type: application/json", "--header", "Accept: text/event-stream")


def modern(tool):
    body = '{"jsonrpc":"2.0","id":@ID@,"method":"tools/call","params":{"name":"%s","arguments":{"message":"%s"},%s}}'
    headers = ("MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", f"Mcp-Name: {tool}")
    return body % (tool, "x" * 100, ENVELOPE), [word for header in headers for word in ("--header", header)]


def legacy(tool, arguments='{"message":"%s"}' % ("x" * 100)):
    body = '{"jsonrpc":"2.0","id":@ID@,"method":"tools/call","params":{"name":"%s","arguments":%s}}' % (tool, arguments)
    return body, ["--session", "--header", "MCP-Protocol-Version: 2025-06-18"]


def tools_list():
    return '{"jsonrpc":"2.0","id":@ID@,"method":"tools/list","params":{}}', ["--session", "--header", "MCP-Protocol-Version: 2025-06-18"]


def events(tool):
    """Returns a modern request whose client accepts only an event stream."""
    body, options = modern(tool)
    return body, [*EVENTS_ONLY, *options]


def options_of(request):
    """Returns all options of http_load for a request, with COMMON unless the request has headers that replace it."""
    options = request[1]
    return options if "Accept: text/event-stream" in options else [*COMMON, *options]


def structured(size):
    """Returns arguments of about `size` bytes: objects, arrays, numbers and strings. The C echo responds with `message` only."""
    row = {"id": 12345, "name": "a name of a row", "tags": ["red", "green"], "size": {"width": 1.5, "height": -2}, "ok": True}
    row_bytes = len(json.dumps(row, separators=(",", ":"))) + 1
    return {"message": "hello", "rows": [row] * ((size - 50) // row_bytes)}


def open_stream(port):
    """Begins a session and opens its GET stream. Returns the connection."""
    connection = socket.create_connection(("127.0.0.1", port), 10)
    body = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}'
    head = "Host: 127.0.0.1\r\nAccept: application/json, text/event-stream\r\n"
    connection.sendall(f"POST /mcp HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    response = b""
    while b"\r\n\r\n" not in response or not response.endswith(b"}"):
        response += connection.recv(65536)
    session = re.search(rb"(?i)mcp-session-id: ([^\r]+)", response)[1].decode()
    connection.sendall(f"GET /mcp HTTP/1.1\r\n{head}Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n\r\n".encode())
    if not connection.recv(65536).startswith(b"HTTP/1.1 200"):
        raise OSError("the server did not open a stream")
    return connection
