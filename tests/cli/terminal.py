"""Runs the program with a pseudo-terminal as its controlling terminal and as some of its streams."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

import program


def shown(text):
    """Returns the lines that a terminal would show: `\\r`, backspace-free, with ESC[K (erase to the end of the line)."""
    lines = []
    for line in text.replace("\r\n", "\n").split("\n"):
        cells = ""
        column = 0
        for part in re.findall(r"\r|\x1b\[K|[^\r\x1b]+|\x1b", line):
            if part == "\r":
                column = 0
            elif part == "\x1b[K":
                cells = cells[:column]
            else:
                cells = cells[:column] + part + cells[column + len(part):]
                column += len(part)
        lines.append(cells)
    return lines


def frames(text):
    """Returns the contents of the progress line, in the order in which it was drawn."""
    return [part.removesuffix("\x1b[K") for part in text.split("\r") if part.endswith("\x1b[K") and part != "\x1b[K"]


class TerminalProgram:
    """The program, with `streams` (file descriptors 0 to 2) on a terminal of `columns` columns. The others are pipes."""

    def __init__(self, *args, streams=(0, 1, 2), columns=80, env=None):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        names = ("stdin", "stdout", "stderr")
        options = {name: slave if fd in streams else subprocess.PIPE for fd, name in enumerate(names)}
        self.process = program.start(
            *args, env={"TERM": "xterm", **(env or {})}, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0), **options)
        os.close(slave)
        self.output = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(program.DEADLINE)
        os.close(self.master)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()

    def _read(self, deadline):
        """Reads what there is. Returns False at the end of the output."""
        if not select.select([self.master], [], [], max(0, deadline - time.monotonic()))[0]:
            raise AssertionError(f"nothing more is written; so far: {self.output!r}")
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.output += data.decode(errors="replace")
        return bool(data)

    def read_until(self, text):
        """Reads until the raw output contains `text`."""
        deadline = time.monotonic() + program.DEADLINE
        while text not in self.output:
            if not self._read(deadline):
                raise AssertionError(f"{text!r} is not in the output: {self.output!r}")

    def read_frame(self, text):
        """Reads until a progress line that contains `text` is drawn completely. Returns that line."""
        deadline = time.monotonic() + program.DEADLINE
        while True:
            for frame in frames(self.output):
                if text in frame:
                    return frame
            if not self._read(deadline):
                raise AssertionError(f"no line has {text!r}: {self.output!r}")

    def type(self, text):
        os.write(self.master, text.encode())

    def finish(self):
        """Reads to the end and returns the exit status."""
        deadline = time.monotonic() + program.DEADLINE
        while self._read(deadline):
            pass
        return self.process.wait(program.DEADLINE)
