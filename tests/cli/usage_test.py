#!/usr/bin/env python3
"""--help, version, and usage errors."""
import json
import unittest

import program


class UsageTest(program.ProgramTest):
    def test_help_is_written_to_stdout(self):
        for args in (["--help"], ["-h"], ["rpc", "--help"], ["call", "--help"], ["version", "--help"]):
            result = program.run(*args)
            self.assertEqual((result.returncode, result.stderr), (0, ""), args)
            self.assertIn(b"Usage: fairlead", result.stdout, args)
        self.assertIn(b"Exit status: 0 success, 1 the server responded with an error, 2 usage error", program.run("--help").stdout)

    def test_help_names_every_option(self):
        rpc = program.run("rpc", "--help").stdout
        for option in (b"--framing", b"--listen", b"--grace", b"--log-level", b"--log-format", b"--max-frame-bytes"):
            self.assertIn(option, rpc)
        call = program.run("call", "--help").stdout
        for option in (b"TARGET", b"METHOD", b"PARAMS", b"--timeout", b"--notify", b"--framing"):
            self.assertIn(option, call)

    def test_usage_errors_have_status_2_and_a_message_on_stderr(self):
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
            self.assert_exited(result, 2)
            self.assertNotEqual(result.stderr, "", args)

    def test_usage_error_names_the_unknown_word_and_the_closest_known_one(self):
        for args, message, help_of in (
            ([], "a command is missing", "fairlead --help"),
            (["tool", "x"], "unknown command `tool` (did you mean `tools`?)", "fairlead --help"),
            (["frobnicate"], "unknown command `frobnicate`", "fairlead --help"),
            (["--frobnicate"], "unknown option `--frobnicate`", "fairlead --help"),
            (["serve", "--confg", "x"], "unknown option `--confg` (did you mean `--config`?)", "fairlead serve --help"),
            (["rpc", "surplus"], "unexpected argument `surplus`", "fairlead rpc --help"),
            (["call"], "TARGET is required", "fairlead call --help"),
            (["serv"], "unknown command `serv` (did you mean `serve`?)", "fairlead --help"),
            (["serv", "--listen", "x"], "unknown command `serv` (did you mean `serve`?)", "fairlead --help"),
            (["insp", "x"], "unknown command `insp` (did you mean `inspect`?)", "fairlead --help"),
            (["serv\x1b[31m"], "unknown command `serv\\x1b[31m`", "fairlead --help"),
            (["help", "serv"], "unknown command `serv` (did you mean `serve`?)", "fairlead --help"),
            (["help", "serve", "x"], "unknown command `x` of `fairlead serve`", "fairlead serve --help"),
        ):
            result = program.run(*args)
            self.assert_exited(result, 2)
            self.assertEqual(result.stderr, f"fairlead: {message}\nSee `{help_of}`.\n", args)

    def test_arguments_that_are_not_a_json_object_are_rejected_before_connecting(self):
        for arguments, message in (('{"a":1', "ARGS is not JSON: text ends too early at byte 6"), ("[1]", "ARGS is not a JSON object")):
            result = program.run("tools", "tcp:127.0.0.1:1", "add", arguments)
            self.assert_exited(result, 2)
            self.assertEqual(result.stderr, f"fairlead: invalid: {message}\n")

    def test_invalid_value_in_the_environment_is_a_usage_error(self):
        self.assert_exited(program.run("rpc", env={"FAIRLEAD_FRAMING": "morse"}), 2)
        self.assert_exited(program.run("rpc", env={"FAIRLEAD_LOG_LEVEL": "loud"}), 2)

    def test_version(self):
        plain = program.run("version")
        self.assertRegex(plain.stdout.decode(), r"\Afairlead \d+\.\d+\.\d+\n\Z")
        self.assertEqual((plain.returncode, plain.stderr), (0, ""))
        version = json.loads(program.run("version", "--json").stdout)
        self.assertEqual(version["name"], "fairlead")
        self.assertEqual(f"fairlead {version['version']}\n", plain.stdout.decode())
        self.assert_exited(program.run("--version"), 0, plain.stdout)
        self.assert_exited(program.run("-V"), 0, plain.stdout)

    def test_help_command_prints_the_same_as_the_help_option(self):
        for command in ([], ["serve"], ["tools"], ["help"]):
            self.assert_exited(program.run("help", *command), 0, program.run(*command, "--help").stdout)

    def test_target_that_is_no_address_gets_a_hint(self):
        for args, hint in (
            (["inspect", "npx", "-y", "some server", "--json"], "write it as one argument: 'stdio:npx -y some%20server'."),
            (["tools", "npx", "-y", "pkg", "name", "{}", "more"], "write it as one argument: 'stdio:npx -y pkg name {} more'."),
            (["call", "./server.py", "ping"], "write it as one argument: stdio:./server.py."),
            (["inspect", "localhost:8808"], "over HTTP, write http://localhost:8808/mcp."),
            (["inspect", "[::1]:8808/x"], "over HTTP, write http://[::1]:8808/x."),
            (["tools", "mcp.example.com/mcp"], "over HTTP, write https://mcp.example.com/mcp."),
        ):
            result = program.run(*args)
            self.assert_exited(result, 2)
            self.assertIn(hint, result.stderr, args)
        for args in (["inspect", "tcp:127.0.0.1"], ["inspect", "stdio:x", "--bogus"]):
            self.assertNotIn(", write ", program.run(*args).stderr)


if __name__ == "__main__":
    unittest.main()
