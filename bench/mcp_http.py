#!/usr/bin/env python3
"""Measures MCP over HTTP and gateways side by side and prints one table, which README.md explains.

    mcp_http.py [--rounds N] [--seconds S] [--upstream-seconds S] [--only mcp|gateway|structured|large|in_flight|upstream|idle]…
                [--system NAME]… [--connections N]… BUILD-DIR FAIRLEAD
"""
import argparse
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # no __pycache__ in the source tree

from foreign import Foreign
from measuring import FOREIGN_LIMIT, Machine, run_json

HERE = os.path.dirname(os.path.abspath(__file__))
ENVELOPE = (
    '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    '"io.modelcontextprotocol/clientCapabilities":{},"progressToken":1}'
)
COMMON = ("--header", "Content-Type: application/json", "--header", "Accept: application/json, text/event-stream")
LARGE = 5 << 20
IN_FLIGHT_BYTES = 3_000_000
STRUCTURED = 1 << 20
UPSTREAM_WINDOWS = 12


def modern(tool):
    body = '{"jsonrpc":"2.0","id":@ID@,"method":"tools/call","params":{"name":"%s","arguments":{"message":"%s"},%s}}'
    headers = ("MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", f"Mcp-Name: {tool}")
    return body % (tool, "x" * 100, ENVELOPE), [word for header in headers for word in ("--header", header)]


def legacy(tool, arguments='{"message":"%s"}' % ("x" * 100)):
    body = '{"jsonrpc":"2.0","id":@ID@,"method":"tools/call","params":{"name":"%s","arguments":%s}}' % (tool, arguments)
    return body, ["--session", "--header", "MCP-Protocol-Version: 2025-06-18"]


