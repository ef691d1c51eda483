#!/usr/bin/env python3
"""An MCP server that misbehaves in one way: bad_server.py MODE [ARGUMENT]. In all other respects it serves its tools."""
import json
import os
import signal
import subprocess
import sys
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else "good"
ARGUMENT = sys.argv[2] if len(sys.argv) > 2 else ""
TOOLS = [
    {"name": "pid", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "hang", "inputSchema": {"type": "object"}},
    {"name": "die", "inputSchema": {"type": "object"}},
    {"name": "big", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "shout", "inputSchema": {"type": "object"}},
    {"name": "ticks", "inputSchema": {"type": "object"}},
]
INITIALIZE_RESULT = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": MODE, "version": "1"}}


def send(message):
    sys.stdout.write(json.dumps(message, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def pause_forever():
    while True:
        signal.pause()


def start_sleeper(**options):
    """Starts a process that only SIGKILL ends."""
    return subprocess.Popen([sys.executable, os.path.abspath(__file__), "sleeper"], **options)


def ignore_termination_signals():
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)


def misbehave_at_start():
    """Runs the misbehaviour of modes that act before the server reads requests."""
    if MODE == "sleeper":
        ignore_termination_signals()
        pause_forever()
    if MODE == "stubborn":
        ignore_termination_signals()
    elif MODE == "launcher":  # sh -> python -> grandchild, as with npx; all of them ignore SIGTERM
        os.execvp("sh", ["sh", "-c", f'trap "" TERM; "{sys.executable}" "{os.path.abspath(__file__)}" stubborn_with_child; true'])
    elif MODE == "stubborn_with_child":
        ignore_termination_signals()
        start_sleeper()
    elif MODE == "double_fork":
        if os.fork() == 0:
            if os.fork() == 0:
                ignore_termination_signals()
                pause_forever()
            os._exit(0)
    elif MODE == "escapes":
        start_sleeper(start_new_session=True)
    elif MODE == "vanishes":  # an orphaned grandchild without session and environment; the file gets its pid
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                with open(ARGUMENT + ".new", "w", encoding="utf-8") as file:
                    file.write(str(os.getpid()))
                os.rename(ARGUMENT + ".new", ARGUMENT)
                os.execve(sys.executable, [sys.executable, os.path.abspath(__file__), "sleeper"], {})
            os._exit(0)
    elif MODE == "forks":
        if os.fork() == 0:  # a new child every 10 ms, each of which ignores SIGTERM
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            ignore_termination_signals()
            while True:
                if os.fork() == 0:
                    pause_forever()
                time.sleep(0.01)
    elif MODE == "banner":
        line = b"Starting up, please wait ...\n" * 4096
        for _ in range(100 * 1024 * 1024 // len(line)):
            os.write(1, line)
    elif MODE == "dies_in_handshake":
        sys.stdin.readline()
        sys.stderr.write("no licence\n")
        sys.exit(4)
    elif MODE == "never_reads":
        sys.stderr.write("warming up\n")
        sys.stderr.flush()
        pause_forever()
    elif MODE == "waits":  # until the file exists
        while not os.path.exists(ARGUMENT):
            time.sleep(0.01)
    elif MODE == "counts":  # appends a character to the file at each start
        with open(ARGUMENT, "a", encoding="utf-8") as file:
            file.write("x")


def tool_text(name):
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
            send({"jsonrpc": "2.0", "id": id, "result": INITIALIZE_RESULT})
            if MODE == "mute":  # sends nothing after the response
                pause_forever()
        elif method == "ping":
            send({"jsonrpc": "2.0", "id": id, "result": {}})
        elif method == "tools/list":
            send({"jsonrpc": "2.0", "id": id, "result": {"tools": TOOLS}})
        elif method == "tools/call":
            name = request["params"]["name"]
            if name == "ticks":  # reports progress for two seconds if the request has a progress token
                token = request["params"].get("_meta", {}).get("progressToken")
                for step in range(10):
                    time.sleep(0.2)
                    if token is not None:
                        send({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": step}})
            if name != "hang":
                send({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": tool_text(name)}]}})
            if MODE == "exits_after_calls":
                sys.exit(0)
        else:
            send({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}})
    if MODE in ("stubborn", "stubborn_with_child"):
        pause_forever()


misbehave_at_start()
serve()
