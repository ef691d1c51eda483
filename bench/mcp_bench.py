"""McpBench: the systems of mcp_http.py, and the measurement of a section."""
import os
import statistics
import sys
import tempfile
import time

from foreign import Foreign, selected
from mcp_requests import events, legacy, modern, options_of
from measuring import FOREIGN_LIMIT, Machine, Running, cpu_ticks, free_port, resident_mib, run_json
from report import TargetList, number

HERE = os.path.dirname(os.path.abspath(__file__))
UNITS = {"calls_per_s": "calls/s", "server_cpu_us": "us"}


class McpBench:
    def __init__(self, arguments):
        self.machine = Machine(arguments.build)
        self.fairlead = os.path.abspath(arguments.fairlead)
        self.arguments = arguments
        only = arguments.only or ["mcp", "gateway"]
        self.foreign = Foreign(arguments.build, wanted={"mcp", "gateway"} & set(only) and selected(arguments.system))
        self.scratch = tempfile.TemporaryDirectory(prefix="fairlead-bench-")
        self.figures = {}  # (section, system) -> list of dicts
        self.targets = TargetList()
        self.failed = False  # a program failed to run
        self.absent = {}  # beginning of the name of a system -> why it is not measured

    def fail(self, text):
        print(text, file=sys.stderr)
        self.failed = True

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
            "bare epoll": (lambda: Running(self.machine, [program("http_epoll")]), modern("echo")),
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

    def start_gateway(self, config):
        """Starts our gateway with the text of a configuration file."""
        port = free_port()
        path = self.write_file(f"gateway.{port}.toml", config)
        return Running(self.machine, [self.fairlead, "serve", "--config", path, "--log-level", "error", "--listen", f"127.0.0.1:{port}"], port)

    def start_bare_gateway(self):
        return Running(self.machine, [self.machine.program("epoll_gateway"), self.machine.program("c_echo")])

    def gateway_systems(self, arguments=None):
        """Returns gateways to the C echo. All get the same legacy call with these arguments; without arguments, our gateway is
        also measured with a modern client, and with one that accepts only an event stream."""
        child = self.machine.program("c_echo")
        tool_arguments = {"arguments": arguments} if arguments else {}
        ours = lambda: self.start_gateway(f'[servers.e]\ncommand = "{child}"\nsharing = "shared"\n')
        systems = {
            "bare epoll": (self.start_bare_gateway, legacy("echo", **tool_arguments)),
            "ours": (ours, legacy("e__echo", **tool_arguments)),
        }
        if arguments:
            return systems
        return {
            **systems,
            "ours, modern": (ours, modern("e__echo")),
            "ours, events": (ours, events("e__echo")),
            **self.other_gateways(child),
        }

    def other_gateways(self, child):
        node = lambda package: ["node", os.path.realpath(f"{self.machine.js}/node_modules/.bin/{package}")]
        fastmcp = self.foreign.python("fastmcp")

        def on_port(command_for):
            port = free_port()
            return Running(self.machine, command_for(port), port)

        proxy = lambda: on_port(lambda port: [*fastmcp, f"{HERE}/py/fastmcp_gateway.py", str(port), child])
        return {
            **({"fastmcp proxy": (proxy, legacy("echo"))} if fastmcp else {}),
            "mcp-proxy": (
                lambda: on_port(lambda port: [*node("mcp-proxy"), "--port", str(port), "--server", "stream", child]),
                legacy("echo"),
            ),
            "supergateway": (
                lambda: on_port(
                    lambda port: [*node("supergateway"), "--stdio", child, "--outputTransport", "streamableHttp",
                                  "--stateful", "--port", str(port), "--logLevel", "none"]  # fmt: skip
                ),
                legacy("echo"),
            ),
        }

    # ---- measuring ----

    def load(self, running, request, connections, warm_up=2000, path="/mcp", seconds=None, more=()):
        """Sends a request over and over. Returns the figures of http_load, or a string with the reason of a failure."""
        return run_json([
            self.machine.program("http_load"), "127.0.0.1", str(running.port), path,
            "--connections", str(connections), "--seconds", str(seconds or self.arguments.seconds), "--warm-up", str(warm_up),
            "--body-file", self.write_file("body", request[0]), "--pid", str(running.process.pid), "--own-core", self.machine.core(0),
            *options_of(request), *more,
        ])  # fmt: skip

    def quiet_load(self, *arguments, **options):
        """As load(). A run that other processes disturbed is repeated once, and the less disturbed of the two counts."""
        best = self.load(*arguments, **options)
        if not isinstance(best, str) and best["foreign"] > FOREIGN_LIMIT:
            again = self.load(*arguments, **options)
            best = again if isinstance(again, str) or again["foreign"] < best["foreign"] else best
        return best

    def measure_system(self, section, name, start, request, connections, warm_up=2000):
        try:
            running = start()
        except OSError as error:
            return self.fail(f"{section}, {name}: {error}")
        try:
            time.sleep(0.3)  # time for the servers behind a gateway to start
            idle, ticks = resident_mib(running.process.pid), cpu_ticks(running.process.pid)
            figures = self.quiet_load(running, request, connections, warm_up)
            if isinstance(figures, str):
                return self.fail(f"{section}, {name}: {figures}")
            user, kernel = (after - before for before, after in zip(ticks, cpu_ticks(running.process.pid)))
            figures |= {"kernel_percent": 100 * kernel / max(1, user + kernel), "idle_mib": idle, "loaded_mib": resident_mib(running.process.pid)}
            self.figures.setdefault((section, name), []).append(figures)
        finally:
            running.end()

    def measure(self, section, systems, connections, warm_up=2000):
        names = self.select(systems)
        for number_of_round in range(self.arguments.rounds if names else 0):
            shift = number_of_round % len(names)
            for name in names[shift:] + names[:shift]:
                slow = name.startswith(("Python", "fastmcp"))  # the full warm-up would take them a minute
                self.measure_system(section, name, *systems[name], connections, min(warm_up, 300) if slow else warm_up)

    def select(self, systems):
        """Returns the names of the systems to measure: all that are present, or those of them that begin with one of the prefixes."""
        prefixes = self.arguments.system
        present = [name for name in systems if not name.startswith(tuple(self.absent))]
        return [name for name in present if not prefixes or name.startswith(tuple(prefixes))]

    def median(self, section, name, key):
        values = [figures[key] for figures in self.figures.get((section, name), [])]
        return statistics.median(values) if values else None

    def figure(self, section, name, key):
        """Returns the median and, as remark, the spread of the rounds."""
        values = [figures[key] for figures in self.figures.get((section, name), [])]
        return (statistics.median(values), f"rounds {min(values):.2f} to {max(values):.2f}") if values else (None, "")

    def ratio(self, section, key, ours, other):
        """Returns the median of the ratios of all rounds and, as remark, the two medians and the spread."""
        pairs = zip(self.figures.get((section, ours), []), self.figures.get((section, other), []))
        values = [a[key] / b[key] for a, b in pairs]
        if not values:
            return None, next((reason for prefix, reason in self.absent.items() if other.startswith(prefix)), "")
        medians = " to ".join(number(self.median(section, name, key)) for name in (ours, other))
        return statistics.median(values), f"{medians} {UNITS[key]}; rounds {min(values):.2f} to {max(values):.2f}"

    def print_section(self, section, systems):
        print(f"\n{section}")
        print(f"  {'':22}{'calls/s':>10}{'CPU us':>9}{'kernel %':>10}{'p50 us':>10}{'p99 us':>10}{'idle MiB':>10}{'loaded':>9}{'foreign':>9}")
        for name in self.select(systems):
            row = [self.median(section, name, key) for key in
                   ("calls_per_s", "server_cpu_us", "kernel_percent", "p50_us", "p99_us", "idle_mib", "loaded_mib", "foreign")]  # fmt: skip
            if row[0] is None:
                print(f"  {name:22}{'-':>10}")
                continue
            print(f"  {name:22}{row[0]:10.0f}{row[1]:9.2f}{row[2]:10.0f}{row[3]:10.0f}{row[4]:10.0f}{row[5]:10.1f}{row[6]:9.1f}{row[7]:9.2f}")
