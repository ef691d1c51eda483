"""Starts the gateway for hostile_test.py, asks it, and watches what it costs: memory, processes, time on the loop."""
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
HERE = os.path.dirname(os.path.abspath(__file__))
SANITIZED = os.environ.get("FAIRLEAD_TEST_SANITIZED") == "1"
DEADLINE = 120 if SANITIZED else 30  # seconds, for whatever must not hang
MAX_TURN_MS = 50  # thread CPU time of one turn of the loop (R14.2)
MAX_GROWTH_MIB = 192  # resident memory during an attack: three frames of 10 MiB on each side, queues of 64 MiB, and the heap's slack
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def until(condition, seconds=DEADLINE):
    """Polls; for conditions that have no event to wait for."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


class Gateway:
    def __init__(self, config, word, *args, environment=None):
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--listen", "127.0.0.1:0", "--config", config, *args],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env={**os.environ, "HOSTILE_TEST_WORD": word, **(environment or {})},
        )  # fmt: skip
        self.log = []
        self.log_bytes = 0
        self.port = None
        for line in self.process.stderr:
            self.keep(line)
            found = re.search(r"endpoint=http://127.0.0.1:(\d+)/mcp", self.log[-1])
            if found:
                self.port = int(found[1])
                break
        self.reader = threading.Thread(target=lambda: [self.keep(line) for line in self.process.stderr])
        self.reader.start()
        if self.port is None:
            self.reader.join(DEADLINE)
            raise AssertionError(f"the gateway did not start: {self.log}")

    def keep(self, line):
        self.log_bytes += len(line)
        self.log.append(line[:2000].decode(errors="replace"))

    def ask(self, verb, path, body=None, headers=None, timeout=DEADLINE):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)) as connection:
            connection.request(verb, path, body, headers or {})
            return connection.getresponse().read()

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
        body = self.ask("POST", "/mcp", json.dumps(request), headers).decode()
        if body.startswith("{"):
            return json.loads(body)
        events = [line[5:] for line in body.splitlines() if line.startswith("data:") and '"id":1' in line.replace(" ", "")]
        if not events:
            raise AssertionError(f"neither JSON nor an event with the answer: {body[:500]!r}")
        return json.loads(events[-1])

    def tools(self):
        return [tool["name"] for tool in self.post("tools/list")["result"]["tools"]]

    def call(self, tool, **arguments):
        return self.post("tools/call", name=tool, arguments=arguments)

    def text(self, tool, **arguments):
        answer = self.call(tool, **arguments)
        if "result" not in answer:
            raise AssertionError(answer)
        return answer["result"]["content"][0]["text"]

    def health(self):
        return json.loads(self.ask("GET", "/health"))

    def resident_mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            return int(re.search(r"VmHWM:\s+(\d+)", file.read())[1]) / 1024

    def end(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        status = self.process.wait(DEADLINE)
        self.reader.join(DEADLINE)
        self.process.stderr.close()
        return status


class OtherClient:
    """Calls the well-behaved server again and again while an attack runs. Every call must be answered."""

    def __init__(self, gateway, tool="good__go"):
        self.gateway = gateway
        self.tool = tool
        self.answered = 0
        self.problem = None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            while not self.stopping.is_set() or self.answered == 0:
                self.gateway.text(self.tool)
                self.answered += 1
        except Exception as problem:  # reported by the test
            self.problem = problem

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join(2 * DEADLINE)


class HostileTest(unittest.TestCase):
    def setUp(self):
        self.word = uuid.uuid4().hex
        self.scratch = tempfile.mkdtemp(prefix="fairlead-hostile-")
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
        """Processes that carry this test's word in their environment, except for the gateways."""
        found = []
        ours = {gateway.process.pid for gateway in self.gateways if gateway.process.poll() is None}
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) in ours:
                continue
            with contextlib.suppress(OSError):
                with open(f"/proc/{entry}/environ", "rb") as file:
                    if self.word.encode() in file.read():
                        found.append(int(entry))
        return found

    def server(self, name, *words, extra=""):
        arguments = json.dumps([os.path.join(HERE, "hostile_server.py"), *words])
        return f'[servers.{name}]\ncommand = "{sys.executable}"\nargs = {arguments}\n{extra}'

    def start(self, *tables, head="", args=(), environment=None):
        """A gateway with a well-behaved server `good` and the given [servers.…] tables."""
        config = self.path("gateway.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(head + self.server("good", "none") + "".join(tables))
        gateway = Gateway(config, self.word, *args, environment=environment)
        self.gateways.append(gateway)
        self.assertTrue(until(lambda: "good__go" in gateway.tools()), gateway.log[-5:])
        return gateway

    def start_listed(self, table, tool="bad__go", **options):
        gateway = self.start(table, **options)
        self.assertTrue(until(lambda: tool in gateway.tools()), gateway.log[-5:])
        return gateway

    def assert_others_served_during(self, gateway, attack):
        """Runs `attack` while another client calls. Checks that it was served, and what the attack cost."""
        before = gateway.resident_mib()
        with OtherClient(gateway) as other:
            result = attack()
        self.assertIsNone(other.problem, gateway.log[-5:])
        self.assertGreater(other.answered, 0)
        self.assertIsNone(gateway.process.poll(), gateway.log[-20:])
        if not SANITIZED:
            self.assertLess(gateway.resident_mib() - before, MAX_GROWTH_MIB)
            self.assert_loop_was_free(gateway)
        return result

    def assert_loop_was_free(self, gateway):
        loop = gateway.health()["loop"]
        self.assertLessEqual(loop["longest_turn_ms"], MAX_TURN_MS, [line for line in gateway.log if "turn" in line][-3:])

    def assert_logged(self, gateway, text):
        self.assertTrue(until(lambda: any(text in line for line in gateway.log)), f"not in the log: {text}")

    def assert_ends_clean(self, gateway):
        """Status 0 (a sanitizer's finding is another), and no process left."""
        self.assertEqual(gateway.end(), 0, gateway.log[-40:])
        self.assertTrue(until(lambda: not self.survivors(), 5), f"left behind: {self.survivors()}")
