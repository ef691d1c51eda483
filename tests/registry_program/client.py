"""Clients of the tests of the registry: Answer (an HTTP response), EventStream (a response that is a stream of server-sent events),
McpClient (requests to one MCP endpoint, in both eras)."""
import collections
import contextlib
import http.client
import json
import queue
import socket
import threading
import time

from gateway import DEADLINE, META

Event = collections.namedtuple("Event", "name data id")
LEGACY = "2025-11-25"
MODERN = "2026-07-28"


class Answer:
    """A complete HTTP response."""

    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()
        self.text = self.body.decode(errors="replace")

    def json(self):
        return json.loads(self.body)

    def problem(self):
        """Returns the code of a problem document (RFC 9457), or of a JSON-RPC error."""
        document = self.json()
        return document.get("code") or document.get("error", {}).get("data", {}).get("code")

    def __repr__(self):
        return f"{self.status} {self.text[:600]!r}"


def bearer(token):
    return {"Authorization": f"Bearer {token}"} if token else {}


def request(port, method, path, body=None, headers=None, timeout=DEADLINE):
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)) as connection:
        connection.request(method, path, body, headers or {})
        return Answer(connection.getresponse())


class EventStream:
    """A request whose response is a stream of events, which a thread reads. `status` and `headers` are those of the response;
    `body` has the body of a response that is not a stream."""

    def __init__(self, port, path, headers=None, method="GET", body=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
        self.connection.connect()
        self.socket = self.connection.sock
        self.connection.request(method, path, body, {"Accept": "text/event-stream", **(headers or {})})
        response = self.connection.getresponse()
        self.socket.settimeout(None)
        self.status, self.headers = response.status, response.headers
        self.seen = []
        self.ended = threading.Event()
        self.events = queue.Queue()
        self.reader = None
        if (response.headers.get("Content-Type") or "").startswith("text/event-stream"):
            self.body = b""
            self.reader = threading.Thread(target=self.read, args=(response,), daemon=True)
            self.reader.start()
        else:
            self.body = response.read()
            self.ended.set()

    def read(self, response):
        fields = {}
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError, AttributeError):
            for raw in response:
                line = raw.decode(errors="replace").rstrip("\r\n")
                if line:
                    name, _, value = line.partition(":")
                    value = value.removeprefix(" ")
                    fields[name] = fields[name] + "\n" + value if name == "data" and "data" in fields else value
                elif fields:
                    if "data" in fields:
                        self.events.put((time.monotonic(), Event(fields.get("event", "message"), fields["data"], fields.get("id"))))
                    fields = {}
        self.ended.set()
        self.events.put(None)

    def next(self, seconds=DEADLINE):
        """Returns the next event, or None when the stream has ended or after `seconds`."""
        with contextlib.suppress(queue.Empty):
            item = self.events.get(timeout=seconds)
            if item is not None:
                self.seen.append(item[1])
                self.last_time = item[0]
                return item[1]
        return None

    def wait_for(self, matches, seconds=DEADLINE):
        """Returns the first event from now on for which `matches(event)` is true, or None."""
        end = time.monotonic() + seconds
        while (event := self.next(max(0.001, end - time.monotonic()))) is not None:
            if matches(event):
                return event
        return None

    def notification(self, method, seconds=DEADLINE):
        """Returns the next JSON-RPC notification of the method."""
        event = self.wait_for(lambda event: event.data.startswith("{") and json.loads(event.data).get("method") == method, seconds)
        return event and json.loads(event.data)

    def response(self, id, seconds=DEADLINE):
        event = self.wait_for(lambda event: event.data.startswith("{") and json.loads(event.data).get("id") == id, seconds)
        return event and json.loads(event.data)

    def ends(self, seconds=DEADLINE):
        return self.ended.wait(seconds)

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        if self.reader:
            self.reader.join(DEADLINE)
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class RpcError(AssertionError):
    def __init__(self, error):
        super().__init__(json.dumps(error))
        self.error = error


class McpClient:
    """A client of one MCP endpoint. `era` is MODERN, or LEGACY for a session."""

    def __init__(self, port, path="/mcp", token=None, era=MODERN):
        self.port, self.path, self.token, self.era = port, path, token, era
        self.session = None
        if era == LEGACY:
            params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
            answer = self.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
            self.session = answer.headers.get("Mcp-Session-Id")
            if answer.status != 200 or not self.session:
                raise AssertionError(answer)
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def headers(self, method=None, params=None):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **bearer(self.token)}
        if self.era == MODERN:
            headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": method or ""}
            name = (params or {}).get("name") or (params or {}).get("uri")
            if name:
                headers["Mcp-Name"] = name
        elif self.session:
            headers |= {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": LEGACY}
        return headers

    def send(self, message):
        params = message.get("params")
        return request(self.port, "POST", self.path, json.dumps(message), self.headers(message["method"], params))

    def message(self, method, params):
        params = {**params, "_meta": {**META, **params.get("_meta", {})}} if self.era == MODERN else params
        return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}

    def raw(self, method, **params):
        """Returns the whole HTTP response."""
        return self.send(self.message(method, params))

    def post(self, method, **params):
        """Returns the JSON-RPC response as a dictionary."""
        return json.loads(self.post_text(method, **params))

    def post_text(self, method, **params):
        """Returns the text of the JSON-RPC response."""
        answer = self.raw(method, **params)
        if answer.text.startswith("{"):
            return answer.text
        events = [line[5:].strip() for line in answer.text.splitlines() if line.startswith("data:")]
        responses = [event for event in events if event.startswith("{") and json.loads(event).get("id") == 1]
        if not responses:
            raise AssertionError(f"no response: {answer}")
        return responses[-1]

    def result(self, method, **params):
        response = self.post(method, **params)
        if "result" not in response:
            raise RpcError(response.get("error", response))
        return response["result"]

    def error(self, method, **params):
        """Returns the JSON-RPC error, or one with the HTTP status if the response is not JSON-RPC."""
        answer = self.raw(method, **params)
        document = json.loads(answer.text) if answer.text.startswith("{") else {}
        if "result" in document or (answer.status == 200 and not document):
            raise AssertionError(f"no error: {answer}")
        return document.get("error") if isinstance(document.get("error"), dict) else {"code": answer.status, "message": answer.text}

    def list(self, method, member):
        found, cursor = [], {}
        while True:
            page = self.result(method, **cursor)
            found += page[member]
            if not page.get("nextCursor"):
                return found
            cursor = {"cursor": page["nextCursor"]}

    def tool_entries(self):
        return self.list("tools/list", "tools")

    def tools(self):
        return [tool["name"] for tool in self.tool_entries()]

    def resources(self):
        return [entry["uri"] for entry in self.list("resources/list", "resources")]

    def prompts(self):
        return [entry["name"] for entry in self.list("prompts/list", "prompts")]

    def call(self, tool, **arguments):
        return self.result("tools/call", name=tool, arguments=arguments)

    def text(self, tool, **arguments):
        return self.call(tool, **arguments)["content"][0]["text"]

    def listen(self):
        """Opens the stream of notifications, and waits until it is open."""
        if self.era == LEGACY:
            return EventStream(self.port, self.path, self.headers())
        params = {"notifications": {"toolsListChanged": True, "resourcesListChanged": True, "promptsListChanged": True}}
        body = json.dumps(self.message("subscriptions/listen", params))
        headers = {**self.headers("subscriptions/listen"), "Accept": "application/json, text/event-stream"}
        return EventStream(self.port, self.path, headers, "POST", body)
