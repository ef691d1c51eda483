"""CommandTest: a test case that runs commands of the program against the gateways of the test. Terminal: a command on a terminal of
its own. Import harness first, as the other modules."""
import contextlib
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import termios
import time

from harness import ADMIN_TOKEN, DEADLINE, PROGRAM, RegistryTest


class Terminal:
    """A command on a terminal (a pseudoterminal), which is its controlling terminal."""

    def __init__(self, arguments, environment, columns=80, program=PROGRAM):
        parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.fd = parent
        self.text = ""
        self.process = subprocess.Popen(
            [program, *arguments], stdin=child, stdout=child, stderr=child, env=environment, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(child, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(child)

    def read_until(self, wanted):
        """Reads until `wanted` has been shown, or to the end if it is None."""
        end = time.monotonic() + DEADLINE
        while wanted is None or wanted not in self.text:
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f"{wanted!r} was not shown within {DEADLINE} s: {self.text!r}")
            try:
                data = os.read(self.fd, 65536)
            except OSError:  # the end of the terminal
                data = b""
            if not data:
                if wanted is None:
                    return self.text
                raise AssertionError(f"{wanted!r} was not shown: {self.text!r}")
            self.text += data.decode(errors="replace")
        return self.text

    def read_available(self):
        """Reads what has been shown. Returns all text so far."""
        while select.select([self.fd], [], [], 0)[0]:
            self.text += os.read(self.fd, 65536).decode(errors="replace")
        return self.text

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        """Waits for the end of the command. Returns its exit status."""
        self.read_until(None)
        return self.process.wait(DEADLINE)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        with contextlib.suppress(OSError):
            os.close(self.fd)


class CommandTest(RegistryTest):
    def environment(self, **more):
        """Returns the environment of commands: without any configuration of Fairlead but a state directory of this test."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRLEAD_", "XDG_"))}
        own = {"HOME": self.path("home"), "XDG_STATE_HOME": self.path("state"), "XDG_CONFIG_HOME": self.path("config")}
        return {**kept, **own, "TEST_WORD": self.word, "TMPDIR": self.scratch, **more}

    def run_command(self, *arguments, input="", **environment):
        """Runs a command without a terminal."""
        return subprocess.run(
            [PROGRAM, *arguments], input=input, capture_output=True, text=True, errors="replace", timeout=DEADLINE,
            env=self.environment(**environment), start_new_session=True,
        )  # fmt: skip

    def gateway_options(self, gateway):
        return {"FAIRLEAD_GATEWAY": f"http://127.0.0.1:{gateway.port}", "FAIRLEAD_TOKEN": gateway.token or ADMIN_TOKEN}

    def command(self, *arguments, gateway=None, input="", status=0, **environment):
        """Runs a command, checks its exit status, and returns what it printed to stdout."""
        options = self.gateway_options(gateway) if gateway else {}
        done = self.run_command(*arguments, input=input, **{**options, **environment})
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stdout}{done.stderr}")
        return done.stdout

    def error_of(self, *arguments, gateway=None, status, input="", **environment):
        """Runs a command that fails with `status`, and returns what it printed to stderr."""
        options = self.gateway_options(gateway) if gateway else {}
        done = self.run_command(*arguments, input=input, **{**options, **environment})
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stdout}{done.stderr}")
        return done.stderr

    def json_of(self, *arguments, gateway=None, **environment):
        return json.loads(self.command(*arguments, "--json", gateway=gateway, **environment))

    def on_terminal(self, *arguments, gateway=None, columns=80, **environment):
        options = self.gateway_options(gateway) if gateway else {}
        terminal = Terminal(arguments, self.environment(**{**options, **environment}), columns)
        self.addCleanup(terminal.close)
        return terminal
