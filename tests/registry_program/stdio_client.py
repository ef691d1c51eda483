"""StdioClient: a desktop client that starts `fairlead serve --stdio` and speaks MCP with it on stdin and stdout. Import harness
first."""
import json
import os
import queue
import subprocess
import threading

from gateway import DEADLINE, META, PROGRAM

LEGACY = "2025-11-25"


class StdioClient:
    """`capabilities` are those of the handshake of a legacy client; None: a modern client, without a handshake."""

    def __init__(self, *args, environment=None, capabilities=None):
        self.process = subprocess.Popen([PROGRAM, "serve", "--stdio", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env={**os.environ, **(environment or {})})  # fmt: skip
        self.modern = capabilities is None
        self.log = []
        self.messages = queue.Queue()
        self.set_aside = []
        self.last_id = 0
        self.readers = [threading.Thread(target=self.read_messages, daemon=True), threading.Thread(target=self.read_log, daemon=True)]
        for reader in self.readers:
            reader.start()
        if not self.modern:
            client = {"protocolVersion": LEGACY, "capabilities": capabilities, "clientInfo": {"name": "desktop", "version": "1"}}
            self.handshake = self.response(self.request("initialize", client))
            self.notify("notifications/initialized")

    def read_messages(self):
        for line in self.process.stdout:
            message = json.loads(line)
            self.messages.put({"batch": message} if isinstance(message, list) else message)
        self.messages.put(None)

    def read_log(self):
        for line in self.process.stderr:
            self.log.append(line.decode(errors="replace"))

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def notify(self, method, params=None):
        self.send({"method": method, **({"params": params} if params else {})})

    def request(self, method, params=None, token=None):
        """Sends a request and returns its id. `token` is the progress token."""
        self.last_id += 1
        params = dict(params or {})
        meta = {**(META if self.modern else {}), **({"progressToken": token} if token else {})}
        if meta:
            params["_meta"] = meta
        self.send({"id": self.last_id, "method": method, "params": params})
        return self.last_id

    def find(self, wanted, seconds=DEADLINE):
        """Returns the first message for which `wanted` is true; None at the end of the output."""
        for message in self.set_aside:
            if wanted(message):
                self.set_aside.remove(message)
                return message
        while True:
            try:
                message = self.messages.get(timeout=seconds)
            except queue.Empty:
                raise AssertionError(f"no such message; others: {self.set_aside}; log: {self.log[-10:]}") from None
            if message is None or wanted(message):
                return message
            self.set_aside.append(message)

    def response(self, id):
        message = self.find(lambda found: found.get("id") == id and "method" not in found)
        if message is None:
            raise AssertionError(f"the process has ended: {self.log[-10:]}")
        return message

    def notification(self, method):
        return self.find(lambda found: found.get("method") == method)

    def call(self, tool, token=None, **arguments):
        return self.response(self.request("tools/call", {"name": tool, "arguments": arguments}, token))

    def text(self, tool, **arguments):
        response = self.call(tool, **arguments)
        if "result" not in response:
            raise AssertionError(f"{response}; log: {self.log[-10:]}")
        return response["result"]["content"][0]["text"]

    def tools(self):
        return [tool["name"] for tool in self.response(self.request("tools/list"))["result"]["tools"]]

    def close(self):
        """Ends the input, and returns the exit status."""
        if not self.process.stdin.closed:
            self.process.stdin.close()
        status = self.process.wait(DEADLINE)
        for reader in self.readers:
            reader.join(DEADLINE)
        self.process.stdout.close()
        self.process.stderr.close()
        return status
