#!/usr/bin/env python3
"""Prints the cost of one call through the gateway, in the gateway's process: strict scans, walks, copies, allocations, system
calls and instructions, for arguments of several sizes, for servers with line framing (as on stdio) and over HTTP, and for legacy
clients, modern clients and clients that accept only an event stream. First with one client, then with 64 at once: a turn of
the loop then serves several calls. Last the instructions of each layer.

    call_costs.py [--only lines|http] [--clients one|many] [--sizes BYTES,…] [--targets FILE] BUILD-DIR FAIRLEAD

Each figure is the difference of two runs with different numbers of calls, divided by the difference of these numbers: the start
and the stop of the gateway do not count. Needs valgrind and strace. Valgrind cannot start the keeper of child processes, so the server with line
framing is connected by TCP instead of pipes; the code is the same.
"""
import argparse
import collections
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True  # no __pycache__ in the source tree

from mcp_requests import events, legacy, modern, options_of, structured
from measuring import Machine, Running, free_port, run_json
from report import TargetList, append_targets

SIZES = (200, 64 << 10, 1 << 20)
CALLS = {200: (100, 600), 64 << 10: (50, 150), 1 << 20: (10, 40)}
# The clients of each kind of server: the first one is measured with all sizes, the others with the smallest.
CLIENTS = {"lines": ("legacy", "modern", "events"), "http": ("modern", "legacy", "events")}
REQUESTS = {"legacy": legacy, "modern": modern, "events": events}
MANY_CLIENTS = 64
CALLS_OF_MANY = (640, 3840)
MAX_ALLOCATIONS = 8  # of a call to a server with line framing
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
# Functions whose calls are counted in callgrind's output.
STRICT = re.compile(r"fairlead::rpc::Message::parse\(")
WALKS = re.compile(r"fairlead::json::(skip_container|Members::Members|View::operator\[\]\(std::basic_string_view)")
ALLOCATIONS = re.compile(r"^(malloc|calloc|realloc)$")
# The layer of a function: the first of these that its name matches.
LAYERS = (
    ("memory", re.compile(r"^(malloc|calloc|realloc|free|operator (new|delete)|_int_|unlink_chunk|fairlead::detail::(allocate|release)_block)")),
    ("http", re.compile("fairlead::http::|boost::beast")),
    *((name, re.compile(f"fairlead::{name}::")) for name in ("transport", "mcp", "gateway", "pool", "rpc", "json")),
    ("peer", re.compile("fairlead::(Peer|Connection|Methods)")),
    ("loop, streams", re.compile("fairlead::.*(Loop|Reactor|Timer|Descriptor|Stream|Write|Task|Promise)")),
    ("base", re.compile("fairlead::")),
    ("copies, comparisons", re.compile("^_*(mem|str)(cpy|move|set|cmp|chr|len|ncmp)")),
    ("standard library", re.compile("")),
)


