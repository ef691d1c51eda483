#!/usr/bin/env python3
"""What the program says of itself, and to those who call it wrongly."""
import json
import unittest

import program


class Usage(program.ProgramTest):
    def test_help_goes_to_stdout(self):
        for args in (["--help"], ["-h"], ["rpc", "--help"], ["call", "--help"], ["version", "--help"]):
            result = program.run(*args)
            self.assertEqual((result.returncode, result.stderr), (0, ""), args)
            self.assertIn(b"Usage: fairlead", result.stdout, args)
        self.assertIn(b"Exit status: 0 done, 1 the other side answered with an error, 2 usage", program.run("--help").stdout)

    def test_help_names_every_option(self):
        rpc = program.run("rpc", "--help").stdout
        for option in (b"--framing", b"--listen", b"--grace", b"--log-level", b"--log-format", b"--max-frame-bytes"):
            self.assertIn(option, rpc)
        call = program.run("call", "--help").stdout
        for option in (b"TARGET", b"METHOD", b"PARAMS", b"--timeout", b"--notify", b"--framing"):
            self.assertIn(option, call)

    def test_misuse_is_status_2_and_goes_to_stderr(self):
        for args in (
            [],
            ["frobnicate"],
            ["--frobnicate"],
            ["rpc", "--frobnicate"],
            ["rpc", "surplus"],
            ["rpc", "--framing", "morse"],
            ["rpc", "--framing"],
            ["rpc", "--max-frame-bytes", "1"],
            ["rpc", "--max-frame-bytes", "2147483649"],
            ["rpc", "--max-frame-bytes", "many"],
            ["rpc", "--log-level", "loud"],
            ["rpc", "--log-format", "xml"],
            ["rpc", "--grace", "soon"],
            ["call"],
            ["call", "tcp:127.0.0.1:1"],
            ["call", "tcp:127.0.0.1:1", "m", "[]", "surplus"],
            ["version", "surplus"],
        ):
            result = program.run(*args)
            self.assert_ended(result, 2)
            self.assertNotEqual(result.stderr, "", args)

    def test_a_bad_value_in_the_environment_is_misuse_too(self):
        self.assert_ended(program.run("rpc", env={"FAIRLEAD_FRAMING": "morse"}), 2)
        self.assert_ended(program.run("rpc", env={"FAIRLEAD_LOG_LEVEL": "loud"}), 2)

    def test_version(self):
        plain = program.run("version")
        self.assertRegex(plain.stdout.decode(), r"\Afairlead \d+\.\d+\.\d+\n\Z")
        self.assertEqual((plain.returncode, plain.stderr), (0, ""))
        told = json.loads(program.run("version", "--json").stdout)
        self.assertEqual(told["name"], "fairlead")
        self.assertEqual(f"fairlead {told['version']}\n", plain.stdout.decode())
        self.assert_ended(program.run("--version"), 0, plain.stdout)


if __name__ == "__main__":
    unittest.main()