def structured(size):
    """Returns arguments of about `size` bytes: objects, arrays, numbers and strings. The C echo responds with `message` only."""
    row = {"id": 12345, "name": "a name of a row", "tags": ["red", "green"], "size": {"width": 1.5, "height": -2}, "ok": True}
    row_bytes = len(json.dumps(row, separators=(",", ":"))) + 1
    return {"message": "hello", "rows": [row] * ((size - 50) // row_bytes)}


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024


class Running:
    """A measured server on core 1, and the port that it listens on."""

    def __init__(self, machine, command, port=None, environment=None):
        output = subprocess.PIPE if port is None else subprocess.DEVNULL
        self.process = subprocess.Popen(
            ["taskset", "-c", machine.core(1), *command], stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT
            if output is subprocess.PIPE else subprocess.DEVNULL, start_new_session=True, env={**os.environ, **(environment or {})},
        )  # fmt: skip
        self.port = port or self.printed_port()
        deadline = time.monotonic() + 30
        while not self.accepts_connections():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise OSError(f"{command[0]} does not listen")
            time.sleep(0.02)

    def printed_port(self):
        for line in self.process.stdout:
            match = re.search(rb"(?:127\.0\.0\.1:|^)(\d+)", line)
            if match:
                return int(match[1])
        raise OSError("the server did not print its port")

    def accepts_connections(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def end(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Bench:
    def __init__(self, arguments):
        self.machine = Machine(arguments.build)
        self.fairlead = os.path.abspath(arguments.fairlead)
        self.arguments = arguments
        only = arguments.only or ["mcp", "gateway"]
        self.foreign = Foreign(arguments.build, wanted={"mcp", "gateway"} & set(only))
        self.scratch = tempfile.TemporaryDirectory(prefix="fairlead-bench-")
        self.figures = {}  # (section, system) -> list of dicts

    def write_file(self, name, text):
        """Writes a file to the scratch directory. Returns its path."""
        path = os.path.join(self.scratch.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    # ---- systems: name -> (function that starts it, request to send) ----

    def mcp_systems(self):
        program, js = self.machine.program, self.machine.js
        ours = (program("mcp_server"), "--http", "127.0.0.1:0")
        return {
            "bare Beast": (lambda: Running(self.machine, [program("http_beast")]), modern("echo")),
            "ours, JSON": (lambda: Running(self.machine, ours), modern("echo")),
            "ours, events": (lambda: Running(self.machine, ours), modern("progress")),
            "ours, JSON, session": (lambda: Running(self.machine, ours), legacy("echo")),
            "TS SDK 1.x, JSON": (lambda: Running(self.machine, ["node", f"{js}/http_v1.mjs"]), legacy("echo")),
            "TS SDK 1.x, events": (lambda: Running(self.machine, ["node", f"{js}/http_v1.mjs", "sse"]), legacy("echo")),
            "TS SDK 2.x, JSON": (lambda: Running(self.machine, ["node", f"{js}/http_v2.mjs"]), modern("echo")),
            "TS SDK 2.x, events": (lambda: Running(self.machine, ["node", f"{js}/http_v2.mjs", "sse"]), modern("echo")),
            **self.sdk_systems(),
        }

    def sdk_systems(self):
        """Returns the installed SDKs of other languages. Python SDK 1.x, and the Go SDK with sessions, do not support the modern era."""
        systems = {}
        for name, command in self.foreign.servers.items():
            era, revision = (legacy, "2025-11-25") if name in ("Python SDK 1.x", "Go SDK") else (modern, "2026-07-28")
            for form, transport in (("JSON", "json"), ("events", "http")):
                start = lambda command=command, transport=transport, revision=revision: Running(self.machine, [*command, transport, revision])
                systems[f"{name}, {form}"] = (start, era("echo"))
        return systems

    def gateway_systems(self, arguments=None):
        child = self.machine.program("c_echo")
        tool_arguments = {"arguments": arguments} if arguments else {}
        config = self.write_file("gateway.toml", f'[servers.e]\ncommand = "{child}"\nsharing = "shared"\n')
        ours = (self.fairlead, "serve", "--config", config, "--listen")
        node = lambda package: ["node", os.path.realpath(f"{self.machine.js}/node_modules/.bin/{package}")]

        def on_port(command_for):
            port = free_port()
            return Running(self.machine, command_for(port), port)

        fastmcp = self.foreign.python("fastmcp")
        proxy = {
            "fastmcp proxy": (
                lambda: on_port(lambda port: [*fastmcp, f"{HERE}/py/fastmcp_gateway.py", str(port), child]),
                legacy("echo", **tool_arguments),
            )
        }
        return {
            **(proxy if fastmcp and not arguments else {}),
            "bare epoll": (lambda: Running(self.machine, [self.machine.program("epoll_gateway"), child]), legacy("echo", **tool_arguments)),
            "ours": (lambda: on_port(lambda port: [*ours, f"127.0.0.1:{port}", "--log-level", "error"]), legacy("e__echo", **tool_arguments)),
            "mcp-proxy": (
                lambda: on_port(lambda port: [*node("mcp-proxy"), "--port", str(port), "--server", "stream", child]),
                legacy("echo", **tool_arguments),
            ),
            "supergateway": (
                lambda: on_port(
                    lambda port: [*node("supergateway"), "--stdio", child, "--outputTransport", "streamableHttp",
                                  "--stateful", "--port", str(port), "--logLevel", "none"]  # fmt: skip
                ),
                legacy("echo", **tool_arguments),
            ),
        }

    # ---- measuring ----

    def load(self, running, body, options, connections, warm_up=2000, path="/mcp", seconds=None):
        return run_json([
            self.machine.program("http_load"), "127.0.0.1", str(running.port), path,
            "--connections", str(connections), "--seconds", str(seconds or self.arguments.seconds), "--warm-up", str(warm_up),
            "--body-file", self.write_file("body", body), "--pid", str(running.process.pid), "--own-core", self.machine.core(0),
            *COMMON, *options,
        ])  # fmt: skip

    def measure_system(self, section, name, start, request, connections, warm_up=2000):
        try:
            running = start()
        except OSError as error:
            print(f"{section}, {name}: {error}", file=sys.stderr)
            return
        try:
            time.sleep(0.3)  # time for the servers behind a gateway to start
            idle = resident_mib(running.process.pid)
            best = None
            for _ in range(2):
                figures = self.load(running, *request, connections, warm_up)
                if isinstance(figures, str):
                    print(f"{section}, {name}: {figures}", file=sys.stderr)
                    return
                if best is None or figures["foreign"] < best["foreign"]:
                    best = figures
                if best["foreign"] <= FOREIGN_LIMIT:
                    break
            best |= {"idle_mib": idle, "loaded_mib": resident_mib(running.process.pid)}
            self.figures.setdefault((section, name), []).append(best)
        finally:
            running.end()

    def measure(self, section, systems, connections, warm_up=2000):
        names = select_names(systems, self.arguments.system)
        for number in range(self.arguments.rounds):
            shift = number % len(names)
            for name in names[shift:] + names[:shift]:
                slow = name.startswith(("Python", "fastmcp"))  # the full warm-up would take them a minute
                self.measure_system(section, name, *systems[name], connections, min(warm_up, 300) if slow else warm_up)

    def median(self, section, name, key):
        values = [figures[key] for figures in self.figures.get((section, name), [])]
        return statistics.median(values) if values else None

    def ratio(self, section, key, ours, other):
        pairs = zip(self.figures.get((section, ours), []), self.figures.get((section, other), []))
        values = [a[key] / b[key] for a, b in pairs]
        return statistics.median(values) if values else None

    def print_section(self, section, systems):
        print(f"\n{section}")
        print(f"  {'':22}{'calls/s':>10}{'CPU us':>9}{'p50 us':>10}{'p99 us':>10}{'idle MiB':>10}{'loaded':>9}{'foreign':>9}")
        for name in select_names(systems, self.arguments.system):
            row = [self.median(section, name, key) for key in
                   ("calls_per_s", "server_cpu_us", "p50_us", "p99_us", "idle_mib", "loaded_mib", "foreign")]  # fmt: skip
            if row[0] is None:
                print(f"  {name:22}{'-':>10}")
                continue
            print(f"  {name:22}{row[0]:10.0f}{row[1]:9.2f}{row[2]:10.0f}{row[3]:10.0f}{row[4]:10.1f}{row[5]:9.1f}{row[6]:9.2f}")


def select_names(systems, prefixes):
    """Returns the names of the systems to measure: all, or those that begin with one of the prefixes."""
    return [name for name in systems if not prefixes or name.startswith(tuple(prefixes))]


def show(title, value, bound, at_most=False):
    if value is None:
        print(f"  {title:66} not measured")
        return
    reached = value <= bound if at_most else value >= bound
    print(f"  {title:66}{value:10.2f}  ({'at most' if at_most else 'at least'} {bound}) {'reached' if reached else 'MISSED'}")


def http_upstream(bench, connections=16):
    """Measures calls through the gateway to an HTTP server, in successive windows on one gateway, and to the same server on
    stdio. Returns calls per second, CPU time per call and resident memory of each window, or None after a failure. A cost
    that grows with every call shows in the last window."""
    program = bench.machine.program("mcp_server")
    upstream = Running(bench.machine, [program, "--http", "127.0.0.1:0"])
    seconds = bench.arguments.upstream_seconds / UPSTREAM_WINDOWS
    rows = {}
    try:
        for name, server in (("stdio", f'command = "{program}"'), ("HTTP", f'url = "http://127.0.0.1:{upstream.port}/mcp"')):
            config = bench.write_file(f"{name}.toml", f'[servers.e]\n{server}\nsharing = "shared"\n')
            port = free_port()
            command = [bench.fairlead, "serve", "--config", config, "--log-level", "error", "--listen", f"127.0.0.1:{port}"]
            gateway = Running(bench.machine, command, port)
            try:
                time.sleep(0.3)  # time for the server to start
                windows = 1 if name == "stdio" else UPSTREAM_WINDOWS
                for _ in range(windows):
                    figures = bench.load(gateway, *legacy("e__echo"), connections, seconds=seconds)
                    if isinstance(figures, str):
                        print(f"HTTP upstream, {name}: {figures}", file=sys.stderr)
                        return None
                    rows.setdefault(name, []).append((figures["calls_per_s"], figures["server_cpu_us"], resident_mib(gateway.process.pid)))
            finally:
                gateway.end()
    finally:
        upstream.end()
    return rows


def show_http_upstream(rows):
    print(f"\ngateway to an HTTP upstream, 16 connections, {UPSTREAM_WINDOWS} windows; the first line is the same server on stdio")
    print(f"  {'':22}{'calls/s':>10}{'CPU us':>9}{'MiB':>9}")
    for name in rows or {}:
        for number, (calls, cpu, mib) in enumerate(rows[name], 1):
            print(f"  {name + ', window ' + str(number):22}{calls:10.0f}{cpu:9.2f}{mib:9.1f}")
    http, stdio = (rows["HTTP"], rows["stdio"]) if rows else (None, None)
    show("calls/s, last window to the first", http and http[-1][0] / http[0][0], 0.9)
    show("resident, last window to the second", http and http[-1][2] / http[1][2], 1.1, at_most=True)
    show("calls/s, to the stdio path", http and statistics.median(row[0] for row in http) / stdio[0][0], 0.17)


def idle_sessions(bench, count=10_000):
    """Opens `count` sessions with a GET stream each. Returns the resident memory of the server in MiB."""
    running = bench.mcp_systems()["ours, JSON"][0]()
    try:
        sockets = []
        body = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}'
        head = "Host: 127.0.0.1\r\nAccept: application/json, text/event-stream\r\n"
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", running.port), 10)
            connection.sendall(f"POST /mcp HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            response = b""
            while b"\r\n\r\n" not in response or not response.endswith(b"}"):
                response += connection.recv(65536)
            session = re.search(rb"(?i)mcp-session-id: ([^\r]+)", response)[1].decode()
            connection.sendall(f"GET /mcp HTTP/1.1\r\n{head}Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n\r\n".encode())
            if not connection.recv(65536).startswith(b"HTTP/1.1 200"):
                raise OSError("the server did not open a stream")
            sockets.append(connection)
        return resident_mib(running.process.pid)
    finally:
        for connection in sockets:
            connection.close()
        running.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("fairlead")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--upstream-seconds", type=float, default=60.0)
    parser.add_argument("--only", action="append")
    parser.add_argument("--system", action="append", help="measure only systems whose names begin with this; may be repeated")
    parser.add_argument("--connections", action="append", type=int, help="number of connections in the sections mcp and gateway; may be repeated")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    error = bench.machine.install_sdks(os.path.join(HERE, "js"))
    if error:
        print(f"the TypeScript SDKs, mcp-proxy and supergateway are not measured: {error}", file=sys.stderr)
    wanted = arguments.only or ["mcp", "gateway", "structured", "large", "in_flight", "upstream", "idle"]
    print(f"Medians of {arguments.rounds} rounds; the systems alternate in each round; load generator on core 0, servers on core 1.")
    for name, reason in bench.foreign.missing.items():
        print(f"  {name}: {reason}")

    if "mcp" in wanted:
        systems = bench.mcp_systems()
        for connections in arguments.connections or (16, 64, 256):
            section = f"MCP over HTTP, {connections} connections"
            bench.measure(section, systems, connections)
            bench.print_section(section, systems)
            for title, ours, other, bound in (
                ("JSON, to bare Beast", "ours, JSON", "bare Beast", 0.7),
                ("events, to our JSON", "ours, events", "ours, JSON", 0.7),
                ("JSON, to TS SDK 2.x", "ours, JSON", "TS SDK 2.x, JSON", 10),
                ("events, to TS SDK 2.x", "ours, events", "TS SDK 2.x, events", 10),
                ("JSON with sessions, to TS SDK 1.x", "ours, JSON, session", "TS SDK 1.x, JSON", 10),
            ):
                show(title, bench.ratio(section, "calls_per_s", ours, other), bound)
    if "gateway" in wanted:
        systems = bench.gateway_systems()
        for connections in arguments.connections or (16, 64):
            section = f"gateways, {connections} connections"
            bench.measure(section, systems, connections)
            bench.print_section(section, systems)
            show("calls/s, to mcp-proxy", bench.ratio(section, "calls_per_s", "ours", "mcp-proxy"), 20)
            show("calls/s, to supergateway", bench.ratio(section, "calls_per_s", "ours", "supergateway"), 20)
            show("calls/s, to the bare epoll gateway", bench.ratio(section, "calls_per_s", "ours", "bare epoll"), 0.35)
            show("resident idle, MiB", bench.median(section, "ours", "idle_mib"), 20, at_most=True)
            show("resident under load, MiB", bench.median(section, "ours", "loaded_mib"), 50, at_most=True)
    if "structured" in wanted:
        arguments_text = json.dumps(structured(STRUCTURED), separators=(",", ":"))
        systems = {name: system for name, system in bench.gateway_systems(arguments_text).items() if name in ("bare epoll", "ours")}
        section = "gateways, 1 MiB of structured arguments, 4 connections"
        bench.measure(section, systems, 4, warm_up=20)
        bench.print_section(section, systems)
        show("calls/s, to the bare epoll gateway", bench.ratio(section, "calls_per_s", "ours", "bare epoll"), 0.7)
    if "large" in wanted:
        systems = {name: system for name, system in bench.gateway_systems('{"bytes":%d}' % LARGE).items() if name in ("bare epoll", "ours")}
        section = "gateways, results of 5 MiB, 4 connections"
        bench.measure(section, systems, 4, warm_up=20)
        bench.print_section(section, systems)
        rate = bench.median(section, "ours", "calls_per_s")
        show("MB/s", rate and rate * LARGE / 1e6, 400)
    if "in_flight" in wanted:
        message = '{"message":"%s"}' % ("x" * IN_FLIGHT_BYTES)
        # The bare gateway is not measured: it writes to its child without reading, so both block forever.
        systems = {"ours": bench.gateway_systems(message)["ours"]}
        section = "gateway, 8 calls of 3 MB in flight, echoed"
        bench.measure(section, systems, 8, warm_up=16)
        bench.print_section(section, systems)
        rate = bench.median(section, "ours", "calls_per_s")
        show("MB/s of arguments", rate and rate * IN_FLIGHT_BYTES / 1e6, 100)
    if "upstream" in wanted:
        show_http_upstream(http_upstream(bench))
    if "idle" in wanted:
        show("10,000 idle sessions with an open stream each, resident MiB", idle_sessions(bench), 400, at_most=True)


if __name__ == "__main__":
    main()