class Client:
    """One connection to a gateway. Sends one call after the other. With `events` it accepts only event streams as responses."""

    def __init__(self, port, modern, events=False):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self.modern = modern
        self.accept = "text/event-stream" if events else "application/json, text/event-stream"
        self.session = None
        if not modern:
            params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
            self.post("initialize", params)
            self.post("notifications/initialized", None)

    def headers(self, method, params):
        headers = {"Content-Type": "application/json", "Accept": self.accept}
        if self.modern:
            headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
            if params and "name" in params:
                headers["Mcp-Name"] = params["name"]
        if self.session:
            headers |= {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": "2025-06-18"}
        return headers

    def encode(self, method, params):
        message = {"jsonrpc": "2.0", "method": method}
        if not method.startswith("notifications/"):
            message["id"] = 1
        if self.modern:
            params = (params or {}) | {"_meta": MODERN}
        if params is not None:
            message["params"] = params
        return json.dumps(message, separators=(",", ":")).encode()

    def post(self, method, params):
        return self.send(self.encode(method, params), self.headers(method, params))

    def send(self, body, headers):
        self.connection.request("POST", "/mcp", body, headers)
        response = self.connection.getresponse()
        self.session = response.headers.get("Mcp-Session-Id") or self.session
        text = response.read()
        if response.status // 100 != 2:
            raise OSError(f"{response.status}: {text[:300]!r}")
        return text

    def complete_list(self):
        """Requests all pages of tools/list. Returns the number of tools."""
        cursor, count = {}, 0
        while True:
            text = self.post("tools/list", cursor)
            count += text.count(b'"inputSchema"')
            following = re.search(rb'"nextCursor":"([^"]+)"', text)
            if not following:
                return count
            cursor = {"cursor": following[1].decode()}

    def call(self, tool, size, count):
        params = {"name": tool, "arguments": structured(size - 100)}
        body, headers = self.encode("tools/call", params), self.headers("tools/call", params)
        for _ in range(count):
            text = self.send(body, headers)
            if b'"hello"' not in text:
                raise OSError(f"unexpected response: {text[:300]!r}")
        return len(body)


class LineServer:
    """A TCP listener that starts a program for each connection, with the connection as stdin and stdout."""

    def __init__(self, program):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, args=(program,), daemon=True).start()

    def serve(self, program):
        while True:
            connection, _ = self.listener.accept()
            subprocess.Popen([program], stdin=connection, stdout=connection)
            connection.close()


