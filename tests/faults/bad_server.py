#!/usr/bin/env python3
"""An MCP server that misbehaves in one way: bad_server.py WAY [ARGUMENT]. Otherwise a good one with three tools."""
import json
import os
import signal
import subprocess
import sys
import time

WAY = sys.argv[1] if len(sys.argv) > 1 else "good"
ARGUMENT = sys.argv[2] if len(sys.argv) > 2 else ""
TOOLS = [
    {"name": "pid", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "hang", "inputSchema": {"type": "object"}},
    {"name": "die", "inputSchema": {"type": "object"}},
    {"name": "big", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "shout", "inputSchema": {"type": "object"}},
    {"name": "ticks", "inputSchema": {"type": "object"}},
]
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": WAY, "version": "1"}}


def say(message):
    sys.stdout.write(json.dumps(message, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def forever():
    while True:
        signal.pause()


def sleeper(**how):
    """A process that ends only when it is killed."""
    return subprocess.Popen([sys.executable, os.path.abspath(__file__), "sleeper"], **how)


def stubborn():
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)


def before():
    """What it does before it serves."""
    if WAY == "sleeper":
        stubborn()
        forever()
    if WAY == "stubborn":
        stubborn()
    elif WAY == "launcher":  # sh -> python -> grandchild, as npx does it; none of them takes a hint
        os.execvp("sh", ["sh", "-c", f'trap "" TERM; "{sys.executable}" "{os.path.abspath(__file__)}" stubborn_with_child; true'])
    elif WAY == "stubborn_with_child":
        stubborn()
        sleeper()
    elif WAY == "double_fork":
        if os.fork() == 0:
            if os.fork() == 0:
                stubborn()
                forever()
            os._exit(0)
    elif WAY == "escapes":
        sleeper(start_new_session=True)
    elif WAY == "vanishes":  # a grandchild without parent, session and environment; its number is in the file
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                with open(ARGUMENT + ".new", "w", encoding="utf-8") as file:
                    file.write(str(os.getpid()))
                os.rename(ARGUMENT + ".new", ARGUMENT)
                os.execve(sys.executable, [sys.executable, os.path.abspath(__file__), "sleeper"], {})
            os._exit(0)
    elif WAY == "forks":
        if os.fork() == 0:  # a new child every 10 ms, each of them stubborn
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            stubborn()
            while True:
                if os.fork() == 0:
                    forever()
                time.sleep(0.01)
    elif WAY == "banner":
        line = b"Starting up, please wait ...\n" * 4096
        for _ in range(100 * 1024 * 1024 // len(line)):
            os.write(1, line)
    elif WAY == "dies_in_handshake":
        sys.stdin.readline()
        sys.stderr.write("no licence\n")
        sys.exit(4)
    elif WAY == "never_reads":
        sys.stderr.write("warming up\n")
        sys.stderr.flush()
        forever()
    elif WAY == "waits":  # until somebody makes the file
        while not os.path.exists(ARGUMENT):
            time.sleep(0.01)
    elif WAY == "counts":  # its starts
        with open(ARGUMENT, "a", encoding="utf-8") as file:
            file.write("x")


def call(name):
    if name == "die":
        sys.stderr.write("last words\n")
        sys.stderr.flush()
        os._exit(3)
    if name == "big":
        return "ä" * (5 * 1024 * 1024 // 2)
    if name == "shout":
        sys.stderr.write("x" * 99 + "\n" * 1)
        for _ in range(20_000):
            sys.stderr.write("y" * 99 + "\n")
        return "shouted"
    return str(os.getpid())


def serve():
    for line in sys.stdin:
        request = json.loads(line)
        method, id = request.get("method"), request.get("id")
        if id is None:
            if method == "notifications/cancelled" and ARGUMENT:
                with open(ARGUMENT, "a", encoding="utf-8") as file:
                    file.write("cancelled\n")
            continue
        if method == "initialize":
            say({"jsonrpc": "2.0", "id": id, "result": HELLO})
            if WAY == "mute":  # and then nothing
                forever()
        elif method == "ping":
            say({"jsonrpc": "2.0", "id": id, "result": {}})
        elif method == "tools/list":
            say({"jsonrpc": "2.0", "id": id, "result": {"tools": TOOLS}})
        elif method == "tools/call":
            name = request["params"]["name"]
            if name == "ticks":  # reports progress for two seconds, if it is asked to
                token = request["params"].get("_meta", {}).get("progressToken")
                for step in range(10):
                    time.sleep(0.2)
                    if token is not None:
                        say({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": step}})
            if name != "hang":
                say({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": call(name)}]}})
            if WAY == "exits_after_calls":
                sys.exit(0)
        else:
            say({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}})
    if WAY in ("stubborn", "stubborn_with_child"):
        forever()


before()
serve()
