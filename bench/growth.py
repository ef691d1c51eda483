"""How the cost of a call through the gateway grows: with clients, servers, tools, sessions and the size of a message. The tables of
docs/performance.md."""
import json
import statistics
import time

from call_costs import Client
from mcp_requests import legacy, open_stream, structured
from measuring import Running, resident_mib

CLIENTS = (1, 16, 64, 256, 1024)
SERVERS = (1, 10, 100, 1000)
TOOLS = (10, 100, 1000, 10_000, 100_000)
SESSIONS = (0, 100, 1000, 9900)  # with a stream each; a listener accepts 10,000 connections
SIZES = (200, 2 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20)
MOST_CLIENTS_OF_BARE = 256  # with more, the bare gateway and its child wait for each other forever: each writes, and none reads
TOOLS_OF_A_SERVER = 1000
START_TIMEOUT = 120  # seconds until all servers have listed their tools


class Table:
    """Prints the rows of one dimension. A figure that was not measured is None."""

    def __init__(self, title, columns):
        self.widths = [max(len(column), 10) + 2 for column in columns]
        print(f"\ngrowth: {title}")
        self.print_cells(columns)

    def print_cells(self, cells):
        print("  " + "".join(cell.rjust(width) for cell, width in zip(cells, self.widths)), flush=True)

    def row(self, first, *figures):
        """Prints a row. The figures are pairs of a number and its decimals."""
        self.print_cells([first, *("-" if value is None else f"{value:,.{decimals}f}" for value, decimals in figures)])


def windows(bench, loads, rounds=3):
    """Measures each (running, request, connections, options) in turn, `rounds` times. Returns the lists of their figures."""
    results = [[] for _ in loads]
    for _ in range(min(rounds, bench.arguments.rounds)):
        for (running, request, connections, options), figures in zip(loads, results):
            found = bench.quiet_load(running, request, connections, **options)
            if isinstance(found, str):
                raise OSError(found)
            figures.append(found)
    return results


def median(figures, key):
    return statistics.median(row[key] for row in figures)


class Pair:
    """Our gateway and the bare one, each with the C echo."""

    def __init__(self, bench):
        self.bench = bench
        child = bench.machine.program("c_echo")
        self.ours = bench.start_gateway(f'[servers.e]\ncommand = "{child}"\nsharing = "shared"\n')
        try:
            self.bare = bench.start_bare_gateway()
        except OSError:
            self.ours.end()
            raise
        time.sleep(0.3)  # time for the servers to start

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ours.end()
        self.bare.end()

    def measure(self, connections, arguments, warm_up=2000, with_bare=True):
        """Returns the figures of our gateway, and the ratio of the calls per second, or None without the bare one."""
        options = {"warm_up": warm_up}
        loads = [(self.ours, legacy("e__echo", *arguments), connections, options), (self.bare, legacy("echo", *arguments), connections, options)]
        results = windows(self.bench, loads if with_bare else loads[:1])
        ratio = statistics.median(ours["calls_per_s"] / bare["calls_per_s"] for ours, bare in zip(*results)) if with_bare else None
        return results[0], ratio


def clients(bench):
    table = Table("clients, each with one call of 200 B at a time", ("clients", "calls/s", "CPU us", "to bare", "p50 us", "p99 us", "MiB"))
    for count in CLIENTS:
        with Pair(bench) as pair:
            figures, ratio = pair.measure(count, (), with_bare=count <= MOST_CLIENTS_OF_BARE)
            table.row(f"{count:,}", (median(figures, "calls_per_s"), 0), (median(figures, "server_cpu_us"), 1), (ratio, 2),
                      (median(figures, "p50_us"), 0), (median(figures, "p99_us"), 0), (resident_mib(pair.ours.process.pid), 1))  # fmt: skip


def sizes(bench):
    table = Table("size of the arguments (objects, arrays, numbers) or of the result (a text); the other one is small",
                  ("bytes", "clients", "calls/s", "CPU us", "to bare", "result/s", "CPU us", "to bare", "MiB"))  # fmt: skip
    for size in SIZES:
        connections, warm_up = (16, 1000) if size < 100_000 else (4, 40)
        with Pair(bench) as pair:
            cells = []
            for arguments in (json.dumps(structured(size - 100), separators=(",", ":")), '{"bytes":%d}' % size):
                figures, ratio = pair.measure(connections, (arguments,), warm_up)
                cells += [(median(figures, "calls_per_s"), 0), (median(figures, "server_cpu_us"), 1), (ratio, 2)]
            table.row(f"{size:,}", (connections, 0), *cells, (resident_mib(pair.ours.process.pid), 1))


