#!/usr/bin/env python3
"""Measures all systems side by side and prints one table, which README.md explains.

    run.py [--quick] [--only NAME]… [--system NAME]… [--rounds N] [--json FILE] [--targets FILE] BUILD-DIR
"""
import argparse
import dataclasses
import json
import os
import sys

sys.dont_write_bytecode = True  # no __pycache__ in the source tree

from foreign import NAMES, Foreign, selected
from measuring import FOREIGN_LIMIT, Machine, Results, Section, System, run_json
from report import Target, append_targets, figure, print_foreign_load, print_section, print_targets, quotient, ratio

HERE = os.path.dirname(os.path.abspath(__file__))
KIB = 1 << 10
HTTP_CONNECTIONS = (1, 16, 64, 256)


def sections_of(machine, foreign):
    c_echo = System("C echo", (machine.program("c_echo"),))
    asio = System("bare Asio", (machine.program("asio_echo"),))
    ours = System("ours", (machine.program("peer_server"),))
    client = System("our client", c_echo.command, client="peer")
    mcp_client = System("our MCP client", c_echo.command, client="mcp")
    v1 = System("TS SDK 1.x", ("node", os.path.join(machine.js, "ts_v1.mjs")))
    v2 = System("TS SDK 2.x", ("node", os.path.join(machine.js, "ts_v2.mjs")))
    mcp = System("our MCP", (machine.program("mcp_server"),))
    mcp500 = System("our MCP", (machine.program("mcp_server"), "500"))
    epoll = System("bare epoll", (machine.program("http_epoll"),))
    beast = System("bare Beast", (machine.program("http_beast"),))
    http = System("our HTTP", (machine.program("http_server"),))
    # The Python SDKs would need seconds for the warm-up of the others.
    stdio = {
        name: System(name, (*foreign.servers.get(name, (name,)), "stdio", "2025-11-25"), warm_up=500 if name not in ("Go SDK", "Rust SDK") else 0)
        for name in NAMES.values()
    }
    legacy_sdks = tuple(stdio.values())
    modern_sdks = tuple(system for name, system in stdio.items() if name != "Python SDK 1.x")
    v1_500 = System("TS SDK 1.x", (*v1.command, "500"))
    v2_500 = System("TS SDK 2.x", (*v2.command, "500"))
    return [
        Section(
            "sequential",
            "One call after the other, 200 bytes, driver and server each on their own core",
            (c_echo, asio, ours, client, v1, v2, *legacy_sdks),
            phase="sequential",
        ),
        Section(
            "one_core",
            "The same with both on one core: without wake-ups across cores, the cost of the instructions shows",
            (c_echo, asio, ours, client),
            phase="sequential",
            cores=(1, 1),
        ),
        Section(
            "pipelined",
            "64 calls in flight, 200 bytes ('our client' and 'our MCP client' call the C echo instead of the driver)",
            (c_echo, client, mcp_client, asio, ours, v1, v2),
            warm_up=4000,
        ),
        Section(
            "64KiB",
            "16 calls in flight, 64 KiB",
            (c_echo, asio, ours),
            line_bytes=64 * KIB,
            in_flight=16,
            warm_up=200,
        ),
        Section(
            "1MiB", "4 calls in flight, 1 MiB", (c_echo, asio, ours), line_bytes=KIB * KIB, in_flight=4, warm_up=20
        ),
        Section(
            "mcp",
            "A typed tool with validated arguments, legacy era, 64 calls in flight, 200 bytes",
            (c_echo, mcp, v1, v2, *legacy_sdks),
            warm_up=4000,
        ),
        Section(
            "mcp_1MiB",
            "A typed tool with a text of 1 MiB, legacy era, 4 calls in flight",
            (c_echo, mcp),
            line_bytes=KIB * KIB,
            in_flight=4,
            warm_up=20,
        ),
        Section(
            "mcp_modern",
            "As mcp, in the modern era: the same text, and an envelope with every request",
            (c_echo, mcp, v2, *modern_sdks),
            warm_up=4000,
            say="modern",
        ),
        Section(
            "mcp_list",
            "tools/list of 500 tools, legacy era, 16 in flight",
            (mcp500, v1_500, v2_500),
            in_flight=16,
            warm_up=100,
            say="legacy-list",
        ),
        Section(
            "mcp_list_modern",
            "tools/list of 500 tools, modern era, 16 in flight",
            (mcp500, v2_500),
            in_flight=16,
            warm_up=100,
            say="modern-list",
        ),
        *(
            Section(
                f"http_{connections}",
                f"HTTP: {connections} keep-alive connections, one POST of 200 bytes at a time on each, a constant response",
                (epoll, beast, http),
                phase="http",
                in_flight=connections,
                warm_up=4000,
            )
            for connections in HTTP_CONNECTIONS
        ),
        Section(
            "http_64KiB",
            "The same with requests of 64 KiB, 16 keep-alive connections",
            (epoll, beast, http),
            phase="http",
            line_bytes=64 * KIB,
            in_flight=16,
            warm_up=1000,
        ),
    ]


