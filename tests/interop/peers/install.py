"""Installs the peers, in the versions of versions.json, in the build directory, unless they are already installed.

An installation is a member of versions.json, named after its toolchain; several peers may share one. It ends in one of three ways:
installed; absent (no toolchain, or no registry: its peers are not tried); broken (both are there, and yet it cannot be installed or
built: the tests of its peers fail). The outcome is kept in ROOT/NAME/outcome.json, which programs() reads.
"""
import concurrent.futures
import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
VERSIONS = json.loads((HERE.parent / "versions.json").read_text())
INSTALL_SECONDS = 1200  # the timeout of a command; long enough for a slow machine
PROBE_SECONDS = 60

# The environment of the programs. Python stores compiled modules in the installation at the first start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


class Absent(Exception):
    """The toolchain or its registry is not available. The message names it."""


class Broken(Exception):
    """The installation failed although the toolchain and its registry are available. The message has the error."""


def last_line(output):
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it said nothing"


def cause(output):
    """Returns the first line that begins with "error", or else the last line."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    return next((line.strip()[:300] for line in plain.splitlines() if re.match(r"\W*error\b", line, re.IGNORECASE)), last_line(plain))


def execute(command, cwd=None, environment=None, seconds=INSTALL_SECONDS):
    """Runs a command. Returns (success, output)."""
    process = subprocess.Popen(command, cwd=cwd, env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)  # fmt: skip
    try:
        output, _ = process.communicate(timeout=seconds)
        return process.returncode == 0, output
    except subprocess.TimeoutExpired:
        return False, f"not finished in {seconds} s"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with all processes that it has started
        process.wait()


def build(command, what, cwd=None, environment=None, registry_answers=lambda: True):
    """Runs a command of a toolchain. If it fails, raises Broken if the registry responds or is not needed, otherwise Absent."""
    succeeded, output = execute(command, cwd, environment)
    if succeeded:
        return
    print(output)
    if registry_answers():
        raise Broken(f"{what} failed: {cause(output)}")
    raise Absent(f"the registry of {what} is out of reach: {cause(output)}")


# ---- toolchains ----


@dataclasses.dataclass(frozen=True)
class Toolchain:
    """The programs of a toolchain. The first prints its version, which must be at least `least`."""

    programs: tuple
    version: str  # the argument that makes the first program print its version
    least: tuple


# `least` is the version that the pinned SDKs require.
TOOLCHAINS = {
    "python": Toolchain(("python3",), "--version", (3, 10)),
    "go": Toolchain(("go",), "version", (1, 25)),
    "rust": Toolchain(("cargo", "rustc"), "--version", (1, 88)),
    "java": Toolchain(("javac", "java", "mvn"), "-version", (17, 0)),
}


def needed(program):
    found = shutil.which(program)
    if not found:
        raise Absent(f"{program} is not installed")
    return found


def toolchain(name):
    """Returns the paths of the toolchain's programs. Raises Absent if one is missing, does not run, or is too old."""
    wanted = TOOLCHAINS[name]
    paths = [needed(program) for program in wanted.programs]
    runs, output = execute([paths[0], wanted.version], seconds=PROBE_SECONDS)
    found = re.search(r"(\d+)\.(\d+)", output)
    if not runs or not found:
        raise Absent(f"{wanted.programs[0]} does not run: {last_line(output)}")
    version = tuple(map(int, found.groups()))
    if version < wanted.least:
        raise Absent(f"{wanted.programs[0]} {found[0]} is too old: {'.'.join(map(str, wanted.least))} is needed")
    return paths


# ---- one function for each toolchain: installs `packages` into `directory` ----


def python(directory, packages, _):
    """Creates a virtual environment with the packages."""
    (python3,) = toolchain("python")
    if not execute([python3, "-c", "import ensurepip, venv"], seconds=PROBE_SECONDS)[0]:
        raise Absent("python3 has no venv module")
    shutil.rmtree(directory / "venv", ignore_errors=True)
    build([python3, "-m", "venv", directory / "venv"], "python3 -m venv")
    pip = [directory / "venv" / "bin" / "python", "-m", "pip", "--retries", "1", "--timeout", "60"]
    wanted = [f"{package}=={version}" for package, version in packages.items()]
    # Modules are compiled when they are first used; see python_command().
    build([*pip, "install", "--quiet", "--no-compile", *wanted], "pip install",
          registry_answers=lambda: execute([*pip, "index", "versions", next(iter(packages))], seconds=PROBE_SECONDS)[0])  # fmt: skip