def wait_for_tools(gateway, count):
    """Waits until the gateway lists that many tools. Returns a client, and the times of the first page and of all pages in ms."""
    deadline = time.monotonic() + START_TIMEOUT
    client = Client(gateway.port, modern=True)
    while client.complete_list() < count:
        if time.monotonic() > deadline:
            raise OSError(f"the gateway does not list {count} tools")
        time.sleep(0.2)
    times = []
    for _ in range(3):
        start = time.monotonic()
        client.post("tools/list", {})
        first = time.monotonic() - start
        client.complete_list()
        times.append((first * 1e3, (time.monotonic() - start - first) * 1e3))
    return [statistics.median(column) for column in zip(*times)]


def servers(bench, connections=64):
    table = Table("servers on stdio, one tool each; 64 clients, client i calls server i", ("servers", "calls/s", "CPU us", "MiB"))
    child = bench.machine.program("c_echo")
    for count in SERVERS:
        config = f"[limits]\nmax_stdio_processes = {count + 10}\n"
        config += "".join(f'[servers.s{i}]\ncommand = "{child}"\nsharing = "shared"\n' for i in range(count))
        gateway = bench.start_gateway(config)
        try:
            wait_for_tools(gateway, count)
            options = {"more": ("--spread", str(count))}
            (figures,) = windows(bench, [(gateway, legacy("s@SPREAD@__echo"), connections, options)])
            table.row(f"{count:,}", (median(figures, "calls_per_s"), 0), (median(figures, "server_cpu_us"), 1),
                      (resident_mib(gateway.process.pid), 1))  # fmt: skip
        finally:
            gateway.end()


def tools(bench, connections=64):
    table = Table(f"tools, at most {TOOLS_OF_A_SERVER:,} per server; 64 clients call one of them",
                  ("tools", "calls/s", "CPU us", "page ms", "all ms", "MiB"))  # fmt: skip
    child = bench.machine.program("c_echo")
    for count in TOOLS:
        many = Running(bench.machine, [bench.machine.program("mcp_server"), "--http", "127.0.0.1:0", str(min(count, TOOLS_OF_A_SERVER) - 2)])
        gateway = None
        try:
            config = f'[servers.e]\ncommand = "{child}"\nsharing = "shared"\n'
            config += "".join(f'[servers.s{i}]\nurl = "http://127.0.0.1:{many.port}/mcp"\nsharing = "shared"\n'
                              for i in range(max(1, count // TOOLS_OF_A_SERVER)))  # fmt: skip
            gateway = bench.start_gateway(config)
            page, whole = wait_for_tools(gateway, count + 1)
            (figures,) = windows(bench, [(gateway, legacy("e__echo"), connections, {})])
            table.row(f"{count:,}", (median(figures, "calls_per_s"), 0), (median(figures, "server_cpu_us"), 1), (page, 2), (whole, 1),
                      (resident_mib(gateway.process.pid), 1))  # fmt: skip
        finally:
            if gateway:
                gateway.end()
            many.end()


def sessions(bench, connections=64):
    table = Table("idle sessions with an open stream, beside 64 clients that call", ("sessions", "calls/s", "CPU us", "MiB"))
    for count in SESSIONS:
        gateway = bench.start_gateway(f'[servers.e]\ncommand = "{bench.machine.program("c_echo")}"\nsharing = "shared"\n')
        streams = []
        try:
            while len(streams) < count:
                streams.append(open_stream(gateway.port))
            idle = resident_mib(gateway.process.pid)
            (figures,) = windows(bench, [(gateway, legacy("e__echo"), connections, {})])
            table.row(f"{count:,}", (median(figures, "calls_per_s"), 0), (median(figures, "server_cpu_us"), 1), (idle, 1))
        finally:
            for stream in streams:
                stream.close()
            gateway.end()


DIMENSIONS = {"clients": clients, "servers": servers, "tools": tools, "sessions": sessions, "size": sizes}


def growth(bench):
    for name in bench.arguments.growth or DIMENSIONS:
        try:
            DIMENSIONS[name](bench)
        except OSError as error:
            bench.fail(f"growth, {name}: {error}")
