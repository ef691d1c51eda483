#!/usr/bin/env python3
"""fairlead serve: requests with repeated keys, which parsers read differently, and the recipients of progress notifications."""
import json
import os
import threading
import time
import unittest

from program import DEADLINE
from serve_test import Gateway, ServeTest

# Appends every line that it receives to a file. Its parser uses the first of repeated keys, as some parsers do. Responds to
# calls of the tool `together` in pairs.
SERVER = """
import json, sys
def first_of_repeated(pairs):
    members = {}
    for key, value in pairs:
        members.setdefault(key, value)
    return members
def send(message):
    sys.stdout.write(json.dumps(message) + "\\n"); sys.stdout.flush()
waiting = []
for line in sys.stdin:
    with open(sys.argv[1], "a") as file: file.write(line)
    request = json.loads(line, object_pairs_hook=first_of_repeated)
    method, id, params = request.get("method"), request.get("id"), request.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("read", "together", "drop_all")]}
    elif method == "tools/call":
        name = params["name"]
        waiting.append((id, params.get("_meta", {}).get("progressToken"), params.get("arguments", {}).get("who")))
        if name == "together" and len(waiting) < 2: continue
        for id, token, who in waiting:
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1, "message": who}})
        for id, token, who in waiting:
            send({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": name}]}})
        waiting = []
        continue
    elif id is None:
        continue
    else:
        send({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}}); continue
    send({"jsonrpc": "2.0", "id": id, "result": result})
"""
ENVELOPE = '"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}'
# Params with a repeated key, by that key.
REPEATED = {
    "name": '"name":"s__drop_all","name":"s__read"',
    "`name`": '"name":"s__drop_all","n\\u0061me":"s__read"',
    "_meta": '"name":"s__read","_meta":{%s,"progressToken":1},"_meta":{%s}' % (ENVELOPE, ENVELOPE),
    "progressToken": '"name":"s__read","_meta":{%s,"progressToken":1,"progressToken":"mine"}' % ENVELOPE,
    "`progressToken`": '"name":"s__read","_meta":{%s,"progressToken":1,"progress\\u0054oken":"mine"}' % ENVELOPE,
    "arguments": '"name":"s__read","arguments":{},"arguments":{"all":true}',
}


class ForwardingTest(ServeTest):
    def gateway(self, **options):
        text = self.server(text=SERVER, args=(self.path("lines"),), extra='sharing = "shared"')
        return Gateway(*self.config(text), **options)

    def received(self):
        if not os.path.exists(self.path("lines")):
            return []
        with open(self.path("lines"), encoding="utf-8") as file:
            return [line for line in file if '"tools/call"' in line]

    @staticmethod
    def wait_until(condition):
        end = time.monotonic() + DEADLINE
        while not condition() and time.monotonic() < end:
            time.sleep(0.01)
        return condition()

    def post(self, gateway, params, name, session=None, id=1):
        """Sends a call whose params have exactly this text. Returns the status and the body of the response."""
        if "_meta" not in params and session is None:
            params += ',"_meta":{%s}' % ENVELOPE
        body = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s}}' % (id, params)
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if session:
            headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
        else:
            headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name}
        return gateway.ask("POST", "/mcp", body, headers)

    def assert_rejected(self, text, key):
        error = json.loads(text)["error"]
        self.assertEqual(error["code"], -32602, text)
        self.assertIn(key.strip("`"), error["message"])
        self.assertIn("repeated", error["message"])

    def test_repeated_keys_of_a_modern_request_are_rejected_and_named(self):
        with self.gateway() as gateway:
            gateway.post("tools/list", {})
            for key, params in REPEATED.items():
                with self.subTest(params):
                    status, text = self.post(gateway, params, "s__read")
                    self.assertEqual(status, 400)
                    self.assert_rejected(text, key)
            self.assertIn("result", self.post(gateway, '"name":"s__read"', "s__read")[1])
        self.assertEqual(len(self.received()), 1)

    def test_repeated_keys_in_a_stdio_session_are_rejected_and_named(self):
        with self.gateway(stdio=True) as gateway:
            stdin, stdout = gateway.process.stdin, gateway.process.stdout

            def exchange(line):
                stdin.write(line.encode() + b"\n")
                stdin.flush()
                return stdout.readline().decode()

            handshake = '"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}'
            self.assertIn("serverInfo", exchange('{"jsonrpc":"2.0","id":0,"method":"initialize","params":{%s}}' % handshake))
            for key, params in REPEATED.items():
                params = params.replace(ENVELOPE, '"a":1')
                with self.subTest(params):
                    self.assert_rejected(exchange('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s}}' % params), key)
            self.assertIn("result", exchange('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__read"}}'))
            stdin.close()
        self.assertEqual(len(self.received()), 1)

    def test_progress_reaches_the_right_call_when_two_clients_use_the_same_token(self):
        answers = {}
        with self.gateway() as gateway:
            gateway.post("tools/list", {})

            def call(who):
                params = '"name":"s__together","arguments":{"who":"%s"},"_meta":{%s,"progressToken":1}' % (who, ENVELOPE)
                answers[who] = self.post(gateway, params, "s__together")[1]

            callers = [threading.Thread(target=call, args=(who,)) for who in ("ann", "bob")]
            for caller in callers:
                caller.start()
            for caller in callers:
                caller.join(DEADLINE)
        for who, other in (("ann", "bob"), ("bob", "ann")):
            self.assertIn(f'"message": "{who}"', answers[who])
            self.assertNotIn(f'"{other}"', answers[who])
            self.assertIn('"progressToken": 1,', answers[who])

    def test_progress_does_not_reach_a_call_whose_id_another_client_uses_as_token(self):
        answers = {}
        with self.gateway() as gateway:
            gateway.post("tools/list", {})

            def call(who, meta):
                params = '"name":"s__together","arguments":{"who":"%s"},"_meta":{%s,%s}' % (who, ENVELOPE, meta)
                return self.post(gateway, params, "s__together")[1]

            victim = threading.Thread(target=lambda: answers.update(ann=call("ann", '"progressToken":"a"')))
            victim.start()
            self.assertTrue(self.wait_until(lambda: self.received()))
            victim_id = json.loads(self.received()[0])["id"]
            answers["mallory"] = call("mallory", f'"progressToken":{victim_id},"progressToken":"e"')
            if '"error"' in answers["mallory"]:
                answers["bob"] = call("bob", '"progressToken":"b"')  # the second call, for which the server waits
            victim.join(DEADLINE)
        self.assertIn('"message": "ann"', answers["ann"])
        self.assertNotIn("mallory", answers["ann"])
        self.assert_rejected(answers["mallory"], "progressToken")


if __name__ == "__main__":
    unittest.main()