def copied(language, directory):
    """Makes a new copy of the peer programs in this language."""
    sources = directory / "source"
    shutil.rmtree(sources, ignore_errors=True)
    shutil.copytree(HERE / language, sources)
    return sources


def go(directory, packages, _):
    """The program `peer`."""
    (command,) = toolchain("go")
    sources = copied("go", directory)
    required = "".join(f"\t{module} {version}\n" for module, version in packages.items())
    least = ".".join(map(str, TOOLCHAINS["go"].least))
    (sources / "go.mod").write_text(f"module peer\n\ngo {least}\n\nrequire (\n{required})\n")
    environment = {"GOMODCACHE": str(directory / "modules"), "GOFLAGS": "-mod=mod -modcacherw", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    probe = [command, "list", "-m", "-versions", f"{next(iter(packages))}@latest"]
    # Without debug symbols the build takes an eighth less time.
    build([command, "build", "-ldflags=-s -w", "-gcflags=all=-dwarf=false", "-o", directory / "peer", "."], "go build", sources, environment,
          lambda: execute(probe, sources, environment, PROBE_SECONDS)[0])  # fmt: skip


# Without default features if the programs do not use them, to save build time.
CRATE_OPTIONS = {
    "rmcp": ', default-features = false, features = ["client", "server", "elicitation", "transport-io", "transport-child-process", '
            '"transport-streamable-http-client-reqwest", "transport-streamable-http-server"]',
    "axum": ', default-features = false, features = ["http1", "tokio"]',
    "futures": ', default-features = false, features = ["std"]',
    "tokio": ', features = ["rt-multi-thread", "macros", "io-std", "process", "net", "sync", "time"]',
}  # fmt: skip


def rust(directory, packages, release):
    """The program `peer`, in target/debug or target/release. The registry's cache is Cargo's own."""
    command, _ = toolchain("rust")
    sources = copied("rust", directory)
    crates = "".join(f'{crate} = {{ version = "={version}"{CRATE_OPTIONS.get(crate, "")} }}\n' for crate, version in packages.items())
    package = '[package]\nname = "peer"\nversion = "0.0.0"\nedition = "2024"\n\n[workspace]\n'
    profile = "[profile.dev]\ndebug = false\nincremental = false\n"
    (sources / "Cargo.toml").write_text(f"{package}\n{profile}\n[dependencies]\n{crates}")
    environment = {"CARGO_TARGET_DIR": str(directory / "target"), "CARGO_BUILD_JOBS": "2"}
    build([command, "build", "--quiet", *(["--release"] if release else [])], "cargo build", sources, environment,
          lambda: execute([command, "info", "--registry", "crates-io", next(iter(packages))], directory, None, PROBE_SECONDS)[0])  # fmt: skip


POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>{body}
  <groupId>peer</groupId><artifactId>peer</artifactId><version>0</version><packaging>pom</packaging>
</project>
"""


def coordinates(package, version):
    group, artifact = package.split(":")
    return f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"


def maven_answers(mvn, group):
    """Returns whether Maven finds a version of the group's bill of materials, with an empty local repository."""
    with tempfile.TemporaryDirectory() as scratch:
        parent = f"\n  <parent>{coordinates(f'{group}:mcp-bom', '[0,1000)')}<relativePath/></parent>"
        pom = pathlib.Path(scratch) / "pom.xml"
        pom.write_text(POM.format(body=parent))
        return execute([mvn, "-B", "-q", f"-Dmaven.repo.local={scratch}/repository", "validate"], scratch, None, PROBE_SECONDS)[0]


def java(directory, packages, _):
    """The archives in jars, and our classes in classes."""
    javac, _, mvn = toolchain("java")
    sources = copied("java", directory)
    dependencies = "".join(f"\n    <dependency>{coordinates(*package)}</dependency>" for package in packages.items())
    (sources / "pom.xml").write_text(POM.format(body=f"\n  <dependencies>{dependencies}\n  </dependencies>"))
    for part in ("jars", "classes"):
        shutil.rmtree(directory / part, ignore_errors=True)
    build([mvn, "-B", "-q", "-U", f"-Dmaven.repo.local={directory}/repository", "dependency:copy-dependencies", f"-DoutputDirectory={directory}/jars"],
          "mvn dependency:copy-dependencies", sources, None, lambda: maven_answers(mvn, next(iter(packages)).split(":")[0]))  # fmt: skip
    build([javac, "-nowarn", "-d", directory / "classes", "-cp", f"{directory}/jars/*", *sorted(sources.glob("*.java"))], "javac")


INSTALL = {"python": python, "go": go, "rust": rust, "java": java}


# ---- installations ----


def toolchain_of(name):
    return name.split("-")[0]


def stamp_of(name, release):
    """Returns the inputs of an installation, which is repeated when they change. Python programs run from the source tree."""
    language = toolchain_of(name)
    files = sorted((HERE / language).rglob("*")) if language != "python" else []
    sources = {str(file.relative_to(HERE)): file.read_text() for file in files if file.is_file()}
    return {"packages": VERSIONS[name], "sources": sources, **({"release": True} if release and language == "rust" else {})}


def install(name, root, release=False):
    """Installs if necessary. Stores and returns the outcome: a key of {"installed", "absent", "broken"} with the stamp or the reason."""
    directory = root / name
    directory.mkdir(parents=True, exist_ok=True)
    outcome = directory / "outcome.json"
    installed = {"installed": stamp_of(name, release)}
    with open(directory / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if outcome.exists() and json.loads(outcome.read_text()) == installed:
            return installed
        outcome.unlink(missing_ok=True)
        try:
            INSTALL[toolchain_of(name)](directory, VERSIONS[name], release)
            result = installed
        except Absent as reason:
            result = {"absent": str(reason)}
        except Broken as reason:
            result = {"broken": str(reason)}
        outcome.write_text(json.dumps(result, indent=1))
        return result


def install_all(root, names=tuple(VERSIONS)):
    """Installs all at the same time, and prints a line for each."""

    def timed(name):
        began = time.monotonic()
        (how, reason), = install(name, root).items()
        print(f"{name}: {how}, {time.monotonic() - began:.0f} s{'' if how == 'installed' else f' ({reason})'}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(len(names)) as threads:
        list(threads.map(timed, names))


def directory_of(name, root, release=False):
    """Returns the directory of an installation. Raises Absent or Broken if it is not installed."""
    outcome = root / name / "outcome.json"
    result = json.loads(outcome.read_text()) if outcome.exists() else {}
    if "absent" in result:
        raise Absent(result["absent"])
    if "broken" in result:
        raise Broken(result["broken"])
    if result != {"installed": stamp_of(name, release)}:
        raise Broken(f"{name} is not installed: tests/interop/peers/run.py BUILD install")
    return root / name


# ---- commands of the installed programs ----

# Options for a fast start of the JVM: these programs run too briefly for its optimizer.
JVM = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]


def python_command(directory, script):
    """Returns the command of a script. Compiled modules are stored in the installation, not in the source tree."""
    return [str(directory / "venv" / "bin" / "python"), "-X", f"pycache_prefix={directory / 'compiled'}", str(HERE / "python" / script)]


def programs(peer, root, release=False):
    """Returns (server, client), the commands of a peer's programs without arguments. `release`: optimized, for benchmarks."""
    directory = directory_of(peer.installation, root, release)
    language = toolchain_of(peer.installation)
    if language == "python":
        return tuple(python_command(directory, f"{role}_{peer.programs}.py") for role in ("server", "client"))
    if language == "java":
        command = ["java", *([] if release else JVM), "-cp", f"{directory}/classes:{directory}/jars/*", "Peer"]
    else:
        command = [str(directory / "target" / ("release" if release else "debug") / "peer" if language == "rust" else directory / "peer")]
    return [*command, "server"], [*command, "client"]
