#!/usr/bin/env python3
"""Measures MCP over HTTP and gateways side by side and prints the figures of each section and all targets (README.md).

    mcp_http.py [--rounds N] [--seconds S] [--upstream-seconds S] [--mixed-seconds S] [--only SECTION]… [--growth TABLE]… [--system NAME]… [--connections N]…
                [--targets FILE] BUILD-DIR FAIRLEAD

The sections are mcp, gateway, structured, large, in_flight, list, upstream, idle, growth and mixed. The exit status is 1 only if a program
failed to run.
"""
import argparse
import json
import os
import statistics
import sys
import time

sys.dont_write_bytecode = True  # no __pycache__ in the source tree

from growth import DIMENSIONS, growth
from mcp_bench import HERE, McpBench
from mcp_requests import legacy, open_stream, structured, tools_list
from measuring import Running, resident_mib
from mixed_load import resident_by_time
from report import append_targets, print_targets

LARGE = 5 << 20
IN_FLIGHT_BYTES = 3_000_000
STRUCTURED = 1 << 20
LIST_TOOLS = 500
LIST_SERVERS = 20  # with 50 tools each
MIXED_SAMPLES = 10
UPSTREAM_WINDOWS = 12
BARE = "calls/s, to the bare epoll gateway"
FAST = ("bare", "ours")  # the systems that are measured with more than 64 connections: others take minutes


def mcp_section(bench):
    for connections in bench.arguments.connections or (16, 64, 256):
        systems = bench.mcp_systems()
        section = f"MCP over HTTP, {connections} connections"
        bench.measure(section, systems, connections)
        bench.print_section(section, systems)
        for title, ours, other, bound in (
            ("JSON, to bare Beast", "ours, JSON", "bare Beast", 1.1),
            ("JSON, to bare epoll", "ours, JSON", "bare epoll", 0.75),
            ("events, to our JSON", "ours, events", "ours, JSON", 0.7),
            ("JSON, to TS SDK 2.x", "ours, JSON", "TS SDK 2.x, JSON", 10),
            ("events, to TS SDK 2.x", "ours, events", "TS SDK 2.x, events", 10),
            ("JSON with sessions, to TS SDK 1.x", "ours, JSON, session", "TS SDK 1.x, JSON", 10),
        ):
            bench.targets.add(title, bench.ratio(section, "calls_per_s", ours, other), bound, about=section)


def gateway_section(bench):
    for connections in bench.arguments.connections or (16, 64, 256):
        systems = bench.gateway_systems()
        if connections > 64:
            systems = {name: system for name, system in systems.items() if name.startswith(FAST)}
        section = f"gateways, {connections} connections"
        bench.measure(section, systems, connections)
        bench.print_section(section, systems)
        add = lambda *arguments, **options: bench.targets.add(*arguments, **options, about=section)
        for name, client, bound in (("ours", "legacy", 0.8), ("ours, modern", "modern", 0.75), ("ours, events", "events", 0.6)):
            add(f"{BARE}, {client}", bench.ratio(section, "calls_per_s", name, "bare epoll"), bound)
        if connections == 64:
            for name, client, bound in (("ours", "legacy", 9.5), ("ours, modern", "modern", 10), ("ours, events", "events", 16)):
                add(f"CPU of a call, {client}", bench.figure(section, name, "server_cpu_us"), bound, at_most=True, unit="us")
        for name in ("mcp-proxy", "supergateway"):
            if name in systems:
                add(f"calls/s, to {name}", bench.ratio(section, "calls_per_s", "ours", name), 20)
        add("resident idle", bench.figure(section, "ours", "idle_mib"), 20, at_most=True, unit="MiB")
        add("resident under load", bench.figure(section, "ours", "loaded_mib"), 50, at_most=True, unit="MiB")


def structured_section(bench):
    systems = bench.gateway_systems(json.dumps(structured(STRUCTURED), separators=(",", ":")))
    section = "gateways, 1 MiB of structured arguments, 4 connections"
    bench.measure(section, systems, 4, warm_up=20)
    bench.print_section(section, systems)
    bench.targets.add(BARE, bench.ratio(section, "calls_per_s", "ours", "bare epoll"), 0.7, about=section)


def add_throughput(bench, section, title, message_bytes, bound):
    rate, remark = bench.figure(section, "ours", "calls_per_s")
    figure = (rate * message_bytes / 1e6, "") if rate else (None, remark)
    bench.targets.add(title, figure, bound, unit="MB/s", about=section)


