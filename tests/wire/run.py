#!/usr/bin/env python3
"""run.py PROGRAM SCRIPT.wire: starts `PROGRAM rpc`, plays a script against it, and compares byte for byte.
run.py --self-test PROGRAM: plays scripts that must fail.

A script, line by line:
  # …                   a comment; blank lines too
  args: WORD WORD       arguments behind `rpc` (these four before all else)
  exit: N               the exit status it must end with (default 0)
  stderr: TEXT          what stderr must contain
  deadline: SECONDS     for the whole script (default 20)
  > TEXT                sends the text and a newline          < TEXT          expects them
  >| TEXT               sends the text, escapes decoded       <| TEXT         expects that
  >length TEXT          sends it as a length frame            <length TEXT    expects one
  >header TEXT          sends it as a header frame            <header TEXT    expects one
  >repeat N TEXT        sends the text N times, escapes decoded
  signal NAME           sends a signal
  close                 closes its stdin
Escapes are those of Python (\\n \\x00 \\\\). In what is expected, … stands for anything up to the next quote.
At the end its stdin is closed, and it must end without another byte on stdout.
"""
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

HEADS = {"args": "", "exit": "0", "stderr": "", "deadline": "20"}


class Mismatch(Exception):
    pass


ANYTHING = "…".encode()


def unescaped(text):
    return ANYTHING.join(piece.encode("latin-1").decode("unicode_escape").encode("latin-1") for piece in text.split("…"))


def framed(kind, text):
    if kind == "|":
        return unescaped(text)
    payload = text.encode()
    if kind == "length":
        return len(payload).to_bytes(4, "big") + payload + b"\n"
    if kind == "header":
        return b"Content-Length: %d\r\n\r\n%s" % (len(payload), payload)
    return payload + b"\n"


def parsed(lines):
    """The heads, and the steps as (line number, verb, text)."""
    heads, steps = dict(HEADS), []
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\n")
        head = re.fullmatch(r"(args|exit|stderr|deadline): ?(.*)", line)
        step = re.fullmatch(r"([<>](?:\||length|header)?|>repeat|signal|close)(?: (.*))?", line)
        if not line or line.startswith("#"):
            continue
        if head and not steps:
            heads[head[1]] = head[2]
        elif step:
            steps.append((number, step[1], step[2] or ""))
        else:
            raise SystemExit(f"line {number} says nothing: {line}")
    return heads, steps


class Player:
    def __init__(self, program, heads):
        self.errors = tempfile.TemporaryFile()
        self.until = time.monotonic() + float(heads["deadline"])
        self.process = subprocess.Popen([program, "rpc", *heads["args"].split()], bufsize=0, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors)
        os.set_blocking(self.process.stdin.fileno(), False)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.got = b""
        self.ended = False

    def wait(self, to_write):
        """Waits until there is something to read, or room to write; reads what there is."""
        out, inp = self.process.stdout, self.process.stdin
        left = self.until - time.monotonic()
        if left <= 0:
            raise Mismatch("the deadline has passed")
        ready = select.select([] if self.ended else [out], [inp] if to_write else [], [], left)
        if ready[0]:
            self.read()
        return bool(ready[1])

    def read(self):
        piece = os.read(self.process.stdout.fileno(), 1 << 20)
        self.got += piece
        self.ended = not piece

    def send(self, data):
        """A program that has hung up need not take it: what it says and how it ends is compared all the same."""
        try:
            while data:
                if self.wait(True):
                    data = data[os.write(self.process.stdin.fileno(), data[:1 << 16]):]
        except BrokenPipeError:
            pass

    def expect(self, data):
        # What stands for anything may be of any length, so look as long as it could still match.
        pieces = [re.escape(piece) for piece in data.split(ANYTHING)]
        pattern = re.compile(b'[^"]*'.join(pieces))
        while not pattern.match(self.got):
            if self.ended or (len(pieces) == 1 and not data.startswith(self.got)) or self.whole_line_differs(data):
                raise Mismatch(f"expected {data!r}\n     got {self.got[:2000]!r}{' and its end' if self.ended else ''}")
            self.wait(False)
        self.got = self.got[pattern.match(self.got).end():]

    def whole_line_differs(self, data):
        return data.endswith(b"\n") and data.count(b"\n") == 1 and b"\n" in self.got

    def play(self, verb, text):
        if verb == "signal":
            self.process.send_signal(getattr(signal, "SIG" + text))
        elif verb == "close":
            self.process.stdin.close()
        elif verb == ">repeat":
            count, what = text.split(" ", 1)
            self.send(unescaped(what) * int(count))
        elif verb[0] == ">":
            self.send(framed(verb[1:], text))
        else:
            self.expect(framed(verb[1:], text))

    def end(self, heads):
        self.process.stdin.close()
        while not self.ended:
            left = self.until - time.monotonic()
            if left <= 0:
                raise Mismatch("it does not end")
            if select.select([self.process.stdout], [], [], left)[0]:
                self.read()
        if self.got:
            raise Mismatch(f"more than was expected: {self.got[:2000]!r}")
        status = self.process.wait(max(0.1, self.until - time.monotonic()))
        if status != int(heads["exit"]):
            raise Mismatch(f"exit status {status}, expected {heads['exit']}")
        if heads["stderr"] not in self.said():
            raise Mismatch(f"stderr does not say {heads['stderr']!r}")

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def run(program, name, lines):
    """None, or what went wrong."""
    heads, steps = parsed(lines)
    player = Player(program, heads)
    number = 0
    try:
        for number, verb, text in steps:
            player.play(verb, text)
        number = "end"
        player.end(heads)
        return None
    except (Mismatch, subprocess.TimeoutExpired) as problem:
        return f"{name}:{number}: {problem}\nstderr:\n{player.said()}"
    finally:
        player.stop()


PING = '> {"jsonrpc":"2.0","id":1,"method":"system.ping"}'
PONG = '< {"jsonrpc":"2.0","id":1,"result":"pong"}'
MUST_FAIL = {
    "another answer": [PING, PONG.replace("1", "2")],
    "one answer too many": [PING, PING, PONG],
    "an answer that never comes": ["deadline: 0.3", PING, PONG, PONG],
    "other white space": [PING, PONG.replace(":1,", ": 1,")],
    "another exit status": ["exit: 3", PING, PONG],
    "silence on stderr": ["stderr: never said", PING, PONG],
    "another byte": [PING, PONG.replace("<", "<|") + "\\r\\n"],
    "anything is not anything": [PING, PONG.replace("pong", "ping…")],
}


def self_test(program):
    wrong = [what for what, lines in MUST_FAIL.items() if run(program, what, lines) is None]
    problem = run(program, "a good script", [PING, PONG, PING, PONG.replace("pong", "…")])
    if problem:
        wrong.append(problem)
    return "these went wrong: " + ", ".join(wrong) if wrong else None


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    if sys.argv[1] == "--self-test":
        raise SystemExit(self_test(sys.argv[2]))
    with open(sys.argv[2], encoding="utf-8") as script:
        raise SystemExit(run(sys.argv[1], os.path.basename(sys.argv[2]), script))


if __name__ == "__main__":
    main()
