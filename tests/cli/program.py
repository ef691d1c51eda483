"""Starts the program for the tests in this directory. Each of them is run as `NAME_test.py PROGRAM [TEST…]`."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else None
DEADLINE = 30  # seconds; timeout of every operation that must not hang

# The environment of the program, without the variables that configure it.
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("FAIRLEAD_")}

# Contains a directory for the state (the default database) of each process that is started.
STATE_DIRECTORIES = tempfile.TemporaryDirectory(prefix="fairlead-state-")

PING = b'{"jsonrpc":"2.0","id":1,"method":"system.ping"}\n'
PONG = b'{"jsonrpc":"2.0","id":1,"result":"pong"}\n'


def start(*args, env=None, **options):
    """Starts the program. Its streams are pipes, unless `options` of Popen say otherwise."""
    for stream in ("stdin", "stdout", "stderr"):
        options.setdefault(stream, subprocess.PIPE)
    state = tempfile.mkdtemp(dir=STATE_DIRECTORIES.name)
    return subprocess.Popen([PROGRAM, *args], env={**ENVIRONMENT, "XDG_STATE_HOME": state, **(env or {})}, **options)


def run(*args, input=b"", timeout=DEADLINE, **options):
    """Runs the program and waits for its exit. Fails if it does not exit in time."""
    process = start(*args, **options)
    try:
        out, err = process.communicate(None if options.get("stdin") is not None else input, timeout)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    return subprocess.CompletedProcess(args, process.returncode, out, (err or b"").decode(errors="replace"))


def stdio(*words):
    """Returns the address of a program with these arguments."""
    return "stdio:" + " ".join(str(word).replace("%", "%25").replace(" ", "%20") for word in words)


class RpcListener:
    """`fairlead rpc --listen …` in the background. `address` has the port that was chosen for port 0."""

    def __init__(self, address, *args, env=None, **options):
        self.process = start("rpc", "--listen", address, *args, env=env, **options)
        self.lines = []
        self.address = None
        while self.address is None:
            line = self.process.stderr.readline().decode()
            if not line:
                raise AssertionError(f"the program does not listen: {self.lines}, status {self.process.wait(DEADLINE)}")
            self.lines.append(line)
            found = re.search(r'address"?[=:]"?([^ ",]+)', line)
            self.address = found and found[1]
        self.reader = threading.Thread(target=lambda: self.lines.extend(l.decode() for l in self.process.stderr))
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            self.reader.join(DEADLINE)
            for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
                if stream:
                    stream.close()

    def host_and_port(self):
        host, port = self.address.removeprefix("tcp:").rsplit(":", 1)
        return host, int(port)


class ProgramTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.mkdtemp(prefix="fairlead-")
        self.addCleanup(shutil.rmtree, self.scratch, True)

    def path(self, name):
        return os.path.join(self.scratch, name)

    def script(self, text, name="server.py"):
        """Returns the address of a server that is a Python program with this text."""
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write("import os, sys, time\nout = sys.stdout.buffer\n" + text)
        return stdio(sys.executable, self.path(name))

    def server_responding(self, response):
        """Returns the address of a server that responds to its first line with these bytes and then waits for EOF."""
        return self.script(f"sys.stdin.readline()\nout.write({response!r})\nout.flush()\nsys.stdin.read()\n")

    def assert_exited(self, result, status, stdout=b"", stderr=None):
        """Checks the exit status, all of stdout, and that stderr contains a text."""
        self.assertEqual((result.returncode, result.stdout), (status, stdout), result.stderr)
        if stderr is not None:
            self.assertIn(stderr, result.stderr)
