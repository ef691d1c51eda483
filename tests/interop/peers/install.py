"""Installs the peers, in the versions of versions.json, into the build folder. What has been installed is not installed again."""
import fcntl
import json
import os
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
VERSIONS = json.loads((HERE.parent / "versions.json").read_text())
INSTALL_SECONDS = 480


class Absent(Exception):
    """The toolchain or its registry is not there; the message says which."""


def last_line(output):
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it said nothing"


def build(command, what, cwd=None, environment=None):
    """Runs a command of a toolchain. Raises Absent with its last line if it fails."""
    try:
        done = subprocess.run(command, cwd=cwd, env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=INSTALL_SECONDS)  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Absent(f"{what} was not finished in {INSTALL_SECONDS} s") from None
    if done.returncode != 0:
        print(done.stdout)
        raise Absent(f"{what} failed: {last_line(done.stdout)}")


def needed(program):
    found = shutil.which(program)
    if not found:
        raise Absent(f"{program} is not installed")
    return found


class Directory:
    """Where a peer is installed. `with` holds a lock on it; `stale` says whether its stamp differs from `stamp`."""

    def __init__(self, root, name, stamp):
        self.path = root / name
        self.path.mkdir(parents=True, exist_ok=True)
        self.stamp = json.dumps(stamp, indent=1)
        self.lock = None

    def __enter__(self):
        self.lock = open(self.path / "lock", "w", encoding="utf-8")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        return self

    def __exit__(self, *_):
        self.lock.close()

    @property
    def stale(self):
        stamp = self.path / "installed.json"
        return not stamp.exists() or stamp.read_text() != self.stamp

    def done(self):
        (self.path / "installed.json").write_text(self.stamp)


def python(root, name):
    """A virtual environment with the packages; returns its interpreter."""
    packages = VERSIONS[name]
    with Directory(root, name, packages) as directory:
        interpreter = directory.path / "venv" / "bin" / "python"
        if directory.stale:
            python3 = needed("python3")
            shutil.rmtree(directory.path / "venv", ignore_errors=True)
            build([python3, "-m", "venv", directory.path / "venv"], "python3 -m venv")
            wanted = [f"{package}=={version}" for package, version in packages.items()]
            build([interpreter, "-m", "pip", "install", "--quiet", "--retries", "1", "--timeout", "60", *wanted],
                  "pip install " + " ".join(wanted))  # fmt: skip
            directory.done()
        return interpreter


def copied(language, directory):
    """A fresh copy of our programs in a language, and what they consist of, for the stamp."""
    sources = directory / "source"
    shutil.rmtree(sources, ignore_errors=True)
    shutil.copytree(HERE / language, sources)
    return sources


def sources_of(language):
    return {str(file.relative_to(HERE)): file.read_text() for file in sorted((HERE / language).rglob("*")) if file.is_file()}


def go(root, name):
    """The program `peer`, built with the modules; returns its path."""
    modules = VERSIONS[name]
    with Directory(root, name, {"modules": modules, "sources": sources_of("go")}) as directory:
        program = directory.path / "peer"
        if directory.stale:
            command = needed("go")
            sources = copied("go", directory.path)
            required = "".join(f"\t{module} {version}\n" for module, version in modules.items())
            (sources / "go.mod").write_text(f"module peer\n\ngo 1.25\n\nrequire (\n{required})\n")
            environment = {"GOMODCACHE": str(directory.path / "modules"), "GOFLAGS": "-mod=mod -modcacherw", "GOTOOLCHAIN": "local"}
            build([command, "build", "-o", program, "."], "go build", sources, environment)
            directory.done()
        return program


# Without default features where that saves the build of what the programs do not use.
CRATE_OPTIONS = {
    "rmcp": ', features = ["client", "server", "elicitation", "transport-io", "transport-child-process", '
            '"transport-streamable-http-client-reqwest", "transport-streamable-http-server"]',
    "axum": ', default-features = false, features = ["http1", "tokio"]',
    "tokio": ', features = ["rt-multi-thread", "macros", "io-std", "process", "net", "sync", "time"]',
}  # fmt: skip


def rust(root, name, release=False):
    """The program `peer`, built with the crates; returns its path. The registry's cache is Cargo's own."""
    crates = VERSIONS[name]
    with Directory(root, name, {"crates": crates, "sources": sources_of("rust"), "release": release}) as directory:
        target = directory.path / "target"
        if directory.stale:
            command = needed("cargo")
            sources = copied("rust", directory.path)
            lines = "".join(f'{crate} = {{ version = "={version}"{CRATE_OPTIONS.get(crate, "")} }}\n' for crate, version in crates.items())
            package = '[package]\nname = "peer"\nversion = "0.0.0"\nedition = "2024"\n\n[workspace]\n\n[profile.dev]\ndebug = false\n'
            (sources / "Cargo.toml").write_text(f"{package}\n[dependencies]\n{lines}")
            environment = {"CARGO_TARGET_DIR": str(target), "CARGO_BUILD_JOBS": "2"}
            build([command, "build", "--quiet", *(["--release"] if release else [])], "cargo build", sources, environment)
            directory.done()
        return target / ("release" if release else "debug") / "peer"


def programs(peer, root, release=False):
    """(server, client): the commands of a peer's two programs, without arguments. `release`: optimized, for measuring."""
    if peer.toolchain == "python":
        interpreter = python(root, peer.name)
        return tuple([str(interpreter), "-B", str(HERE / "python" / f"{role}_{peer.programs}.py")] for role in ("server", "client"))
    program = rust(root, peer.name, release) if peer.toolchain == "rust" else go(root, peer.name)
    return [str(program), "server"], [str(program), "client"]
