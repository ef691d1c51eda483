#!/usr/bin/env python3
"""fairlead serve: the gateway over HTTP and on stdin and stdout."""
import contextlib
import http.client
import json
import os
import re
import signal
import sys
import threading
import time
import unittest

import program
from program import DEADLINE

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
# A legacy server. The tool `odd` returns JSON whose bytes a careless gateway would change, `die` exits, `ask` elicits, `large`
# returns 11 MiB and `pid` returns the PID.
SERVER = """
import json, os, sys
def send(message):
    sys.stdout.write(message + "\\n"); sys.stdout.flush()
for line in sys.stdin:
    request = json.loads(line)
    method, id = request.get("method"), json.dumps(request.get("id"))
    if method == "initialize":
        result = '{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}'
    elif method == "tools/list":
        result = '{"tools":[{"name":"odd","inputSchema":{"type":"object"}},{"name":"die","inputSchema":{"type":"object"}},{"name":"ask","inputSchema":{"type":"object"}},{"name":"large","inputSchema":{"type":"object"}},{"name":"pid","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}'
    elif method == "tools/call":
        name = request["params"]["name"]
        if name == "die":
            sys.stderr.write("I cannot go on\\n"); sys.stderr.flush(); os._exit(3)
        if name == "ask":
            send('{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}}')
            answer = json.loads(sys.stdin.readline())
            result = json.dumps({"content": [{"type": "text", "text": json.dumps(answer.get("result", answer.get("error")))}]})
        elif name == "large":
            result = '{"content":[{"type":"text","text":"%s"}]}' % ("x" * (11 << 20))
        elif name == "pid":
            result = '{"content":[{"type":"text","text":"%d"}]}' % os.getpid()
        else:
            token = request["params"].get("_meta", {}).get("progressToken")
            if token is not None:
                send('{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}' % json.dumps(token))
            result = '{ "content":[],"big":12345678901234567890, "n":1.50e3,"\\\\u0041":"\\\\u00e9"}'
    elif id == "null":
        continue
    else:
        send('{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}' % id); continue
    send('{"jsonrpc":"2.0","id":%s,"result":%s}' % (id, result))
"""


