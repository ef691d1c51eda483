#!/usr/bin/env python3
"""Prints the cost of one call through the gateway, in the gateway's process: strict scans, walks, copies, allocations, system
calls and instructions, for arguments of several sizes, and for servers with line framing (as on stdio) and over HTTP.

    call_costs.py [--only lines|http] [--sizes BYTES,…] BUILD-DIR FAIRLEAD

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

from measuring import Machine
from mcp_http import Running, free_port, structured

SIZES = (200, 64 << 10, 1 << 20)
CALLS = {200: (100, 600), 64 << 10: (50, 150), 1 << 20: (10, 40)}
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
# Functions whose calls are counted in callgrind's output.
STRICT = re.compile(r"fairlead::rpc::Message::parse\(")
WALKS = re.compile(r"fairlead::json::(skip_container|Members::Members|View::operator\[\]\(std::basic_string_view)")
ALLOCATIONS = re.compile(r"^(malloc|calloc|realloc)$")


class Client:
    """One connection to a gateway. Sends one call after the other."""

    def __init__(self, port, modern):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self.modern = modern
        self.session = None
        if not modern:
            params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
            self.post("initialize", params)
            self.post("notifications/initialized", None)

    def headers(self, method, params):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
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

    def run(self, upstream, size, calls, wrapper=(), environment=None):
        """Starts a gateway, makes that many calls and stops it. Returns the size of a request."""
        port = free_port()
        command = [*wrapper, self.fairlead, "serve", "--config", self.config(upstream), "--log-level", "error",
                   "--listen", f"127.0.0.1:{port}"]  # fmt: skip
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env={**os.environ, **(environment or {})})  # fmt: skip
        try:
            client = self.connect(port, upstream == "http", running)
            return client.call("e__echo", size, calls)
        finally:
            children = f"/proc/{running.pid}/task/{running.pid}/children"
            with open(children, encoding="utf-8") as file:
                traced = file.read().split()
            os.kill(int(traced[0]) if wrapper and wrapper[0] == "strace" and traced else running.pid, 15)
            running.wait(60)

    @staticmethod
    def connect(port, modern, running):
        deadline = time.monotonic() + 60
        while True:
            try:
                client = Client(port, modern)
                client.call("e__echo", 200, 5)
                return client
            except OSError as error:
                if time.monotonic() > deadline or running.poll() is not None:
                    raise OSError(f"the gateway does not answer: {error}") from error
                time.sleep(0.2)

    def callgrind_counts(self, upstream, size, calls):
        """Returns the instructions, and the number of calls of the counted functions."""
        out = self.path(f"callgrind.{upstream}.{size}.{calls}")
        self.run(upstream, size, calls, ("valgrind", "-q", "--tool=callgrind", "--trace-children=no", f"--callgrind-out-file={out}"))
        return read_callgrind(out)

    def system_calls(self, upstream, size, calls):
        out = self.path("strace")
        self.run(upstream, size, calls, ("strace", "-c", "-o", out))
        with open(out, encoding="utf-8") as file:
            total = re.search(r"^\s*100\.00\s+\S+\s+(?:\S+\s+)?(\d+)(?:\s+\d+)?\s+total", file.read(), re.M)
        return int(total[1])

    def copied_bytes(self, upstream, size, calls):
        out = self.path(f"copies.{upstream}.{size}.{calls}")
        self.run(upstream, size, calls, environment={"COPY_COUNTER": out, "LD_PRELOAD": self.counter})
        with open(out, encoding="utf-8") as file:
            return max(int(line.split()[2]) for line in file)  # of the gateway, not of its child processes

    def costs(self, upstream, size):
        few, many = CALLS.get(size, (20, 60))
        per_call = lambda with_few, with_many: (with_many - with_few) / (many - few)
        counts = [self.callgrind_counts(upstream, size, calls) for calls in (few, many)]
        costs = {key: per_call(counts[0][key], counts[1][key]) for key in ("strict", "walks", "allocations", "instructions")}
        costs["system calls"] = per_call(*(self.system_calls(upstream, size, calls) for calls in (few, many)))
        costs["copied"] = per_call(*(self.copied_bytes(upstream, size, calls) for calls in (few, many))) / size
        return costs


def read_callgrind(path):
    """Returns the sums of a callgrind output file. The file has each name once, with a number that later lines refer to."""
    names, calls, total = {}, collections.Counter(), 0
    callee = None
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith(("cfn=", "fn=")):
                match = re.match(r"c?fn=\((\d+)\)(?: (.*))?", line)
                if match[2]:
                    names[match[1]] = match[2].strip()
                if line.startswith("cfn="):
                    callee = names[match[1]]
            elif line.startswith("calls="):
                calls[callee] += int(line[6:].split()[0])
            elif line.startswith(("summary:", "totals:")):
                total = int(line.split()[1])
    count = lambda pattern: sum(number for name, number in calls.items() if pattern.search(name))
    return {"instructions": total, "strict": count(STRICT), "walks": count(WALKS), "allocations": count(ALLOCATIONS)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("lines", "http"))
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], default=SIZES)
    parser.add_argument("build")
    parser.add_argument("fairlead")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    print(f"{'server':8}{'bytes':>9}{'strict scans':>14}{'walks':>8}{'copies':>9}{'allocations':>13}{'system calls':>14}{'instructions':>14}")
    try:
        for upstream in (arguments.only,) if arguments.only else ("lines", "http"):
            for size in arguments.sizes:
                costs = bench.costs(upstream, size)
                print(f"{upstream:8}{size:9}{costs['strict']:14.1f}{costs['walks']:8.1f}{costs['copied']:9.2f}{costs['allocations']:13.1f}"
                      f"{costs['system calls']:14.1f}{costs['instructions']:14.0f}", flush=True)  # fmt: skip
    finally:
        if bench.upstream:
            bench.upstream.end()


if __name__ == "__main__":
    main()