def large_section(bench):
    systems = bench.gateway_systems('{"bytes":%d}' % LARGE)
    section = "gateways, results of 5 MiB, 4 connections"
    bench.measure(section, systems, 4, warm_up=20)
    bench.print_section(section, systems)
    add_throughput(bench, section, "throughput", LARGE, 400)


def in_flight_section(bench):
    # The bare gateway is not measured: it writes to its child without reading, so both block forever.
    systems = {"ours": bench.gateway_systems('{"message":"%s"}' % ("x" * IN_FLIGHT_BYTES))["ours"]}
    section = "gateway, 8 calls of 3 MB in flight, echoed"
    bench.measure(section, systems, 8, warm_up=16)
    bench.print_section(section, systems)
    add_throughput(bench, section, "throughput of arguments", IN_FLIGHT_BYTES, 100)


def upstream_windows(bench, upstream, connections=16):
    """Measures calls through the gateway to an HTTP server and to the same server on stdio, in alternating windows, each on one
    gateway. Returns (calls per second, CPU time per call, resident memory) of each window. A cost that grows with every call
    shows in the last windows."""
    seconds = bench.arguments.upstream_seconds / UPSTREAM_WINDOWS
    servers = {"stdio": f'command = "{bench.machine.program("mcp_server")}"', "HTTP": f'url = "http://127.0.0.1:{upstream.port}/mcp"'}
    gateways, rows = {}, {name: [] for name in servers}
    try:
        for name, server in servers.items():
            gateways[name] = bench.start_gateway(f'[servers.e]\n{server}\nsharing = "shared"\n')
        time.sleep(0.3)  # time for the server to start
        for name in list(servers) * UPSTREAM_WINDOWS:
            figures = bench.load(gateways[name], legacy("e__echo"), connections, seconds=seconds)
            if isinstance(figures, str):
                raise OSError(f"{name}: {figures}")
            rows[name].append((figures["calls_per_s"], figures["server_cpu_us"], resident_mib(gateways[name].process.pid)))
    finally:
        for gateway in gateways.values():
            gateway.end()
    return rows


def upstream_section(bench):
    section = f"gateway to an HTTP upstream, 16 connections, {UPSTREAM_WINDOWS} windows"
    upstream = Running(bench.machine, [bench.machine.program("mcp_server"), "--http", "127.0.0.1:0"])
    try:
        rows = upstream_windows(bench, upstream)
    except OSError as error:
        return bench.fail(f"{section}: {error}")
    finally:
        upstream.end()
    print(f"\n{section}; the same server on stdio in between")
    print(f"  {'':22}{'calls/s':>10}{'CPU us':>9}{'MiB':>9}")
    for name, windows in rows.items():
        for number, (calls, cpu, mib) in enumerate(windows, 1):
            print(f"  {name + ', window ' + str(number):22}{calls:10.0f}{cpu:9.2f}{mib:9.1f}")
    add = lambda *arguments, **options: bench.targets.add(*arguments, **options, about=section)
    ratio = lambda column, windows: statistics.median(http[column] / stdio[column] for http, stdio in windows)
    windows, half = list(zip(rows["HTTP"], rows["stdio"])), UPSTREAM_WINDOWS // 2
    # Compared with stdio in the same windows, because the machine may be slower in some of them.
    add("calls/s to stdio, second half to the first", (ratio(0, windows[half:]) / ratio(0, windows[:half]), ""), 0.9)
    add("resident, last window to the second", (rows["HTTP"][-1][2] / rows["HTTP"][1][2], ""), 1.1, at_most=True)
    add("calls/s, to the stdio path", (ratio(0, windows), ""), 0.65)
    add("CPU of a call, to the stdio path", (ratio(1, windows), ""), 1.5, at_most=True)


def list_section(bench):
    """tools/list of one server, and of many. The bare gateway has one server with as many tools as all of them."""
    server = bench.machine.program("mcp_server")
    config = lambda counts: "".join(
        f'[servers.s{i}]\ncommand = "{server}"\nargs = ["{count - 1}"]\nsharing = "shared"\n' for i, count in enumerate(counts))  # fmt: skip
    ours = lambda counts: bench.start_gateway(config(counts))
    bare = lambda count: Running(bench.machine, [bench.machine.program("epoll_gateway"), server, str(count - 1)])
    systems = {
        "bare epoll, 1 server": (lambda: bare(LIST_TOOLS), tools_list()),
        "ours, 1 server": (lambda: ours([LIST_TOOLS]), tools_list()),
        "bare epoll, as many": (lambda: bare(LIST_SERVERS * 50), tools_list()),
        "ours, 20 servers": (lambda: ours([50] * LIST_SERVERS), tools_list()),
    }
    section = f"gateways, tools/list of {LIST_TOOLS} tools, and of {LIST_SERVERS} servers with 50 tools each, 16 connections"
    bench.measure(section, systems, 16, warm_up=200)
    bench.print_section(section, systems)
    for title, name, other in ((f"{LIST_TOOLS} tools of 1 server", "ours, 1 server", "bare epoll, 1 server"),
                               (f"{LIST_SERVERS * 50} tools of {LIST_SERVERS} servers", "ours, 20 servers", "bare epoll, as many")):  # fmt: skip
        bench.targets.add(f"{title}, {BARE}", bench.ratio(section, "calls_per_s", name, other), 0.9, about="tools/list")


