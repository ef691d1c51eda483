#!/usr/bin/env python3
"""The line on a terminal that shows what a command waits for."""
import os
import unittest

import program
from program import run
from terminal import TerminalProgram, shown

# A server that waits until the file `go-NAME` is opened for writing before it answers `initialize` (connect) or a
# call (call). `wait` says on stderr what it waits for.
SERVER = """
import json
directory = os.path.dirname(os.path.abspath(__file__))

def wait(name):
    sys.stderr.write("waiting for \\x1b[31m" + name + " " + "x" * 200 + "\\n")
    sys.stderr.flush()
    open(directory + "/go-" + name).read()

def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method, result = request["method"], {}
    if method == "initialize":
        if os.path.exists(directory + "/go-connect"):
            wait("connect")
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "slow", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        token = request["params"]["_meta"]["progressToken"] if "_meta" in request["params"] else None
        if token is not None:
            send({"method": "notifications/progress",
                  "params": {"progressToken": token, "progress": 5, "total": 20, "message": "a \\x1b]0;title\\x07 quarter"}})
        if os.path.exists(directory + "/go-call"):
            wait("call")
        result = {"content": [{"type": "text", "text": "the result"}]}
    elif method != "ping":
        send({"id": request["id"], "error": {"code": -32601, "message": "unknown"}})
        continue
    send({"id": request["id"], "result": result})
"""


class ProgressTest(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.server = self.script(SERVER)

    def hold(self, name):
        """Makes the server wait. Returns a function that lets it continue."""
        path = self.path("go-" + name)
        os.mkfifo(path)
        return lambda: open(path, "w", encoding="utf-8").close()

    def test_start_of_server_is_shown_and_cleared_before_the_output(self):
        go_on = self.hold("connect")
        with TerminalProgram("tools", self.server) as terminal:
            line = terminal.read_frame("waiting for")
            go_on()
            self.assertEqual(terminal.finish(), 0, terminal.output)
        self.assertRegex(line, r"^starting python\S*  \d+\.\d s  waiting for \\x1b\[31mconnect x+$")
        self.assertLess(len(line), 80)
        self.assertEqual([text.rstrip() for text in shown(terminal.output) if text.strip()], ["slow"], terminal.output)

    def test_progress_of_call_is_a_bar(self):
        go_on = self.hold("call")
        with TerminalProgram("tools", self.server, "slow", columns=200) as terminal:
            line = terminal.read_frame("] ")
            go_on()
            self.assertEqual(terminal.finish(), 0, terminal.output)
        self.assertRegex(line, r"^calling slow  \d+\.\d s  \[#####-{15}\]  25 %  ")
        self.assertNotIn("\x1b]0", terminal.output)
        self.assertEqual([text for text in shown(terminal.output) if text.strip()], ["the result"], terminal.output)

    def test_quick_command_shows_no_line(self):
        with TerminalProgram("tools", self.server, "slow") as terminal:
            self.assertEqual(terminal.finish(), 0, terminal.output)
        # A busy machine may take longer than the delay after which the line appears; then it was cleared.
        self.assertEqual([text for text in shown(terminal.output) if text.strip()], ["the result"])

    def test_nothing_is_drawn_in_a_pipe_or_on_a_dumb_terminal(self):
        for options in ({"streams": (0, 1)}, {"env": {"TERM": "dumb"}}):
            with TerminalProgram("tools", self.server, "slow", **options) as terminal:
                self.assertEqual(terminal.finish(), 0, terminal.output)
            self.assertEqual(terminal.output.replace("\r\n", "\n"), "the result\n")
        self.assertNotIn("\r", run("tools", self.server, "slow").stderr)

    def test_stderr_of_server_is_printed_at_log_level_info(self):
        go_on = self.hold("call")
        with TerminalProgram("tools", self.server, "slow", "--log-level", "info", columns=300) as terminal:
            terminal.read_until("waiting for")
            go_on()
            self.assertEqual(terminal.finish(), 0, terminal.output)
        lines = shown(terminal.output)
        self.assertTrue(any(line.startswith("waiting for \\x1b[31mcall") for line in lines), lines)
        self.assertIn("the result", lines)

    def test_call_shows_its_state(self):
        server = self.script("sys.stderr.write('working\\n'); sys.stderr.flush(); sys.stdin.readline()\n"
                             f"open({self.path('go')!r}).read()\n"
                             'print(\'{"jsonrpc":"2.0","id":1,"result":7}\', flush=True); sys.stdin.read()')
        os.mkfifo(self.path("go"))
        with TerminalProgram("call", server, "some.method") as terminal:
            terminal.read_until("working")
            with open(self.path("go"), "w", encoding="utf-8"):
                pass
            self.assertEqual(terminal.finish(), 0, terminal.output)
        self.assertIn("calling some.method", terminal.output)
        self.assertEqual([line for line in shown(terminal.output) if line.strip()], ["7"])

    def test_failure_is_printed_once_after_the_line_was_cleared(self):
        server = self.script("sys.stderr.write('no key\\n'); sys.stderr.flush(); sys.exit(3)")
        with TerminalProgram("inspect", server, columns=300) as terminal:
            self.assertEqual(terminal.finish(), 3, terminal.output)
        lines = [line for line in shown(terminal.output) if line.strip()]
        self.assertEqual(sum("no key" in line for line in lines), 1, lines)
        self.assertTrue(lines[0].startswith("fairlead: "), lines)


class TimeoutTest(program.ProgramTest):
    def test_timeout_names_the_option(self):
        server = self.script("sys.stdin.read()")
        for command in (("inspect", server), ("tools", server), ("call", server, "m")):
            result = run(*command, "--timeout", "300ms")
            self.assertEqual(result.returncode, 4, result.stderr)
            self.assertIn("--timeout 600ms", result.stderr, command)


if __name__ == "__main__":
    unittest.main()
