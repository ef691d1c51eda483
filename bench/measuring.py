"""Runs the programs of the benchmark, and the servers of the official TypeScript SDKs if node is installed."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field

FOREIGN_LIMIT = 0.35  # cores used by other processes; a run above it is repeated once, and the less disturbed run counts
RUN_TIMEOUT = 90
INSTALL_TIMEOUT = 300


@dataclass(frozen=True)
class System:
    """A server that the driver or the HTTP load generator calls, or (with `client`, "peer" or "mcp") our client, which calls the C echo."""

    name: str
    command: tuple
    client: str = ""
    warm_up: int = 0  # calls before the measurement; 0: the number of the section. Set for servers that are too slow for that number


@dataclass(frozen=True)
class Section:
    """One measurement: how calls are made, and the systems that are compared."""

    name: str
    title: str
    systems: tuple
    phase: str = "pipelined"
    line_bytes: int = 200
    in_flight: int = 64
    cores: tuple = (0, 1)  # of the driver, of the server
    seconds: float = 0.6
    warm_up: int = 2000
    say: str = "legacy"  # the option --say of the driver: era and method of the requests
    http: tuple = ()  # phase http: additional options of http_load


@dataclass
class Results:
    """The figures of every system of every section, one entry per round, and the reason why a system has none."""

    rounds: dict = field(default_factory=dict)  # (section, system) -> list of dicts
    missing: dict = field(default_factory=dict)  # system or program -> reason
    single: dict = field(default_factory=dict)  # program -> the JSON object that it printed


def run_json(command):
    """Returns the JSON object that a program prints, or a string with the reason why there is none."""
    try:
        completed = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if completed.returncode != 0:
        error_lines = completed.stderr.strip().splitlines() or [f"exited with status {completed.returncode}"]
        return error_lines[-1]
    try:
        return json.loads(completed.stdout)
    except json.JSONDecodeError:
        return f"{os.path.basename(command[0])} printed no JSON"


def resident_mib(pid):
    """Returns the resident memory of a process in MiB."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024


def cpu_ticks(pid):
    """Returns the CPU time of a process in user space and in the kernel, in ticks of the system."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return int(fields[11]), int(fields[12])


class Running:
    """A measured server on core 1, and the port that it listens on."""

    def __init__(self, machine, command, port=None, environment=None):
        output = subprocess.PIPE if port is None else subprocess.DEVNULL
        self.process = subprocess.Popen(
            ["taskset", "-c", machine.core(1), *command], stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT
            if output is subprocess.PIPE else subprocess.DEVNULL, start_new_session=True, env={**os.environ, **(environment or {})},
        )  # fmt: skip
        try:
            self.port = port or self.printed_port()
            self.wait_until_listening(command[0])
        except OSError:
            self.end()
            raise

    def wait_until_listening(self, name):
        deadline = time.monotonic() + 30
        while not self.accepts_connections():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise OSError(f"{name} does not listen")
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
        if self.process.poll() is not None:
            return
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def free_port():
    """Returns a TCP port that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Machine:
    """The directories of the programs, and the cores that they run on."""

    def __init__(self, build):
        self.programs = os.path.join(build, "programs")
        self.js = os.path.join(build, "js")
        self.cores = sorted(os.sched_getaffinity(0))

    def program(self, name):
        return os.path.join(self.programs, name)

    def core(self, number):
        return str(self.cores[number % len(self.cores)])

    def measure(self, section, system, seconds):
        """Runs one system and returns its figures, or a string with the reason of a failure. A run that other processes
        disturbed is repeated once."""
        best = None
        for _ in range(2):
            figures = run_json(self.command(section, system, seconds))
            if isinstance(figures, str):
                return figures
            if best is None or figures["foreign"] < best["foreign"]:
                best = figures
            if best["foreign"] <= FOREIGN_LIMIT:
                break
        return best

    def command(self, section, system, seconds):
        if section.phase == "http":
            return self.http_command(section, system, seconds)
        return [
            self.program("peer_client" if system.client else "driver"),
            *(["--client", system.client] if system.client else ["--say", section.say]),
            "--phase", section.phase,
            "--line-bytes", str(section.line_bytes),
            "--in-flight", str(section.in_flight),
            "--seconds", str(seconds),
            "--warm-up", str(system.warm_up or section.warm_up),
            "--own-core", self.core(section.cores[0]),
            "--server-core", self.core(section.cores[1]),
            "--", *system.command,
        ]  # fmt: skip

    def http_command(self, section, system, seconds):
        return [
            self.program("http_load"),
            "--path", "/mcp",
            "--body-bytes", str(section.line_bytes),
            "--connections", str(section.in_flight),
            "--seconds", str(seconds),
            "--warm-up", str(section.warm_up),
            "--own-core", self.core(section.cores[0]),
            "--server-core", self.core(section.cores[1]),
            *section.http,
            "--", *system.command,
        ]  # fmt: skip

    def install_sdks(self, source):
        """Installs the SDKs into the build directory, never into the tree. Returns the reason of a failure, or None."""
        if not shutil.which("node"):
            return "node is not installed"
        if not shutil.which("npm"):
            return "npm is not installed"
        os.makedirs(self.js, exist_ok=True)
        required = os.path.join(source, "package.json")
        installed = os.path.join(self.js, "package.json")
        complete = os.path.join(self.js, "installed")
        outdated = not os.path.exists(complete) or open(required, "rb").read() != open(installed, "rb").read()
        for name in os.listdir(source):
            shutil.copy(os.path.join(source, name), self.js)
        if not outdated:
            return None
        command = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
        try:
            completed = subprocess.run(
                command, cwd=self.js, capture_output=True, text=True, timeout=INSTALL_TIMEOUT, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"npm install: {error}"
        if completed.returncode != 0:
            return "npm install failed; it needs network access"
        open(complete, "w", encoding="utf-8").close()
        return None