class Bench:
    def __init__(self, arguments):
        self.machine = Machine(arguments.build)
        self.fairlead = os.path.abspath(arguments.fairlead)
        self.counter = os.path.join(os.path.abspath(arguments.build), "programs", "libcopy_counter.so")
        self.scratch = tempfile.TemporaryDirectory(prefix="fairlead-bench-")
        self.upstream = None
        self.line_server = None

    def path(self, name):
        return os.path.join(self.scratch.name, name)

    def config(self, upstream):
        if upstream == "lines":
            self.line_server = self.line_server or LineServer(self.machine.program("c_echo"))
            server = f'url = "tcp:127.0.0.1:{self.line_server.port}"'
        else:
            self.upstream = self.upstream or Running(self.machine, [self.machine.program("mcp_server"), "--http", "127.0.0.1:0"])
            server = f'url = "http://127.0.0.1:{self.upstream.port}/mcp"'
        path = self.path(f"{upstream}.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'[servers.e]\n{server}\nsharing = "shared"\n')
        return path

    def start(self, upstream, wrapper=(), environment=None):
        """Starts a gateway. Returns its process and its port."""
        port = free_port()
        command = [*wrapper, self.fairlead, "serve", "--config", self.config(upstream), "--log-level", "error",
                   "--listen", f"127.0.0.1:{port}"]  # fmt: skip
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                env={**os.environ, **(environment or {})}), port  # fmt: skip

    def run(self, upstream, client, size, calls, wrapper=(), environment=None):
        """Starts a gateway, makes that many calls and stops it."""
        running, port = self.start(upstream, wrapper, environment)
        try:
            self.connect(port, client, running).call("e__echo", size, calls)
        finally:
            children = f"/proc/{running.pid}/task/{running.pid}/children"
            with open(children, encoding="utf-8") as file:
                traced = file.read().split()
            os.kill(int(traced[0]) if wrapper and wrapper[0] == "strace" and traced else running.pid, 15)
            running.wait(60)

    @staticmethod
    def connect(port, client, running):
        """Returns a client, as soon as the gateway answers its calls."""
        deadline = time.monotonic() + 60
        while True:
            try:
                connection = Client(port, client != "legacy", events=client == "events")
                connection.call("e__echo", 200, 5)
                return connection
            except OSError as error:
                if time.monotonic() > deadline or running.poll() is not None:
                    raise OSError(f"the gateway does not answer: {error}") from error
                time.sleep(0.2)

    def callgrind_counts(self, upstream, client, size, calls):
        """Returns the instructions, and the number of calls of the counted functions."""
        out = self.path(f"callgrind.{upstream}.{client}.{size}.{calls}")
        self.run(upstream, client, size, calls, ("valgrind", "-q", "--tool=callgrind", "--trace-children=no", f"--callgrind-out-file={out}"))
        return read_callgrind(out)

    def system_calls(self, upstream, client, size, calls):
        out = self.path("strace")
        self.run(upstream, client, size, calls, ("strace", "-c", "-o", out))
        with open(out, encoding="utf-8") as file:
            total = re.search(r"^\s*100\.00\s+\S+\s+(?:\S+\s+)?(\d+)(?:\s+\d+)?\s+total", file.read(), re.M)
        return int(total[1])

    def copied_bytes(self, upstream, client, size, calls):
        out = self.path(f"copies.{upstream}.{client}.{size}.{calls}")
        self.run(upstream, client, size, calls, environment={"COPY_COUNTER": out, "LD_PRELOAD": self.counter})
        with open(out, encoding="utf-8") as file:
            return max(int(line.split()[2]) for line in file)  # of the gateway, not of its child processes

    def costs(self, upstream, client, size):
        """Returns the costs of a call of one client that makes one call after the other."""
        few, many = CALLS.get(size, (20, 60))
        per_call = lambda with_few, with_many: (with_many - with_few) / (many - few)
        counts = [self.callgrind_counts(upstream, client, size, calls) for calls in (few, many)]
        costs = {key: per_call(counts[0].get(key, 0), counts[1][key]) for key in counts[1]}
        costs["system calls"] = per_call(*(self.system_calls(upstream, client, size, calls) for calls in (few, many)))
        costs["copied"] = per_call(*(self.copied_bytes(upstream, client, size, calls) for calls in (few, many))) / size
        return costs

    # ---- many clients ----

    def load(self, running, port, client, calls):
        body, options = REQUESTS[client]("e__echo")
        with open(self.path("body"), "w", encoding="utf-8") as file:
            file.write(body)
        figures = run_json([self.machine.program("http_load"), "127.0.0.1", str(port), "/mcp", "--connections", str(MANY_CLIENTS),
                            "--calls", str(calls), "--warm-up", str(MANY_CLIENTS), "--body-file", self.path("body"),
                            "--pid", str(running.pid), *options_of((body, options))])  # fmt: skip
        if isinstance(figures, str):
            raise OSError(figures)

    def costs_of_many(self, upstream, client):
        """Returns the costs of a call of MANY_CLIENTS clients that call at once. The gateway has served calls before it is instrumented."""
        out = self.path(f"callgrind.{upstream}.{client}.many")
        control = lambda *options: subprocess.run(["callgrind_control", *options, str(running.pid)], capture_output=True, check=True)
        running, port = self.start(upstream, ("valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"))
        try:
            self.connect(port, client, running)
            self.load(running, port, client, CALLS_OF_MANY[0])
            control("-i", "on")
            for calls in CALLS_OF_MANY:
                self.load(running, port, client, calls)
                control("-d")  # writes the counts to a file with the next number, and begins again at zero
        finally:
            running.terminate()
            running.wait(60)
        few, many = (read_callgrind(f"{out}.{number}") for number in (1, 2))
        return {key: (many[key] - few.get(key, 0)) / (CALLS_OF_MANY[1] - CALLS_OF_MANY[0]) for key in many}


