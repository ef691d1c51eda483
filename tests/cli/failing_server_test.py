#!/usr/bin/env python3
"""What a command prints when its server fails: started once, its output shown once."""
import os
import re
import shlex
import subprocess
import unittest

import program


class FailingServerTest(program.ProgramTest):
    def shell(self, text):
        """Returns the address of a shell script, which records each of its starts."""
        with open(self.path("server.sh"), "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\necho start >> {self.path('starts')}\n{text}")
        os.chmod(self.path("server.sh"), 0o755)
        return program.stdio(self.path("server.sh"), "it's", "a b", "$HOME")

    def starts(self):
        with open(self.path("starts"), encoding="utf-8") as file:
            return len(file.readlines())

    def test_server_that_fails_at_its_start_is_started_once_and_its_stderr_is_shown_once(self):
        lines = "".join(f"echo 'trace {i}' >&2\n" for i in range(40))
        for command in ("tools", "inspect"):
            address = self.shell(f"rm -f {self.path('starts')}; echo start >> {self.path('starts')}\necho 'the cause' >&2\n{lines}exit 3\n")
            result = program.run(command, address)
            self.assert_exited(result, 3)
            self.assertEqual(self.starts(), 1)
            self.assertEqual(result.stderr.count("the cause\n"), 1, result.stderr)
            self.assertEqual(result.stderr.count("trace 39"), 1, result.stderr)
            self.assertIn("\ncode: exited_in_handshake\n", result.stderr)

    def test_server_that_exits_because_of_the_probe_is_started_again(self):
        address = self.script(
            "import json\n"
            f"open({self.path('starts')!r}, 'a').write('start\\n')\n"
            "request = json.loads(sys.stdin.readline())\n"
            "if request['method'] != 'initialize': sys.exit('what is that?')\n"
            "info = {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'x', 'version': '1'}}\n"
            "print(json.dumps({'jsonrpc': '2.0', 'id': request['id'], 'result': info}), flush=True)\n"
            "sys.stdin.readline()\n"
            "request = json.loads(sys.stdin.readline())\n"
            "print(json.dumps({'jsonrpc': '2.0', 'id': request['id'], 'result': {'tools': []}}), flush=True)\n"
            "sys.stdin.read()\n"
        )
        result = program.run("tools", address)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.starts(), 2)

    def test_text_on_stdout_is_shown(self):
        result = program.run("tools", self.shell("echo 'npm ERR! code E404'\necho 'npm ERR! 404 \033[31mNot found'\nexit 1\n"))
        self.assert_exited(result, 3)
        self.assertIn("\nits stdout (not JSON-RPC):\n  npm ERR! code E404\n  npm ERR! 404 \\x1b[31mNot found\n", result.stderr)
        self.assertEqual(self.starts(), 1)

    def test_error_begins_in_column_0_after_a_partial_line(self):
        result = program.run("tools", self.shell("printf 'no newline' >&2\nexit 1\n"))
        self.assertTrue(result.stderr.startswith("no newline\nfairlead: process exited: "), result.stderr)
        self.assertEqual(result.stderr.count("no newline"), 1)

    def test_command_line_can_be_pasted_into_a_shell(self):
        result = program.run("tools", self.shell("echo arguments: \"$@\" >&2\nexit 1\n"))
        line = re.search(r"^command: (.*)$", result.stderr, re.M)[1]
        self.assertEqual(shlex.split(line), [self.path("server.sh"), "it's", "a b", "$HOME"])
        pasted = subprocess.run(["sh", "-c", line], stderr=subprocess.PIPE, check=False)
        self.assertEqual(pasted.stderr, b"arguments: it's a b $HOME\n")


if __name__ == "__main__":
    unittest.main()
