#!/usr/bin/env python3
"""Measures what supervision costs: coming back after a crash, starting and stopping fifty servers (README.md).

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
OWN_START = 0.5  # seconds a server takes to start by itself
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


class Gateway:
    def __init__(self, program, config):
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [program, "serve", "--config", config, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        for line in self.process.stderr:
            found = re.search(rb"endpoint=http://127.0.0.1:(\d+)/", line)
            if found:
                self.port = int(found[1])
                break
        # Nobody reads the rest; a pipe of log lines is large enough for what follows.
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
        """Of the servers, by their place in /health."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request("GET", "/health")
            servers = json.loads(connection.getresponse().read())["servers"]
        return [int(re.search(r"pid (\d+)", server["connection"])[1]) for server in servers if "connection" in server]

    def end(self):
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.process.stderr.close()
        return time.monotonic() - began


def config_of(folder, command, count=COUNT):
    path = os.path.join(folder, "gateway.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write('list_wait = "30s"\n')
        for number in range(count):
            file.write(f"[servers.s{number}]\ncommand = {json.dumps(command[0])}\nargs = {json.dumps(command[1:])}\n")
    return path


def recovery(program, echo, folder):
    """From a kill to the next result. A call that reaches the server while it dies may have run: that one is an error."""
    gateway = Gateway(program, config_of(folder, [echo], 1))
    gateway.post("tools/list")
    os.kill(gateway.pids()[0], signal.SIGKILL)
    began = time.monotonic()
    while "result" not in gateway.post("tools/call", name="s0__echo", arguments={"message": "x"}):
        pass
    took = time.monotonic() - began
    gateway.end()
    return took


def many(program, command, folder):
    """From the start of the gateway to a list with all servers in it, and from SIGTERM to its end."""
    gateway = Gateway(program, config_of(folder, command))
    tools = gateway.post("tools/list")["result"]["tools"]
    started = time.monotonic() - gateway.began
    if len(tools) != COUNT:
        raise OSError(f"{len(tools)} tools")
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
        back = [recovery(program, echo, folder) for _ in rounds]
        good = [many(program, slow, folder) for _ in rounds]
        bad = [many(program, stubborn, folder)[1] for _ in rounds]

    def show(title, value, bound, unit):
        print(f"  {title:72}{value:9.3f} {unit}  (at most {bound}) {'reached' if value <= bound else 'MISSED'}")

    print(f"Medians of {arguments.rounds} rounds.")
    show("crash to serving again, the C echo's own start included", statistics.median(back) * 1e3, 100, "ms")
    show(f"{COUNT} servers that need {OWN_START} s each, to the slowest one's own start", statistics.median(g[0] for g in good) / OWN_START, 1.5, "x")
    show(f"shutdown of {COUNT} well-behaved servers", statistics.median(g[1] for g in good), 1, "s")
    show(f"shutdown of {COUNT} that ignore everything", statistics.median(bad), 4, "s")


if __name__ == "__main__":
    sys.exit(main())