def read_callgrind(path):
    """Returns the sums of a callgrind output file, and by `layers` the instructions of each of LAYERS. The file has each name once,
    with a number that later lines refer to."""
    names, calls, own, total = {}, collections.Counter(), collections.Counter(), 0
    function = callee = None
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith(("cfn=", "fn=")):
                match = re.match(r"c?fn=\((\d+)\)(?: (.*))?", line)
                if match[2]:
                    names[match[1]] = match[2].strip()
                if line.startswith("cfn="):
                    callee = names[match[1]]
                else:
                    function = names[match[1]]
            elif line.startswith("calls="):
                calls[callee] += int(line[6:].split()[0])
                next(file)  # the cost of the callee
            elif line.startswith(("summary:", "totals:")):
                total = int(line.split()[1])
            elif line[0] in "0123456789+-*" and function:
                own[function] += int(line.split()[1])
    count = lambda pattern: sum(number for name, number in calls.items() if pattern.search(name))
    layers = collections.Counter()
    for name, cost in own.items():
        layers[next(layer for layer, pattern in LAYERS if pattern.search(name))] += cost
    return {"instructions": total, "strict": count(STRICT), "walks": count(WALKS), "allocations": count(ALLOCATIONS),
            **{f"in {layer}": cost for layer, cost in layers.items()}}  # fmt: skip


class Report:
    """Prints the rows, and checks the target."""

    COLUMNS = (("strict scans", "strict", 1), ("walks", "walks", 1), ("copies", "copied", 2), ("allocations", "allocations", 1),
               ("system calls", "system calls", 1), ("instructions", "instructions", 0))  # fmt: skip

    def __init__(self):
        self.targets = TargetList()
        self.layers = {}  # (kind of server, kind of client) -> costs of MANY_CLIENTS clients
        self.allocations = {}  # number of clients -> allocations of a call of legacy clients to a server with line framing
        print(f"{'server':8}{'client':8}{'clients':>8}{'bytes':>9}" + "".join(f"{title:>14}" for title, _, _ in self.COLUMNS))

    def row(self, upstream, client, clients, size, costs):
        if (upstream, client, size) == ("lines", "legacy", SIZES[0]):
            self.allocations[clients] = costs["allocations"]
        if clients == MANY_CLIENTS:
            self.layers[upstream, client] = costs
        cells = (f"{costs[key]:.{decimals}f}" if key in costs else "-" for _, key, decimals in self.COLUMNS)
        print(f"{upstream:8}{client:8}{clients:8}{size:9}" + "".join(f"{cell:>14}" for cell in cells), flush=True)

    def print_layers(self):
        if not self.layers:
            return
        print(f"\nInstructions of a call by layer, {MANY_CLIENTS} clients, user space only")
        print(f"{'':22}" + "".join(f"{', '.join(key):>14}" for key in self.layers))
        for layer, _ in LAYERS:
            print(f"{layer:22}" + "".join(f"{costs.get('in ' + layer, 0):14.0f}" for costs in self.layers.values()))

    def add_targets(self):
        print()
        for clients, allocations in self.allocations.items():
            title = f"allocations of a call, server on lines, {clients} legacy client{'s' if clients > 1 else ''}"
            self.targets.add(title, (allocations, ""), MAX_ALLOCATIONS, at_most=True, unit="")


def measure(bench, report, arguments):
    for upstream in (arguments.only,) if arguments.only else CLIENTS:
        for number, client in enumerate(CLIENTS[upstream]) if arguments.clients != "many" else ():
            for size in arguments.sizes if number == 0 else arguments.sizes[:1]:
                report.row(upstream, client, 1, size, bench.costs(upstream, client, size))
        for client in CLIENTS[upstream] if arguments.clients != "one" else ():
            report.row(upstream, client, MANY_CLIENTS, SIZES[0], bench.costs_of_many(upstream, client))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("lines", "http"))
    parser.add_argument("--clients", choices=("one", "many"))
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], default=SIZES)
    parser.add_argument("--targets", metavar="FILE", help="append the targets to this file, for report.py")
    parser.add_argument("build")
    parser.add_argument("fairlead")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    report = Report()
    try:
        measure(bench, report, arguments)
    finally:
        if bench.upstream:
            bench.upstream.end()
    report.print_layers()
    report.add_targets()
    append_targets(arguments.targets, report.targets.rows)


if __name__ == "__main__":
    main()
