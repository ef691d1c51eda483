#!/usr/bin/env python3
"""Failures of writing to stdout: a full disk, a closed stream, a reader that has gone."""
import os
import signal
import unittest

import program

DEMO = program.stdio(program.PROGRAM, "demo")
COMMANDS = (
    ["version"],
    ["version", "--json"],
    ["--version"],
    ["--help"],
    ["help", "serve"],
    ["inspect", DEMO],
    ["inspect", DEMO, "--json"],
    ["tools", DEMO],
    ["tools", DEMO, "--json"],
    ["tools", DEMO, "echo", '{"message":"hello"}'],
    ["resources", DEMO],
    ["resources", DEMO, "demo://about"],
    ["prompts", DEMO, "greet", '{"name":"you"}'],
    ["call", program.stdio(program.PROGRAM, "rpc", "--log-level", "error"), "system.ping"],
)


class OutputTest(program.ProgramTest):
    def test_full_stdout_is_an_error(self):
        with open("/dev/full", "wb") as full:
            for args in COMMANDS:
                result = program.run(*args, stdout=full)
                self.assertEqual(result.returncode, 3, args)
                self.assertEqual(result.stderr.splitlines()[-1], "fairlead: i/o error: cannot write to stdout: No space left on device", args)

    def test_closed_stdout_is_an_error(self):
        for args in COMMANDS:
            result = program.run(*args, preexec_fn=lambda: os.close(1))
            self.assertEqual(result.returncode, 3, args)
            self.assertEqual(result.stderr.splitlines()[-1], "fairlead: i/o error: cannot write to stdout: it is closed", args)

    def test_end_of_the_reader_is_silent(self):
        for args in COMMANDS:
            reading, writing = os.pipe()
            os.close(reading)
            result = program.run(*args, stdout=writing)
            os.close(writing)
            self.assertIn(result.returncode, (141, -signal.SIGPIPE), args)
            self.assertEqual(result.stderr, "", args)

    def test_servers_on_stdio_fail_if_stdout_cannot_be_written(self):
        request = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
        for command in ("demo", "rpc"):
            with open("/dev/full", "wb") as full:
                result = program.run(command, stdout=full, input=request)
            self.assertEqual(result.returncode, 3, command)
            self.assertIn("No space left on device", result.stderr, command)
            result = program.run(command, preexec_fn=lambda: os.close(1), input=request)
            self.assertEqual(result.returncode, 3, command)
            self.assertIn("stdout is closed", result.stderr, command)

    def test_status_of_another_failure_is_kept(self):
        with open("/dev/full", "wb") as full:
            result = program.run("call", program.stdio(program.PROGRAM, "rpc"), "no.such", stdout=full)
        self.assertEqual(result.returncode, 1, result.stderr)

    def test_slow_reader_of_a_pipe_without_blocking_gets_everything(self):
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        text = "x" * 1_000_000
        process = program.start("tools", DEMO, "echo", "-", stdout=writing)
        os.close(writing)
        process.stdin.write(('{"message":"%s"}' % text).encode())
        process.stdin.close()
        with os.fdopen(reading, "rb") as out:
            self.assertEqual(out.read(), text.encode() + b"\n")
        self.assertEqual(process.wait(program.DEADLINE), 0)
        process.stderr.close()


if __name__ == "__main__":
    unittest.main()
