"""Gateway: starts the program as a gateway and sends requests to it. GatewayTest: a test case that also checks that no
process survives the gateway. Import this module first: it removes the first argument of the test,
`NAME_test.py PROGRAM [TEST…]`.

Each test puts a unique word into the environment of its processes, and finds survivors by searching /proc for that
word. Where the system permits it, the test runs in a PID namespace of its own (enter_namespace)."""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid

PROGRAM = os.path.abspath(sys.argv.pop(1))
SANITIZED = os.environ.get("FAIRLEAD_TEST_SANITIZED") == "1"
DEADLINE = 120 if SANITIZED else 60  # seconds; timeout of every operation that must not hang
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def until(condition, seconds=DEADLINE):
    """Polls until `condition` is true. Returns False after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


class Gateway:
    """A running gateway. The constructor returns when its endpoint is in the log. Without `config` the gateway has no file."""

    def __init__(self, config, word, *args, environment=None):
        self.process = subprocess.Popen(
            [PROGRAM, "serve", *([] if "--listen" in args else ["--listen", "127.0.0.1:0"]), *(["--config", config] if config else []), *args],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env={**os.environ, "TEST_WORD": word, **(environment or {})},
        )  # fmt: skip
        self.log = []
        self.log_bytes = 0
        self.port = None
        for line in self.process.stderr:
            self.record_log_line(line)
            found = re.search(r"endpoint=http://127.0.0.1:(\d+)/mcp", self.log[-1])
            if found:
                self.port = int(found[1])
                break
        self.reader = threading.Thread(target=lambda: [self.record_log_line(line) for line in self.process.stderr])
        self.reader.start()
        if self.port is None:
            self.reader.join(DEADLINE)
            raise AssertionError(f"the gateway did not start: {self.log}")

    def record_log_line(self, line):
        self.log_bytes += len(line)
        self.log.append(line[:2000].decode(errors="replace"))

    def http_request(self, method, path, body=None, headers=None, timeout=DEADLINE):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)) as connection:
            connection.request(method, path, body, headers or {})
            return connection.getresponse().read().decode()

    def post(self, method, **params):
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
        }
        if "name" in params:
            headers["Mcp-Name"] = params["name"]
        if "uri" in params:
            headers["Mcp-Name"] = params["uri"]
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
        body = self.http_request("POST", "/mcp", json.dumps(request), headers)
        if body.startswith("{"):
            return json.loads(body)
        events = [line[5:] for line in body.splitlines() if line.startswith("data:") and '"id":1' in line.replace(" ", "")]
        if not events:
            raise AssertionError(f"the body is neither JSON nor an SSE event with the response: {body[:500]!r}")
        return json.loads(events[-1])

    def tools(self):
        return [tool["name"] for tool in self.post("tools/list")["result"]["tools"]]

    def call(self, tool, **arguments):
        return self.post("tools/call", name=tool, arguments=arguments)

    def text(self, tool, **arguments):
        response = self.call(tool, **arguments)
        if "result" not in response:
            raise AssertionError(response)
        return response["result"]["content"][0]["text"]

    def health(self):
        return json.loads(self.http_request("GET", "/health"))

    def resident_mib(self):
        """Returns the peak resident memory in MiB."""
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            return int(re.search(r"VmHWM:\s+(\d+)", file.read())[1]) / 1024

    def end(self, signal_number=signal.SIGTERM):
        """Sends the signal if the gateway runs, waits for its exit, and returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        status = self.process.wait(DEADLINE)
        self.reader.join(DEADLINE)
        self.process.stderr.close()
        return status


class GatewayTest(unittest.TestCase):
    def setUp(self):
        self.word = uuid.uuid4().hex
        self.scratch = tempfile.mkdtemp(prefix="fairlead-test-")
        self.addCleanup(shutil.rmtree, self.scratch, True)
        self.gateways = []
        self.addCleanup(self.clean_up)

    def clean_up(self):
        for gateway in self.gateways:
            if gateway.process.poll() is None:
                gateway.end(signal.SIGKILL)
        for pid in self.survivors():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def path(self, name):
        return os.path.join(self.scratch, name)

    def survivors(self):
        """Returns the PIDs of processes with the word of this test in their environment, except running gateways."""
        found = []
        running = {gateway.process.pid for gateway in self.gateways if gateway.process.poll() is None}
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) in running:
                continue
            with contextlib.suppress(OSError):
                with open(f"/proc/{entry}/environ", "rb") as file:
                    if self.word.encode() in file.read():
                        found.append(int(entry))
        return found

    def start_gateway(self, text, *args, environment=None):
        """Starts a gateway with `text` as its configuration file."""
        config = self.path("gateway.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(text)
        gateway = Gateway(config, self.word, *args, environment=environment)
        self.gateways.append(gateway)
        return gateway

    def assert_no_survivors(self, seconds=5):
        self.assertTrue(until(lambda: not self.survivors(), seconds), f"processes survived: {self.survivors()}")

    def assert_exits_cleanly(self, gateway):
        """Stops the gateway. Expects no survivors, and exit status 0; if a sanitizer finds an error, the status differs."""
        self.assertEqual(gateway.end(), 0, gateway.log[-40:])
        self.assert_no_survivors()


def enter_namespace(test):
    """Starts the test program (the path `test`) again in a PID namespace of its own, if the system permits it. There,
    /proc has only the processes of the test, and all of them end with the test."""
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.getpid() == 1 or subprocess.run([*command, "true"], capture_output=True).returncode != 0:
        return
    os.execvp(command[0], [*command, sys.executable, os.path.abspath(test), PROGRAM, *sys.argv[1:]])
