#!/usr/bin/env python3
"""Measures supervision: recovery after a crash, and the start and stop of fifty servers (README.md).

    supervision.py [--rounds N] BUILD-DIR FAIRLEAD
"""
import argparse
import contextlib
import http.client
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

COUNT = 50
OWN_START = 0.5  # seconds that each server needs for its own start
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


class Gateway:
    def __init__(self, program, config):
        self.start_time = time.monotonic()
        self.process = subprocess.Popen(
            [program, "serve", "--config", config, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        for line in self.process.stderr:
            match = re.search(rb"endpoint=http://127.0.0.1:(\d+)/", line)
            if match:
                self.port = int(match[1])
                break
        # The rest is not read: the pipe has room for all later log lines.
        os.set_blocking(self.process.stderr.fileno(), False)

    def post(self, method, **params):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                   "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}  # fmt: skip
        if "name" in params:
            headers["Mcp-Name"] = params["name"]
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}})
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request("POST", "/mcp", body, headers)
            return json.loads(connection.getresponse().read())

    def pids(self):
        """Returns the process ids of the servers, in the order of /health."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request("GET", "/health")
            servers = json.loads(connection.getresponse().read())["servers"]
        return [int(re.search(r"pid (\d+)", server["connection"])[1]) for server in servers if "connection" in server]

    def end(self):
        """Stops the gateway with SIGTERM. Returns the seconds until it exited."""
        start = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.process.stderr.close()
        return time.monotonic() - start


def write_config(folder, command, count=COUNT):
    path = os.path.join(folder, "gateway.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write('list_wait = "30s"\n')
        for number in range(count):
            file.write(f"[servers.s{number}]\ncommand = {json.dumps(command[0])}\nargs = {json.dumps(command[1:])}\n")
    return path


def measure_recovery(program, echo, folder):
    """Returns the seconds from a kill to the next result. A call that reaches the server while it dies may have run, so it
    is answered with an error and repeated here."""
    gateway = Gateway(program, write_config(folder, [echo], 1))
    gateway.post("tools/list")
    os.kill(gateway.pids()[0], signal.SIGKILL)
    start = time.monotonic()
    while "result" not in gateway.post("tools/call", name="s0__echo", arguments={"message": "x"}):
        pass
    duration = time.monotonic() - start
    gateway.end()
    return duration


def measure_start_and_stop(program, command, folder):
    """Returns the seconds from the start of the gateway to a list with all servers, and from SIGTERM to its exit."""
    gateway = Gateway(program, write_config(folder, command))
    tools = gateway.post("tools/list")["result"]["tools"]
    started = time.monotonic() - gateway.start_time
    if len(tools) != COUNT:
        raise OSError(f"the list has {len(tools)} tools instead of {COUNT}")
    return started, gateway.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("fairlead")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.fairlead)
    echo = os.path.abspath(os.path.join(arguments.build, "programs", "c_echo"))
    slow = ["/bin/sh", "-c", f"sleep {OWN_START}; exec {echo}"]
    stubborn = ["/bin/sh", "-c", f'trap "" TERM INT HUP; {echo}; while :; do sleep 1; done']
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as folder:
        rounds = range(arguments.rounds)
        recoveries = [measure_recovery(program, echo, folder) for _ in rounds]
        orderly = [measure_start_and_stop(program, slow, folder) for _ in rounds]
        stubborn_stops = [measure_start_and_stop(program, stubborn, folder)[1] for _ in rounds]

    def show(title, value, bound, unit):
        print(f"  {title:72}{value:9.3f} {unit}  (at most {bound}) {'reached' if value <= bound else 'MISSED'}")

    print(f"Medians of {arguments.rounds} rounds.")
    show("crash to next result, including the start of the C echo", statistics.median(recoveries) * 1e3, 100, "ms")
    show(f"{COUNT} servers that need {OWN_START} s each, relative to the start of one server", statistics.median(start for start, _ in orderly) / OWN_START, 1.5, "x")
    show(f"shutdown of {COUNT} well-behaved servers", statistics.median(stop for _, stop in orderly), 1, "s")
    show(f"shutdown of {COUNT} servers that ignore EOF and SIGTERM", statistics.median(stubborn_stops), 4, "s")


if __name__ == "__main__":
    sys.exit(main())
