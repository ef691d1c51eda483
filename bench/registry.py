#!/usr/bin/env python3
"""Measures a gateway with a large registry, and the cost of a call with and without a database (README.md).

    registry.py [--rounds N] [--servers N] [--tools N] [--only scale|calls] BUILD-DIR FAIRLEAD
"""
import argparse
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

sys.dont_write_bytecode = True  # no __pycache__ in the source tree

from call_costs import Bench as CallBench
from call_costs import Client, read_callgrind
from measuring import Machine, free_port, resident_mib

TOKEN = "the-administrator-of-the-benchmark"
CALLS = (200, 1200)
LISTEN = {"notifications": {"toolsListChanged": True}}


def set_row(database, table, values):
    columns = ",".join(values)
    database.execute(f"INSERT INTO {table} ({columns}) VALUES ({','.join('?' * len(values))})", list(values.values()))


class Gateway:
    """A gateway with a database, on core 1."""

    def __init__(self, machine, program, database, *arguments):
        self.port = free_port()
        self.start_time = time.monotonic()
        self.process = subprocess.Popen(
            ["taskset", "-c", machine.core(1), program, "serve", "--db", f"sqlite:{database}", "--listen", f"127.0.0.1:{self.port}",
             "--log-level", "error", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env={**os.environ, "FAIRLEAD_ADMIN_TOKEN": TOKEN})  # fmt: skip

    def wait(self):
        """Waits until the gateway accepts connections."""
        while True:
            with contextlib.suppress(OSError):
                self.request("GET", "/healthz")
                return self
            if self.process.poll() is not None or time.monotonic() > self.start_time + 60:
                raise OSError("the gateway does not start")
            time.sleep(0.002)

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def request(self, method, path, body=None, connection=None):
        with contextlib.ExitStack() as stack:
            connection = connection or stack.enter_context(contextlib.closing(self.connect()))
            kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
            headers = {"Authorization": f"Bearer {TOKEN}", **({"Content-Type": kind} if body is not None else {})}
            connection.request(method, path, body if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read()
            if response.status // 100 != 2:
                raise OSError(f"{method} {path}: {response.status} {text[:300]!r}")
            return json.loads(text) if text.startswith(b"{") else None

    def __enter__(self):
        return self.wait()

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def wait_for_tools(gateway, row, count):
    """Waits until the lists of a server are stored."""
    end = time.monotonic() + 60
    while len(gateway.request("GET", f"/mcp/servers/{row['id']}/tools").get("items", [])) < count:
        if time.monotonic() > end:
            raise OSError("the server does not list its tools")
        time.sleep(0.02)


class McpClient(Client):
    """A client in the modern era with a token."""

    def __init__(self, port):
        super().__init__(port, modern=True)

    def headers(self, method, params):
        return {**super().headers(method, params), "Authorization": f"Bearer {TOKEN}"}

    def listen(self):
        """Opens the stream of notifications. Returns the response, whose lines are events."""
        body = self.encode("subscriptions/listen", LISTEN)
        self.connection.request("POST", "/mcp", body, {**self.headers("subscriptions/listen", LISTEN), "Accept": "application/json, text/event-stream"})
        return self.connection.getresponse()


def wait_for_change(stream):
    for line in stream:
        if b"tools/list_changed" in line:
            return time.monotonic()
    raise OSError("the stream of notifications has ended")


class Scale:
    def __init__(self, machine, arguments, folder):
        self.machine, self.arguments, self.folder = machine, arguments, folder
        self.program = os.path.abspath(arguments.fairlead)
        self.figures = {}

    def add(self, name, value):
        self.figures.setdefault(name, []).append(value)

    def fill(self, path):
        """Creates a database. One server is registered and listed by a gateway; the others are copies of its rows."""
        with Gateway(self.machine, self.program, path) as gateway:
            config = {"transport": "stdio", "command": self.machine.program("mcp_server"), "args": [str(self.arguments.tools - 1)], "env": {}}
            row = gateway.request("POST", "/mcp/servers", {"name": "server0", "description": "A server.", "transport": "stdio", "config": config})
            wait_for_tools(gateway, row, self.arguments.tools)
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            database.row_factory = sqlite3.Row
            server = dict(database.execute("SELECT * FROM servers WHERE id = ?", [row["id"]]).fetchone())
            lists = dict(database.execute("SELECT * FROM server_lists WHERE server_id = ?", [row["id"]]).fetchone())
            document = json.loads(server["document"])
            for number in range(1, self.arguments.servers):
                id, name = str(uuid.UUID(int=uuid.UUID(row["id"]).int + (number << 80))), f"server{number}"
                text = json.dumps({**document, "id": id, "name": name}, separators=(",", ":"))
                set_row(database, "servers", {**server, "id": id, "name": name, "name_key": name, "document": text})
                set_row(database, "server_lists", {**lists, "server_id": id})

    def measure(self, path):
        wanted = self.arguments.servers * self.arguments.tools
        with Gateway(self.machine, self.program, path) as gateway:
            client = McpClient(gateway.port)
            self.add("listening", time.monotonic() - gateway.start_time)
            count = client.complete_list()
            self.add("complete list", time.monotonic() - gateway.start_time)
            if count < wanted:
                raise OSError(f"the list has {count} tools instead of {wanted}")
            start = time.monotonic()
            client.complete_list()
            self.add("second list", time.monotonic() - start)
            self.add("resident", resident_mib(gateway.process.pid))
            self.measure_pages(gateway)
            self.measure_changes(gateway)
            self.add("resident after changes", resident_mib(gateway.process.pid))

    def measure_pages(self, gateway):
        with contextlib.closing(gateway.connect()) as connection:
            cursor = ""
            for _ in range(100):
                start = time.monotonic()
                page = gateway.request("GET", "/mcp/servers?limit=50" + cursor, connection=connection)
                self.add("page", time.monotonic() - start)
                cursor = f"&cursor={page['nextCursor']}" if "nextCursor" in page else ""

    def measure_changes(self, gateway):
        row = gateway.request("GET", "/mcp/servers?limit=3")["items"][-1]
        stream = McpClient(gateway.port).listen()
        with contextlib.closing(gateway.connect()) as connection:
            for number in range(10):
                start = time.monotonic()
                gateway.request("PATCH", f"/mcp/servers/{row['id']}", {"enabled": number % 2 == 1}, connection)
                self.add("answer", time.monotonic() - start)
                self.add("notified", wait_for_change(stream) - start)
                time.sleep(0.15)  # changes within 100 ms are announced together

    def report(self):
        print(f"\n{self.arguments.servers:,} servers with {self.arguments.tools} tools each, {self.arguments.rounds} rounds")
        for title, name, factor, bound, unit in (
            ("start to an open port", "listening", 1, None, "s"), ("start to the end of the first complete tools/list", "complete list", 1, 2, "s"),
            ("complete tools/list, again", "second list", 1, None, "s"), ("page of 50 servers of the admin API", "page", 1e3, 5, "ms"),
            ("change of one server to the response", "answer", 1e3, None, "ms"), ("change of one server to the notification of a client", "notified", 1e3, 50, "ms"),
            ("resident after the first list", "resident", 1, 200, "MiB"), ("resident after the changes", "resident after changes", 1, 200, "MiB"),
        ):  # fmt: skip
            show(title, statistics.median(self.figures[name]) * factor, bound, unit)


def show(title, value, bound, unit):
    verdict = "" if bound is None else f"  (at most {bound}) {'reached' if value <= bound else 'MISSED'}"
    print(f"  {title:60}{value:12.3f} {unit}{verdict}", flush=True)


class CallCosts(CallBench):
    """Instructions for one call with and without a database, to the same server over HTTP."""

    def arguments_for(self, kind):
        if kind == "file":
            return ["--config", self.config("http")]
        path = self.path(f"{kind}.db")
        copy_database(self.path("registry.db"), path)
        return ["--db", f"sqlite:{path}", "--auth-mode", "token" if kind == "token" else "none"]

    def prepare(self):
        """Creates the database with the server `d`, because the name `e` of the file is reserved there."""
        self.config("http")  # starts the server
        with Gateway(self.machine, self.fairlead, self.path("registry.db")) as gateway:
            config = {"transport": "http", "url": f"http://127.0.0.1:{self.upstream.port}/mcp", "sharing": "shared"}
            row = gateway.request("POST", "/mcp/servers", {"name": "d", "transport": "http", "config": config})
            wait_for_tools(gateway, row, 1)

    def instructions(self, kind):
        """Returns the instructions of one call: the difference of two runs with different numbers of calls."""
        totals = []
        for calls in CALLS:
            out, port = self.path(f"callgrind.{kind}.{calls}"), free_port()
            command = ["valgrind", "-q", "--tool=callgrind", "--trace-children=no", f"--callgrind-out-file={out}", self.fairlead, "serve",
                       *self.arguments_for(kind), "--log-level", "error", "--listen", f"127.0.0.1:{port}"]  # fmt: skip
            environment = {**os.environ, "XDG_STATE_HOME": self.path("state"), **({"FAIRLEAD_ADMIN_TOKEN": TOKEN} if kind == "token" else {})}
            running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
            try:
                self.call(port, running, calls, kind)
            finally:
                running.terminate()
                running.wait(120)
            totals.append(read_callgrind(out)["instructions"])
        return (totals[1] - totals[0]) / (CALLS[1] - CALLS[0])

    def call(self, port, running, calls, kind):
        tool = "e__echo" if kind == "file" else "d__echo"
        deadline = time.monotonic() + 60
        while True:
            try:
                client = McpClient(port) if kind == "token" else Client(port, modern=True)
                client.call(tool, 200, 5)
                break
            except OSError:
                if time.monotonic() > deadline or running.poll() is not None:
                    raise
                time.sleep(0.2)
        client.call(tool, 200, calls)

    def report(self, rounds):
        self.prepare()
        figures = {kind: [] for kind in ("file", "database", "token")}
        for _ in range(rounds):
            for kind, values in figures.items():
                values.append(self.instructions(kind))
        medians = {kind: statistics.median(values) for kind, values in figures.items()}
        print(f"\ninstructions of one call to a server over HTTP, {rounds} rounds")
        for kind, title in (("file", "configuration file, no database"), ("database", "database"), ("token", "database, and a token")):
            print(f"  {title:60}{medians[kind]:12.0f}")
        show("database to file, difference", 100 * abs(medians["database"] / medians["file"] - 1), 2, "%")


def copy_database(path, to):
    """Copies a database that nobody serves, with the key of its secrets."""
    shutil.copy(path, to)
    shutil.copy(path + ".key", to + ".key")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("fairlead")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--servers", type=int, default=10_000)
    parser.add_argument("--tools", type=int, default=10)
    parser.add_argument("--only", choices=("scale", "calls"))
    arguments = parser.parse_args()
    machine = Machine(os.path.abspath(arguments.build))
    if arguments.only != "calls":
        with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as folder:
            scale = Scale(machine, arguments, folder)
            filled = os.path.join(folder, "filled.db")
            scale.fill(filled)
            for number in range(arguments.rounds):
                path = os.path.join(folder, f"round{number}.db")
                copy_database(filled, path)
                scale.measure(path)
            scale.report()
    if arguments.only != "scale":
        if not shutil.which("valgrind"):
            print("\ninstructions of one call: not measured, valgrind is not installed")
            return
        costs = CallCosts(arguments)
        try:
            costs.report(arguments.rounds)
        finally:
            if costs.upstream:
                costs.upstream.end()


if __name__ == "__main__":
    main()
