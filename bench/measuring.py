"""Runs the programs of the benchmark, and the official SDKs' servers where node is there."""
import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field

FOREIGN_LIMIT = 0.35  # cores used by others; above it a run is repeated once and the quieter one kept
RUN_TIMEOUT = 90
INSTALL_TIMEOUT = 300


@dataclass(frozen=True)
class System:
    """A server behind the driver or the HTTP load generator, or (with `client`) our client before the C echo."""

    name: str
    command: tuple
    client: bool = False
    warm_up: int = 0  # calls, where the section's are too many for a slow server


@dataclass(frozen=True)
class Section:
    """One measurement: a way of calling, and the systems that go through it side by side."""

    name: str
    title: str
    systems: tuple
    phase: str = "pipelined"
    line_bytes: int = 200
    in_flight: int = 64
    cores: tuple = (0, 1)  # the driver's, the server's
    seconds: float = 0.6
    warm_up: int = 2000
    say: str = "legacy"  # what the driver says; its --say
    http: tuple = ()  # phase http: more options for http_load


@dataclass
class Results:
    """What every system of every section gave, one entry a round, and why something gave nothing."""

    rounds: dict = field(default_factory=dict)  # (section, system) -> list of dicts
    missing: dict = field(default_factory=dict)  # system or program -> reason
    single: dict = field(default_factory=dict)  # program -> its one JSON object


def run_json(command):
    """The JSON object a program prints, or a string that says why there is none."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return str(problem)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"]
        return last[-1]
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        return f"{os.path.basename(command[0])} printed no JSON"


class Machine:
    """Where the programs are, and on which cores they run."""

    def __init__(self, build):
        self.programs = os.path.join(build, "programs")
        self.js = os.path.join(build, "js")
        self.cores = sorted(os.sched_getaffinity(0))

    def program(self, name):
        return os.path.join(self.programs, name)

    def core(self, number):
        return str(self.cores[number % len(self.cores)])

    def measure(self, section, system, seconds):
        """One run of one system. A run that others disturbed is done again, once."""
        best = None
        for _ in range(2):
            got = run_json(self.command(section, system, seconds))
            if isinstance(got, str):
                return got
            if best is None or got["foreign"] < best["foreign"]:
                best = got
            if best["foreign"] <= FOREIGN_LIMIT:
                break
        return best

    def command(self, section, system, seconds):
        if section.phase == "http":
            return self.http_command(section, system, seconds)
        return [
            self.program("peer_client" if system.client else "driver"),
            *([] if system.client else ["--say", section.say]),
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
        """Installs the SDKs beside the build, never into the tree. Returns why that was not possible, or None."""
        if not shutil.which("node"):
            return "node is not installed"
        if not shutil.which("npm"):
            return "npm is not installed"
        os.makedirs(self.js, exist_ok=True)
        wanted = os.path.join(source, "package.json")
        present = os.path.join(self.js, "package.json")
        complete = os.path.join(self.js, "installed")
        fresh = not os.path.exists(complete) or open(wanted, "rb").read() != open(present, "rb").read()
        for name in os.listdir(source):
            shutil.copy(os.path.join(source, name), self.js)
        if not fresh:
            return None
        command = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
        try:
            done = subprocess.run(
                command, cwd=self.js, capture_output=True, text=True, timeout=INSTALL_TIMEOUT, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            return f"npm install: {problem}"
        if done.returncode != 0:
            return "npm install failed; it needs the network"
        open(complete, "w", encoding="utf-8").close()
        return None