def mixed_section(bench):
    """Measures the resident memory of our server and of a gateway under mixed load, at ten points in time. The gateway has the same
    server on stdio and over HTTP."""
    seconds = bench.arguments.mixed_seconds
    section = f"resident memory under mixed load, {seconds:.0f} s each"
    print(f"\n{section}")
    server = bench.machine.program("mcp_server")
    upstream = Running(bench.machine, [server, "--http", "127.0.0.1:0"])
    try:
        config = f'[servers.s]\ncommand = "{server}"\nsharing = "shared"\n[servers.h]\nurl = "http://127.0.0.1:{upstream.port}/mcp"\nsharing = "shared"\n'
        for name, start, tools in (
            ("mcp_server", lambda: Running(bench.machine, [server, "--http", "127.0.0.1:0"]), ("echo", "progress")),
            ("gateway", lambda: bench.start_gateway(config), ("s__echo", "h__echo", "h__progress")),
        ):
            running = start()
            try:
                time.sleep(0.5)  # time for the servers to start
                resident = lambda running=running: resident_mib(running.process.pid)
                sessions, figures = resident_by_time(running.port, tools, resident, seconds, MIXED_SAMPLES)
                print(f"  {name}: {sessions} sessions; MiB: " + " ".join(f"{mib:.1f}" for mib in figures))
                bench.targets.add(f"{name}, last sample to the third", (figures[-1] / figures[2], ""), 1.05, at_most=True, about=section)
            except OSError as error:
                bench.fail(f"{section}, {name}: {error}")
            finally:
                running.end()
    finally:
        upstream.end()


def idle_section(bench, count=10_000):
    """Opens `count` sessions with a GET stream each, and measures the resident memory of the server."""
    running = bench.mcp_systems()["ours, JSON"][0]()
    streams = []
    try:
        while len(streams) < count:
            streams.append(open_stream(running.port))
        resident = resident_mib(running.process.pid)
    finally:
        for stream in streams:
            stream.close()
        running.end()
    print("\nidle")
    bench.targets.add("10,000 idle sessions with an open stream, resident", (resident, ""), 60, at_most=True, unit="MiB")


SECTIONS = {
    "mcp": mcp_section,
    "gateway": gateway_section,
    "structured": structured_section,
    "large": large_section,
    "in_flight": in_flight_section,
    "list": list_section,
    "upstream": upstream_section,
    "idle": idle_section,
    "growth": growth,
    "mixed": mixed_section,
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("fairlead")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--upstream-seconds", type=float, default=60.0)
    parser.add_argument("--mixed-seconds", type=float, default=600.0, help="duration of the section mixed for each of its two systems")
    parser.add_argument("--only", action="append", choices=SECTIONS, metavar="SECTION")
    parser.add_argument("--growth", action="append", choices=DIMENSIONS, help="only this table of the section growth; may be repeated")
    parser.add_argument("--system", action="append", help="measure only systems whose names begin with this; may be repeated")
    parser.add_argument("--connections", action="append", type=int, help="number of connections in the sections mcp and gateway; may be repeated")
    parser.add_argument("--targets", metavar="FILE", help="append the targets to this file, for report.py")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    bench = McpBench(arguments)
    error = bench.machine.install_sdks(os.path.join(HERE, "js"))
    if error:
        print(f"the TypeScript SDKs, mcp-proxy and supergateway are not measured: {error}", file=sys.stderr)
        bench.absent = {name: error for name in ("TS SDK", "mcp-proxy", "supergateway")}
    print(f"Medians of {arguments.rounds} rounds; the systems alternate in each round; load generator on core 0, servers on core 1.")
    for name, reason in bench.foreign.missing.items():
        print(f"  {name}: {reason}")
    for name in arguments.only or SECTIONS:
        SECTIONS[name](bench)
    if bench.targets.rows:
        print_targets(bench.targets.rows)
    append_targets(arguments.targets, bench.targets.rows)
    sys.exit(1 if bench.failed else 0)


if __name__ == "__main__":
    main()