# Programs that run their own rounds and print one JSON object.
PROGRAMS = {
    "memory": ("idle_peers", []),
    "json": ("json_bench", ["--json"]),
    "spawn": ("spawn_bench", ["--json"]),
    "catalogue": ("catalogue_bench", ["--json"]),
    "search": ("search_bench", ["--json"]),
}

TARGETS = [
    Target("sequential", "sequential p50, ours to the C echo", 1.15, ratio("sequential", "p50_us", "ours", "C echo")),
    Target(
        "pipelined",
        "pipelined calls/s, ours to bare Asio",
        0.70,
        ratio("pipelined", "calls_per_s", "ours", "bare Asio"),
        at_most=False,
        unit="%",
    ),
    Target(
        "pipelined", "CPU per call, ours to the C echo", 3.5, ratio("pipelined", "server_cpu_us", "ours", "C echo")
    ),
    Target(
        "pipelined",
        "pipelined calls/s, ours to TS SDK 1.x",
        6.0,
        ratio("pipelined", "calls_per_s", "ours", "TS SDK 1.x"),
        at_most=False,
    ),
    Target(
        "pipelined",
        "our client of the C echo to the C driver",
        0.60,
        ratio("pipelined", "calls_per_s", "our client", "C echo"),
        at_most=False,
        unit="%",
    ),
    Target(
        "pipelined",
        "our MCP client of the C echo to the C driver",
        0.60,
        ratio("pipelined", "calls_per_s", "our MCP client", "C echo"),
        at_most=False,
        unit="%",
    ),
    Target(
        "64KiB",
        "64 KiB, ours to bare Asio",
        0.80,
        ratio("64KiB", "calls_per_s", "ours", "bare Asio"),
        at_most=False,
        unit="%",
    ),
    Target(
        "1MiB",
        "1 MiB, ours to bare Asio",
        0.80,
        ratio("1MiB", "calls_per_s", "ours", "bare Asio"),
        at_most=False,
        unit="%",
    ),
    Target(
        "mcp",
        "MCP calls/s, legacy, to the C echo",
        0.55,
        ratio("mcp", "calls_per_s", "our MCP", "C echo"),
        at_most=False,
        unit="%",
    ),
    Target(
        "mcp_1MiB",
        "MCP calls/s, 1 MiB, to the C echo",
        0.80,
        ratio("mcp_1MiB", "calls_per_s", "our MCP", "C echo"),
        at_most=False,
        unit="%",
    ),
    Target("mcp", "MCP CPU per call, legacy, to the C echo", 8, ratio("mcp", "server_cpu_us", "our MCP", "C echo")),
    Target(
        "mcp_modern", "MCP CPU per call, modern, to the C echo", 9, ratio("mcp_modern", "server_cpu_us", "our MCP", "C echo")
    ),
    *(
        Target(section, title, bound, ratio(section, "calls_per_s", "our MCP", sdk), at_most=False)
        for section, title, bound, sdk in (
            ("mcp", "MCP calls/s, legacy, to TS SDK 1.x", 4, "TS SDK 1.x"),
            ("mcp_modern", "MCP calls/s, modern, to TS SDK 2.x", 10, "TS SDK 2.x"),
            ("mcp_list", "tools/list of 500 tools, to TS SDK 1.x", 30, "TS SDK 1.x"),
            ("mcp_list_modern", "tools/list of 500 tools, modern, to TS SDK 2.x", 30, "TS SDK 2.x"),
        )
    ),
    Target("mcp", "start to first response, to TS SDK 1.x", 0.05, ratio("mcp", "start_ms", "our MCP", "TS SDK 1.x")),
    Target(
        "mcp_modern",
        "start to first response, modern, to TS SDK 2.x",
        0.05,
        ratio("mcp_modern", "start_ms", "our MCP", "TS SDK 2.x"),
    ),
    *(
        Target(
            f"http_{connections}",
            f"HTTP server, {connections} connections, to bare Beast",
            1.0,
            ratio(f"http_{connections}", "calls_per_s", "our HTTP", "bare Beast"),
            at_most=False,
            unit="%",
        )
        for connections in HTTP_CONNECTIONS
        if connections > 1
    ),
    Target(
        "http_64KiB",
        "HTTP server, 64 KiB, 16 connections, to bare epoll",
        0.70,
        ratio("http_64KiB", "calls_per_s", "our HTTP", "bare epoll"),
        at_most=False,
        unit="%",
    ),
    Target("memory", "heap of an idle peer", 16, figure("memory", "heap_bytes", scale=1 / KIB), unit="KiB"),
    Target("memory", "10,000 idle Unix-socket peers, resident", 200, figure("memory", "resident_mib"), unit="MiB"),
    Target(
        "json",
        "scanner, 200 bytes, to simdjson on demand",
        2.0,
        figure("json", "small call", "ratio", remark="which does not validate"),
    ),
    *(
        Target("json", f"scanner, {name}", bound, figure("json", name, "gb_per_s"), at_most=False, unit="GB/s")
        for name, bound in (("text 64 KiB", 2.5), ("text 1 MiB", 2.5), ("rows 64 KiB", 0.7))
    ),
    Target("spawn", "50 children ready, to bare posix_spawn", 1.5, figure("spawn", "small", "ratio")),
    Target("spawn", "the same in a process of 1 GiB", 1.5, figure("spawn", "with_1_gib", "ratio")),
    Target(
        "spawn",
        "1 GiB in the parent, to none",
        1.25,
        quotient("spawn", ("with_1_gib", "ours_ms"), ("small", "ours_ms"), "must not matter; 25 % is the tolerance for noise"),
    ),
    Target("catalogue", "catalogue of 100,000 tools built and listed", 1000, figure("catalogue", "all_ms"), unit="ms"),
    Target("catalogue", "change of one server of 1,000 tools", 20, figure("catalogue", "change_ms"), unit="ms"),
    Target("search", "search among 10,000 tools", 3, figure("search", "query_ms_10000"), unit="ms"),
    Target("search", "the same with every second tool hidden", 3, figure("search", "filtered_query_ms_10000"), unit="ms"),
    Target("search", "the same with all but 20 tools hidden", 3, figure("search", "few_query_ms_10000"), unit="ms"),
]


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measures all systems side by side and prints one table.")
    parser.add_argument("build", help="the build directory that contains the programs")
    parser.add_argument("--quick", action="store_true", help="three short rounds instead of seven")
    parser.add_argument("--rounds", type=int, help="number of rounds")
    parser.add_argument("--only", action="append", help="measure only this section or program; may be repeated")
    parser.add_argument("--system", action="append", help="measure only systems whose names begin with this; may be repeated")
    parser.add_argument("--json", metavar="FILE", help="also write all figures of all rounds to this file")
    parser.add_argument("--targets", metavar="FILE", help="append the targets to this file, for report.py")
    return parser.parse_args()


