#!/usr/bin/env python3
"""PostgresServer: a PostgreSQL server for tests, in a temporary directory and on a Unix socket. It runs as an unprivileged user,
because PostgreSQL rejects root. Run as a program (`postgres.py COMMAND…`), it starts a server, runs the command with the address
of the database in FAIRLEAD_TEST_POSTGRESQL, and exits with the status of the command. `postgres.py --serve` is for tests in C++
(tests/support/postgres.hpp): it prints the address, and executes the commands on stdin until the end of file."""
import contextlib
import glob
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SECONDS = 60  # timeout of every command


class PostgresServer:
    """A running server with a database `fairlead`. `address` is its address for --db."""

    def __init__(self, settings=()):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[-2]))
        if not programs:
            raise AssertionError("PostgreSQL is not installed; tools/bootstrap.sh test installs it")
        self.programs = programs[-1]
        # A short path, because that of the socket is limited to 107 bytes.
        self.directory = tempfile.mkdtemp(prefix="fairlead-pg-", dir="/tmp")
        self.data = os.path.join(self.directory, "data")
        self.user = None
        if os.geteuid() == 0:
            self.user = next(entry for entry in pwd.getpwall() if entry.pw_name in ("postgres", "nobody"))
            os.chown(self.directory, self.user.pw_uid, self.user.pw_gid)
        self.process = None
        self.run("initdb", "--pgdata", self.data, "--username", "fairlead", "--auth", "trust", "--no-sync", "--encoding", "UTF8", "--locale", "C")
        with open(os.path.join(self.data, "postgresql.conf"), "a", encoding="utf-8") as file:
            file.write(f"listen_addresses = ''\nunix_socket_directories = '{self.directory}'\nmax_connections = 50\nshared_buffers = '16MB'\n")
            file.write("".join(f"{line}\n" for line in settings))
        self.start()
        self.sql("CREATE DATABASE fairlead", database="postgres")
        self.address = f"postgresql://fairlead@/fairlead?host={self.directory}"

    def options(self):
        """Returns the options of subprocess that change the user."""
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if self.user else {}

    def run(self, program, *arguments):
        result = subprocess.run([os.path.join(self.programs, program), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, cwd=self.directory, timeout=SECONDS, **self.options())  # fmt: skip
        if result.returncode != 0:
            raise AssertionError(f"{program}: {result.stdout}")
        return result.stdout

    def start(self):
        """Starts the server, and returns when it accepts connections."""
        with open(os.path.join(self.directory, "log"), "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([os.path.join(self.programs, "postgres"), "-D", self.data], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, cwd=self.directory, **self.options())  # fmt: skip
        end = time.monotonic() + SECONDS
        while subprocess.run([os.path.join(self.programs, "pg_isready"), "-q", "-h", self.directory]).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"PostgreSQL does not start: {self.log()}")
            time.sleep(0.02)

    def log(self):
        with open(os.path.join(self.directory, "log"), encoding="utf-8", errors="replace") as file:
            return file.read()[-2000:]

    def stop(self, signal_number=signal.SIGINT):
        """Stops the server. With SIGINT it ends its connections; SIGQUIT is like a crash."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal_number)
            self.process.wait(SECONDS)

    def processes(self):
        """Returns the PIDs of the server and its backends."""
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        with open(path, encoding="ascii") as file:
            return [self.process.pid, *map(int, file.read().split())]

    def suspend(self):
        """Stops all processes with SIGSTOP: connections stay open, and nothing answers."""
        for pid in self.processes():
            os.kill(pid, signal.SIGSTOP)

    def resume(self):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def sql(self, statement, database="fairlead"):
        """Executes a statement. Returns its rows as lines of columns separated by `|`."""
        return self.run("psql", "-h", self.directory, "-U", "fairlead", "-d", database, "-v", "ON_ERROR_STOP=1", "-Atqc", statement).splitlines()

    def new_database(self, name, *options):
        """Creates a database, and returns its address."""
        self.sql(f'CREATE DATABASE "{name}" {" ".join(options)}', database="postgres")
        return f"postgresql://fairlead@/{name}?host={self.directory}"

    def close(self):
        with contextlib.suppress(OSError):
            self.resume()
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.directory, True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def serve_commands(server):
    """Executes one command per line, and prints its result, or `ok`."""
    def is_running():
        return server.process.poll() is None

    commands = {"stop": server.stop, "crash": lambda: server.stop(signal.SIGQUIT), "start": lambda: is_running() or server.start(),
                "suspend": server.suspend, "resume": lambda: is_running() and server.resume(), "create": server.new_database}  # fmt: skip
    print(server.address, flush=True)
    for line in sys.stdin:
        name, *arguments = line.split()
        print(commands[name](*arguments) or "ok", flush=True)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if sys.argv[1:] == ["--serve"]:
        with PostgresServer(settings=["fsync = off"]) as server:
            serve_commands(server)
        return 0
    with PostgresServer() as server:
        return subprocess.run(sys.argv[1:], env={**os.environ, "FAIRLEAD_TEST_POSTGRESQL": server.address}).returncode


if __name__ == "__main__":
    sys.exit(main())