class Gateway:
    """`fairlead serve` in the background, on a free port or on stdio."""

    def __init__(self, *args, stdio=False, log="info", env=None, listen="127.0.0.1:0"):
        address = ("--stdio",) if stdio else ("--listen", listen)
        self.process = program.start("serve", *address, *args, "--log-level", log, env=env)
        self.lines = []
        self.port = None
        while not stdio and self.port is None:
            line = self.process.stderr.readline().decode()
            if not line:
                raise AssertionError(f"the gateway does not serve: {self.lines}, status {self.process.wait(DEADLINE)}")
            self.lines.append(line)
            found = re.search(r'endpoint="?(?:http://[^ ]*:(\d+)/mcp|unix:)', line)
            self.port = found and int(found[1] or 0)
        self.reader = threading.Thread(target=lambda: self.lines.extend(l.decode() for l in self.process.stderr))
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(DEADLINE)
        finally:
            self.process.kill()
            self.reader.join(DEADLINE)
            for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
                stream.close()

    def ask(self, *request):
        """Sends an HTTP request. Returns the status and the body of the response."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)) as connection:
            connection.request(*request)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def get(self, path):
        return self.ask("GET", path)[1]

    def post(self, method, params, id=1, meta=META):
        """Sends a modern request. Returns the body of the response."""
        params = {**params, "_meta": {**meta, **params.get("_meta", {})}}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
        }
        if "name" in params:
            headers["Mcp-Name"] = params["name"]
        body = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return self.ask("POST", "/mcp", body, headers)[1]

    def call(self, tool, **arguments):
        return self.post("tools/call", {"name": tool, "arguments": arguments})


class ServeTest(program.ProgramTest):
    def config(self, text, name="gateway.toml"):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return ("--config", self.path(name))

    def server(self, name="s", extra="", text=SERVER, args=()):
        with open(self.path("server.py"), "w", encoding="utf-8") as file:
            file.write(text)
        words = json.dumps([self.path("server.py"), *args])
        return f'[servers.{name}]\ncommand = "{sys.executable}"\nargs = {words}\n{extra}\n'


class ServeHttpTest(ServeTest):
    def test_demo_server_is_served_without_a_configuration(self):
        with Gateway() as gateway:
            tools = json.loads(gateway.post("tools/list", {}))["result"]["tools"]
            self.assertEqual([tool["name"] for tool in tools], ["demo__echo", "demo__add", "demo__count"])
            answer = json.loads(gateway.call("demo__add", a=1, b=2))
            self.assertEqual(answer["result"]["structuredContent"], {"sum": 3})

    def test_result_is_forwarded_byte_for_byte(self):  # R1.6
        with Gateway(*self.config(self.server())) as gateway:
            gateway.post("tools/list", {})
            answer = gateway.call("s__odd")
        self.assertIn(r'"result":{ "content":[],"big":12345678901234567890, "n":1.50e3,"\u0041":"\u00e9","resultType"', answer)

    def test_result_over_max_frame_bytes_fails_at_once(self):
        with Gateway(*self.config(self.server(extra='clocks.idle = "1h"'))) as gateway:
            error = json.loads(gateway.call("s__large"))["error"]
            self.assertIn("max_frame_bytes (10485760)", error["message"])
            self.assertIn("content", json.loads(gateway.call("s__odd"))["result"])

    def test_larger_results_are_forwarded_with_a_higher_limit(self):
        config = self.config('limits.max_frame_bytes = "16M"\n' + self.server())
        with Gateway(*config) as gateway:
            self.assertGreater(len(gateway.call("s__large")), 10 << 20)
            for address in ("http", "ws"):
                result = program.run("tools", f"{address}://127.0.0.1:{gateway.port}/mcp", "s__large", "--json", "--max-frame-bytes", "16777216")
                self.assertGreater(len(result.stdout), 10 << 20, result.stderr[:1000])

    def test_server_with_malformed_frames_is_served_without_a_limit(self):
        noisy = 'import sys\nfor _ in range(1500): print("noise")\nsys.stdout.flush()\n' + SERVER
        with Gateway(*self.config("limits.max_noise_frames = 0\n" + self.server(text=noisy))) as gateway:
            self.assertIn("content", json.loads(gateway.call("s__odd"))["result"])
        with Gateway(*self.config(self.server(text=noisy))) as gateway:
            gateway.post("tools/list", {})
            self.assertIn("max_noise_frames (1000)", gateway.get("/health"))

    def test_unix_socket_is_accessible_to_its_owner_only_by_default(self):
        file_config = self.config('socket_mode = "0666"\n' + self.server())
        for args, mode in (((), 0o600), (file_config, 0o666), ((*file_config, "--socket-mode", "0660"), 0o660)):
            address = "unix:" + self.path(f"s{mode}")
            process = program.start("serve", "--listen", address, *args, preexec_fn=lambda: os.umask(0o002))
            try:
                while b"serving" not in process.stderr.readline():
                    self.assertIsNone(process.poll())
                self.assertEqual(os.stat(self.path(f"s{mode}")).st_mode & 0o777, mode)
            finally:
                process.terminate()
                process.communicate(timeout=DEADLINE)

    def test_list_has_the_other_servers_when_one_cannot_be_started(self):
        broken = '[servers.broken]\ncommand = "/no/such/program"\n'
        with Gateway(*self.config(broken + self.server())) as gateway:
            tools = json.loads(gateway.post("tools/list", {}))["result"]["tools"]
            self.assertEqual(tools[0]["name"], "s__odd")
            health = json.loads(gateway.get("/health"))
        state = {server["name"]: server for server in health["servers"]}
        self.assertEqual(state["s"]["state"], "ready")
        self.assertIn("/no/such/program", state["broken"]["lastError"])

    def test_health_is_degraded_with_one_dead_server_and_failed_with_dead_servers_only(self):
        dead = '[servers.dead]\ncommand = "/no/such/program"\n'
        with Gateway(*self.config(dead + self.server())) as gateway:
            gateway.post("tools/list", {})  # waits until the lists of every server have been fetched, or have failed
            status, body = gateway.ask("GET", "/health")
        health = json.loads(body)
        self.assertEqual((status, health["status"]), (200, "degraded"), body)
        self.assertEqual(health["counts"]["servers"], {"ready": 1, "starting": 0, "degraded": 0, "failed": 1, "disabled": 0})
        self.assertGreater(health["counts"]["tools"], 0)
        self.assertEqual(health["revision"], "2026-07-28")
        self.assertIn(health["version"], program.run("version").stdout.decode())
        with Gateway(*self.config(dead)) as gateway:
            gateway.post("tools/list", {})
            status, body = gateway.ask("GET", "/health")
        self.assertEqual((status, json.loads(body)["status"]), (503, "failed"), body)

    def test_failures_have_no_command_line_when_details_are_for_administrators(self):
        dead = 'failure_details = "administrators"\n[servers.dead]\ncommand = "/no/such/program"\n'
        with Gateway(*self.config(dead)) as gateway:
            error = json.loads(gateway.call("dead__any"))["error"]
            health = gateway.get("/health")
        self.assertEqual(error["data"]["code"], "command_not_found")
        self.assertTrue(error["data"]["remedy"])
        for shown in (json.dumps(error), health):
            self.assertNotIn("/no/such/program", shown)

    def test_calls_to_a_server_that_cannot_be_started_fail_with_the_reason(self):
        broken = (
            '[servers.header]\nurl = "http://127.0.0.1:1/mcp"\nheaders = { Authorization = "Bearer ${FAIRLEAD_TEST_UNSET}" }\n'
            '[servers.query]\nurl = "http://127.0.0.1:1/mcp?key=${FAIRLEAD_TEST_UNSET}"\n'
            '[servers.variable]\ncommand = "cat"\nenv = { TOKEN = "${FAIRLEAD_TEST_UNSET}" }\n'
            '[servers.missing]\ncommand = "/no/such/program"\n'
        )
        with Gateway(*self.config(broken + self.server())) as gateway:
            self.assertIn("s__odd", gateway.post("tools/list", {}))
            self.assertIn("content", json.loads(gateway.call("s__odd"))["result"])
            for name in ("header", "query", "variable", "missing"):
                error = json.loads(gateway.call(f"{name}__any"))["error"]
                self.assertEqual(error["code"], -32603, error)
                self.assertIn(f"server `{name}`", error["message"])
                self.assertEqual(error["data"]["code"], "command_not_found" if name == "missing" else "secret_unavailable")
                self.assertTrue(error["data"]["remedy"])
                self.assertIn("/no/such/program" if name == "missing" else "FAIRLEAD_TEST_UNSET", error["message"])
            health = json.loads(gateway.get("/health"))
        for server in health["servers"]:
            if server["name"] != "s":
                self.assertIn("/no/such/program" if server["name"] == "missing" else "FAIRLEAD_TEST_UNSET", server["lastError"])

    def test_concurrent_starts_are_limited(self):
        journal = self.path("journal")
        prologue = f"def record(event):\n    with open({journal!r}, 'a') as file: file.write(event)\nrecord('b')\n"
        with open(self.path("slow.py"), "w", encoding="utf-8") as file:
            file.write(prologue + SERVER.replace('if method == "initialize":', 'if method == "initialize":\n        record("e")', 1))
        servers = "".join(f'[servers.s{i}]\ncommand = "{sys.executable}"\nargs = ["{self.path("slow.py")}"]\n' for i in range(6))
        with Gateway(*self.config("limits.max_concurrent_starts = 1\n" + servers)) as gateway:
            self.assertEqual(gateway.post("tools/list", {}).count('__odd"'), 6)
        with open(journal, encoding="utf-8") as file:
            self.assertEqual(file.read(), "be" * 6)

    def test_server_that_a_call_waits_for_is_started_first(self):
        journal = self.path("journal")
        servers = ""
        for i in range(6):
            with open(self.path(f"s{i}.py"), "w", encoding="utf-8") as file:
                wait = f"\nwith open({self.path('fifo')!r}) as fifo: fifo.read()\n" if i == 0 else ""
                file.write(f"with open({journal!r}, 'a') as file: file.write('{i}')\n" + wait + SERVER)
            servers += f'[servers.s{i}]\ncommand = "{sys.executable}"\nargs = ["{self.path(f"s{i}.py")}"]\n'
        os.mkfifo(self.path("fifo"))
        with Gateway(*self.config("limits.max_concurrent_starts = 1\n" + servers)) as gateway:
            fifo = open(self.path("fifo"), "w")  # blocks until the first server has opened the FIFO
            answers = []
            caller = threading.Thread(target=lambda: answers.append(gateway.call("s5__odd")))
            caller.start()
            while '"waiting":2' not in gateway.get("/health"):  # the fetching of the lists and the call
                time.sleep(0.01)
            fifo.close()
            caller.join(DEADLINE)
            self.assertIn("content", answers[0])
            gateway.post("tools/list", {})
        with open(journal, encoding="utf-8") as file:
            self.assertEqual(file.read(), "051234")

    def test_server_that_exits_in_a_call_is_restarted_and_the_error_has_its_stderr(self):  # R4.4
        with Gateway(*self.config(self.server())) as gateway:
            gateway.post("tools/list", {})
            error = json.loads(gateway.call("s__die"))["error"]
            self.assertEqual(error["code"], -32603)
            self.assertIn("server `s`", error["message"])
            self.assertEqual(error["data"]["exitStatus"], 3)
            self.assertEqual(error["data"]["stderr"], ["I cannot go on"])
            result = program.run("tools", f"http://127.0.0.1:{gateway.port}/mcp", "s__die")
            self.assertEqual(result.returncode, 1)
            self.assertIn("\n  I cannot go on\n", result.stderr)
            self.assertIn("\nremedy: ", result.stderr)
            self.assertIn("content", json.loads(gateway.call("s__odd"))["result"])

    def test_tool_that_crashes_its_server_repeatedly_is_rejected(self):
        with Gateway(*self.config(self.server())) as gateway:
            gateway.post("tools/list", {})
            for _ in range(3):
                self.assertEqual(json.loads(gateway.call("s__die"))["error"]["data"]["code"], "exited")
            for _ in range(3):
                error = json.loads(gateway.call("s__die"))["error"]
                self.assertIn("tool die ended the process of server s 3 times in a row", error["message"])
                self.assertEqual(error["data"]["code"], "tool_crashes")
                self.assertGreater(error["data"]["retryAfterMs"], 50_000)
                self.assertIn("content", json.loads(gateway.call("s__odd"))["result"])

    def test_server_killed_while_idle_is_restarted_for_the_next_call(self):
        with Gateway(*self.config(self.server())) as gateway:
            gateway.post("tools/list", {})
            text = lambda: int(json.loads(gateway.call("s__pid"))["result"]["content"][0]["text"])
            first = text()
            os.kill(first, signal.SIGKILL)
            self.assertNotEqual(text(), first)

    def test_call_fails_with_connection_failed_when_the_http_server_is_gone(self):
        with Gateway() as upstream, Gateway(*self.config(f'[servers.up]\nurl = "http://127.0.0.1:{upstream.port}/mcp"')) as gateway:
            self.assertIn('"sum":3', gateway.call("up__demo__add", a=1, b=2))
            upstream.process.kill()
            upstream.process.wait(DEADLINE)
            self.assertIn("Connection refused", json.loads(gateway.call("up__demo__add", a=1, b=2))["error"]["message"])

    def test_secret_in_the_query_of_a_url_is_sent_and_redacted(self):
        key = {"FAIRLEAD_TEST_KEY": "hush-hush"}
        with Gateway() as upstream:
            url = f"http://127.0.0.1:{upstream.port}/mcp?key=${{FAIRLEAD_TEST_KEY}}"
            with Gateway(*self.config(f'[servers.up]\nurl = "{url}"'), log="trace", env=key) as gateway:
                self.assertIn('"sum":3', gateway.call("up__demo__add", a=1, b=2))
                health = gateway.get("/health")
                upstream.process.kill()
                upstream.process.wait(DEADLINE)
                error = gateway.call("up__demo__add", a=1, b=2) + gateway.get("/health")
        self.assertIn("/mcp?…", health)
        for shown in (error, health, *gateway.lines):
            self.assertNotIn("hush", shown)

    def test_secret_in_the_path_of_a_url_is_redacted(self):
        url = "http://127.0.0.1:1/${FAIRLEAD_TEST_KEY}/mcp"
        with Gateway(*self.config(f'[servers.up]\nurl = "{url}"'), log="trace", env={"FAIRLEAD_TEST_KEY": "hush-hush"}) as gateway:
            error = gateway.call("up__tool")
            health = gateway.get("/health")
        self.assertIn("127.0.0.1:1/***/mcp", error + health + "".join(gateway.lines))
        for shown in (error, health, *gateway.lines):
            self.assertNotIn("hush", shown)

    def test_unknown_tool_is_rejected_and_named(self):
        with Gateway(*self.config(self.server())) as gateway:
            gateway.post("tools/list", {})
            error = json.loads(gateway.call("s__no"))["error"]
        self.assertEqual((error["code"], error["message"]), (-32602, "Unknown tool: s__no"))

    def test_sigterm_ends_the_process_with_status_0_and_no_process_survives(self):  # R4.3
        with Gateway(*self.config(self.server())) as gateway:
            gateway.post("tools/list", {})
            pid = int(json.loads(gateway.call("s__pid"))["result"]["content"][0]["text"])
            gateway.process.terminate()
            self.assertEqual(gateway.process.wait(DEADLINE), 0)
            self.assertFalse(os.path.exists(f"/proc/{pid}"))

    def test_request_with_a_foreign_origin_is_rejected(self):  # R8.2
        with Gateway() as gateway:
            status, _ = gateway.ask("POST", "/mcp", "{}", {"Origin": "https://evil.example", "Content-Type": "application/json"})
            self.assertEqual(status, 403)

    def test_allowed_hosts_are_localhost_and_those_of_the_file(self):
        with Gateway(*self.config('allowed_hosts = ["gateway.example"]\n' + self.server())) as gateway:
            for host, status in (("gateway.example", 200), ("localhost", 200), ("127.0.0.1:1", 200), ("evil.example", 403)):
                self.assertEqual(gateway.ask("GET", "/health", None, {"Host": host})[0], status, host)

    def test_address_in_use_is_named_with_a_remedy(self):
        with Gateway() as gateway:
            result = program.run("serve", "--listen", f"127.0.0.1:{gateway.port}")
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertIn(f"cannot listen on 127.0.0.1:{gateway.port}: Address already in use", result.stderr)
            self.assertIn("remedy: End the program that listens there, or choose another address with --listen", result.stderr)

    def test_unknown_path_is_answered_with_the_path_of_mcp(self):
        with Gateway() as gateway:
            for path, words in (("/", "MCP is at /mcp"), ("/wrong", "MCP is at /mcp"), ("/mcp/more", "no endpoint at /mcp/more")):
                status, body = gateway.ask("GET", path, None, {})
                self.assertEqual(status, 404, path)
                self.assertIn(words, str(body))

    def test_invalid_address_is_reported_as_invalid(self):
        for address in ("nonsense", "127.0.0.1", "127.0.0.1:99999", "http://127.0.0.1:0", "unix:"):
            result = program.run("serve", "--listen", address)
            self.assertIn(f"cannot listen on `{address}`", result.stderr)
            self.assertEqual(result.returncode, 2, address)

    def test_legacy_client_over_websocket_lists_tools(self):
        with Gateway() as gateway:
            result = program.run("tools", f"ws://127.0.0.1:{gateway.port}/mcp", "--revision", "2025-11-25", "--timeout", "10")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(b"demo__add", result.stdout)

    def test_invalid_file_is_reported_and_no_server_is_started(self):
        result = program.run("serve", *self.config("[servers.a]\ncomand = 'x'\ncommand = 'y'\n"))
        self.assertEqual(result.returncode, 2)
        self.assertIn("unknown key `comand` in [servers.a] (did you mean `command`?)", result.stderr)


class ServeStdioTest(ServeTest):
    def exchange(self, gateway, *messages, answers):
        for message in messages:
            gateway.process.stdin.write((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())
        gateway.process.stdin.flush()
        return [self.receive(gateway) for _ in range(answers)]

    # Returns the next message that is not about changed lists, which are announced at any time.
    def receive(self, gateway):
        while True:
            message = json.loads(gateway.process.stdout.readline())
            if not message.get("method", "").endswith("/list_changed"):
                return message

    def initialize(self, gateway, **capabilities):
        params = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}}
        answer = self.exchange(gateway, {"id": 0, "method": "initialize", "params": params}, answers=1)
        self.exchange(gateway, {"method": "notifications/initialized"}, answers=0)
        self.exchange(gateway, {"id": 1, "method": "tools/list"}, answers=1)
        return answer[0]

    def test_desktop_configuration_is_served_on_stdio(self):
        servers = {"mcpServers": {"my server": {"command": sys.executable, "args": [self.path("server.py")]}}}
        self.server()
        with Gateway(*self.config(json.dumps(servers), "desktop.json"), stdio=True) as gateway:
            self.initialize(gateway)
            call = {"id": "42", "method": "tools/call", "params": {"name": "my-server__odd", "_meta": {"progressToken": "p"}}}
            progress, answer = self.exchange(gateway, call, answers=2)
            self.assertEqual(progress["params"], {"progressToken": "p", "progress": 1})
            self.assertEqual((answer["id"], answer["result"]["big"]), ("42", 12345678901234567890))
            gateway.process.stdin.close()
            self.assertEqual(gateway.process.wait(DEADLINE), 0)
            gateway.process.stdin = open(os.devnull, "wb")

    def test_elicitation_reaches_the_client_that_called(self):  # R12.4
        with Gateway(*self.config(self.server()), stdio=True) as gateway:
            self.initialize(gateway, elicitation={})
            call = {"id": 2, "method": "tools/call", "params": {"name": "s__ask"}}
            question = self.exchange(gateway, call, answers=1)[0]
            self.assertEqual(question["method"], "elicitation/create")
            answer = self.exchange(gateway, {"id": question["id"], "result": {"action": "accept"}}, answers=1)[0]
            self.assertEqual(json.loads(answer["result"]["content"][0]["text"]), {"action": "accept"})


    def test_request_over_max_frame_bytes_is_rejected(self):
        with Gateway(stdio=True) as gateway:
            self.initialize(gateway)
            call = {"id": "a", "method": "tools/call", "params": {"name": "demo__echo", "arguments": {"message": "x" * (11 << 20)}}}
            answer = self.exchange(gateway, call, answers=1)[0]
            self.assertEqual(answer["id"], "a")
            self.assertIn("max_frame_bytes", answer["error"]["message"])


class ServeManifestTest(ServeTest):
    def test_servers_are_in_the_terminator_manifest(self):  # R11.1, R11.2
        manifest = self.path("manifest")
        with Gateway(*self.config(self.server()), "--terminator-manifest", manifest) as gateway:
            gateway.post("tools/list", {})
            pid = json.loads(gateway.call("s__pid"))["result"]["content"][0]["text"]
            with open(manifest, encoding="utf-8") as file:
                self.assertRegex(file.read(), rf"\b{pid}\b")
            ended = program.run("terminate", manifest)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            # The process has been killed, but it may not have been reaped yet.
            end = time.monotonic() + DEADLINE
            while os.path.exists(f"/proc/{pid}") and time.monotonic() < end:
                time.sleep(0.01)
            self.assertFalse(os.path.exists(f"/proc/{pid}"))


if __name__ == "__main__":
    unittest.main()