def select_systems(section, prefixes):
    """Returns the section with the systems to measure: all, or those whose names begin with one of the prefixes."""
    systems = tuple(system for system in section.systems if not prefixes or system.name.startswith(tuple(prefixes)))
    return dataclasses.replace(section, systems=systems)


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def measure_rounds(machine, sections, results, rounds, quick):
    for number in range(rounds):
        for section in sections:
            present = [system for system in section.systems if system.name not in results.missing]
            shift = number % len(present)  # so that no system is always the first
            for system in present[shift:] + present[:shift]:
                progress(f"round {number + 1} of {rounds}: {section.name}, {system.name}")
                figures = machine.measure(section, system, section.seconds / 3 if quick else section.seconds)
                if isinstance(figures, str):
                    print(f"{section.name}, {system.name}: {figures}", file=sys.stderr)
                    figures = None
                results.rounds.setdefault((section.name, system.name), []).append(figures)
    progress("")


def run_programs(machine, wanted, results):
    for name, (program, options) in PROGRAMS.items():
        if name not in wanted:
            continue
        if not os.path.exists(machine.program(program)):
            results.missing[name] = f"{program} was not built"
            continue
        progress(program)
        output = run_json([machine.program(program), *options])
        if isinstance(output, str):
            results.missing[name] = output
        else:
            results.single[name] = output
    progress("")


def write_json(path, results, rows):
    rounds = {}
    for (section, system), values in results.rounds.items():
        rounds.setdefault(section, {})[system] = values
    report = {"rounds": rounds, "programs": results.single, "missing": results.missing, "targets": rows}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)


def main():
    arguments = parse_arguments()
    machine = Machine(arguments.build)
    # The SDKs are installed only if one of their sections is measured.
    sdks_wanted = not arguments.only or {"sequential", "mcp", "mcp_modern"} & set(arguments.only)
    foreign = Foreign(arguments.build, wanted=sdks_wanted and selected(arguments.system))
    all_sections = sections_of(machine, foreign)
    names = [section.name for section in all_sections] + list(PROGRAMS)
    wanted = arguments.only or names
    for name in wanted:
        if name not in names:
            sys.exit(f"run.py: unknown section {name!r}; the sections are {', '.join(names)}")
    sections = [select_systems(section, arguments.system) for section in all_sections if section.name in wanted]
    rounds = arguments.rounds or (3 if arguments.quick else 7)

    results = Results()
    results.missing |= foreign.missing
    if any("TS SDK" in system.name for section in sections for system in section.systems):
        error = machine.install_sdks(os.path.join(HERE, "js"))
        if error:
            results.missing |= {"TS SDK 1.x": error, "TS SDK 2.x": error}
    measure_rounds(machine, sections, results, rounds, arguments.quick)
    run_programs(machine, wanted, results)

    print(f"Medians of {rounds} rounds; the systems alternate in each round; cores {machine.core(0)} and {machine.core(1)}.")
    print(f"'foreign' is the number of cores that other processes used. Above {FOREIGN_LIMIT}, calls/s are unreliable.")
    for section in sections:
        print_section(results, section)
    rows = [target.row(results) for target in TARGETS if target.section in wanted]
    print_targets(rows)
    append_targets(arguments.targets, rows)
    print_foreign_load(results, FOREIGN_LIMIT)
    if arguments.json:
        write_json(arguments.json, results, rows)
    failed = any(figures is None for values in results.rounds.values() for figures in values)
    sys.exit(1 if failed else 0)


main()
