#!/usr/bin/env python3
"""run.py PROGRAM SCRIPT.wire: starts `PROGRAM rpc`, runs the script, and compares the output byte for byte.
run.py --self-test PROGRAM: runs scripts that must fail.

The lines of a script:
  # …                   a comment; blank lines are ignored too
  args: WORD WORD       arguments after `rpc` (the four settings precede all steps)
  exit: N               the expected exit status (default 0)
  stderr: TEXT          text that stderr must contain
  deadline: SECONDS     the time limit of the whole script (default 20)
  > TEXT                sends the text and a newline          < TEXT          expects the text and a newline
  >| TEXT               sends the text, escapes decoded       <| TEXT         expects the text, escapes decoded
  >length TEXT          sends the text as a length frame      <length TEXT    expects a length frame
  >header TEXT          sends the text as a header frame      <header TEXT    expects a header frame
  >repeat N TEXT        sends the text N times, escapes decoded
  signal NAME           sends a signal to the program
  close                 closes the stdin of the program
Escapes are those of Python (\\n \\x00 \\\\). In expected text, … matches any text up to the next quote.
At the end of the script, stdin is closed; the program must then exit without further output on stdout.
"""
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

DEFAULT_SETTINGS = {"args": "", "exit": "0", "stderr": "", "deadline": "20"}


class Mismatch(Exception):
    pass


WILDCARD = "…".encode()


def decode_escapes(text):
    return WILDCARD.join(piece.encode("latin-1").decode("unicode_escape").encode("latin-1") for piece in text.split("…"))


def encode_frame(kind, text):
    if kind == "|":
        return decode_escapes(text)
    payload = text.encode()
    if kind == "length":
        return len(payload).to_bytes(4, "big") + payload + b"\n"
    if kind == "header":
        return b"Content-Length: %d\r\n\r\n%s" % (len(payload), payload)
    return payload + b"\n"


def parse_script(lines):
    """Returns the settings, and the steps as (line number, verb, text)."""
    settings, steps = dict(DEFAULT_SETTINGS), []
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\n")
        setting = re.fullmatch(r"(args|exit|stderr|deadline): ?(.*)", line)
        step = re.fullmatch(r"([<>](?:\||length|header)?|>repeat|signal|close)(?: (.*))?", line)
        if not line or line.startswith("#"):
            continue
        if setting and not steps:
            settings[setting[1]] = setting[2]
        elif step:
            steps.append((number, step[1], step[2] or ""))
        else:
            raise SystemExit(f"line {number} is not a setting or step: {line}")
    return settings, steps


class ScriptRunner:
    def __init__(self, program, settings):
        self.errors = tempfile.TemporaryFile()
        self.deadline = time.monotonic() + float(settings["deadline"])
        self.process = subprocess.Popen([program, "rpc", *settings["args"].split()], bufsize=0, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors)
        os.set_blocking(self.process.stdin.fileno(), False)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.received = b""
        self.ended = False

    def wait(self, to_write):
        """Waits until stdout is readable (and reads from it) or, if `to_write`, stdin is writable. Returns whether it is writable."""
        out, inp = self.process.stdout, self.process.stdin
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise Mismatch("the deadline has passed")
        ready = select.select([] if self.ended else [out], [inp] if to_write else [], [], left)
        if ready[0]:
            self.read()
        return bool(ready[1])

    def read(self):
        piece = os.read(self.process.stdout.fileno(), 1 << 20)
        self.received += piece
        self.ended = not piece

    def send(self, data):
        """Sends the data. Ignores EPIPE: the program may close stdin early; its output and exit status are still checked."""
        try:
            while data:
                if self.wait(True):
                    data = data[os.write(self.process.stdin.fileno(), data[:1 << 16]):]
        except BrokenPipeError:
            pass

    def expect(self, data):
        # A wildcard matches text of any length, so read on while the output could still match.
        pieces = [re.escape(piece) for piece in data.split(WILDCARD)]
        pattern = re.compile(b'[^"]*'.join(pieces))
        while not pattern.match(self.received):
            if self.ended or (len(pieces) == 1 and not data.startswith(self.received)) or self.whole_line_differs(data):
                raise Mismatch(f"expected {data!r}\n     got {self.received[:2000]!r}{' and EOF' if self.ended else ''}")
            self.wait(False)
        self.received = self.received[pattern.match(self.received).end():]

    def whole_line_differs(self, data):
        return data.endswith(b"\n") and data.count(b"\n") == 1 and b"\n" in self.received

    def run_step(self, verb, text):
        if verb == "signal":
            self.process.send_signal(getattr(signal, "SIG" + text))
        elif verb == "close":
            self.process.stdin.close()
        elif verb == ">repeat":
            count, piece = text.split(" ", 1)
            self.send(decode_escapes(piece) * int(count))
        elif verb[0] == ">":
            self.send(encode_frame(verb[1:], text))
        else:
            self.expect(encode_frame(verb[1:], text))

    def check_exit(self, settings):
        self.process.stdin.close()
        while not self.ended:
            left = self.deadline - time.monotonic()
            if left <= 0:
                raise Mismatch("the program did not exit before the deadline")
            if select.select([self.process.stdout], [], [], left)[0]:
                self.read()
        if self.received:
            raise Mismatch(f"unexpected output: {self.received[:2000]!r}")
        status = self.process.wait(max(0.1, self.deadline - time.monotonic()))
        if status != int(settings["exit"]):
            raise Mismatch(f"exit status {status}, expected {settings['exit']}")
        if settings["stderr"] not in self.stderr_text():
            raise Mismatch(f"stderr does not contain {settings['stderr']!r}")

    def stderr_text(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def run(program, name, lines):
    """Runs a script. Returns None, or a description of the failure."""
    settings, steps = parse_script(lines)
    runner = ScriptRunner(program, settings)
    number = 0
    try:
        for number, verb, text in steps:
            runner.run_step(verb, text)
        number = "end"
        runner.check_exit(settings)
        return None
    except (Mismatch, subprocess.TimeoutExpired) as problem:
        return f"{name}:{number}: {problem}\nstderr:\n{runner.stderr_text()}"
    finally:
        runner.stop()


PING = '> {"jsonrpc":"2.0","id":1,"method":"system.ping"}'
PONG = '< {"jsonrpc":"2.0","id":1,"result":"pong"}'
MUST_FAIL = {
    "wrong response": [PING, PONG.replace("1", "2")],
    "one response too many": [PING, PING, PONG],
    "missing response": ["deadline: 0.3", PING, PONG, PONG],
    "different white space": [PING, PONG.replace(":1,", ": 1,")],
    "wrong exit status": ["exit: 3", PING, PONG],
    "text missing on stderr": ["stderr: never written", PING, PONG],
    "additional byte": [PING, PONG.replace("<", "<|") + "\\r\\n"],
    "wildcard after wrong text": [PING, PONG.replace("pong", "ping…")],
}


def self_test(program):
    wrong = [name for name, lines in MUST_FAIL.items() if run(program, name, lines) is None]
    problem = run(program, "valid script", [PING, PONG, PING, PONG.replace("pong", "…")])
    if problem:
        wrong.append(problem)
    return "wrong outcome: " + ", ".join(wrong) if wrong else None


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    if sys.argv[1] == "--self-test":
        raise SystemExit(self_test(sys.argv[2]))
    with open(sys.argv[2], encoding="utf-8") as script:
        raise SystemExit(run(sys.argv[1], os.path.basename(sys.argv[2]), script))


if __name__ == "__main__":
    main()
