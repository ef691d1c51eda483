#!/usr/bin/env python3
"""The log (R6.2): only on stderr, one line per event, as text or as JSON."""
import json
import unittest

import program
from program import PING, PONG, run

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
UNKNOWN = b'{"jsonrpc":"2.0","id":"a \\"b\\"","method":"no.such"}\n'


class LogTest(program.ProgramTest):
    def events(self, *args, **options):
        result = run("rpc", "--log-format", "json", *args, **options)
        lines = result.stderr.splitlines()
        return [json.loads(line) for line in lines]

    def test_requests_are_logged_at_info(self):
        events = self.events(input=PING + UNKNOWN)
        requests = [event for event in events if event["message"] == "request"]
        ping = requests[0]
        self.assertEqual((ping["id"], ping["method"], ping["outcome"]), (1, "system.ping", "ok"))
        self.assertIsInstance(ping["duration_us"], int)
        self.assertEqual(ping["level"], "info")
        self.assertRegex(ping["time"], rf"\A{TIME}\Z")

    def test_failed_requests_are_logged_with_their_outcome(self):
        events = self.events("--log-level", "debug", input=UNKNOWN)
        requests = [event for event in events if event.get("method") == "no.such"]
        self.assertEqual(len(requests), 1, events)
        self.assertEqual(requests[0]["id"], '"a \\"b\\""')
        self.assertIn("Method not found", requests[0]["outcome"])
        self.assertIn("duration_us", requests[0])

    def test_every_json_line_is_valid_and_has_time_level_and_message(self):
        noise = b'banner "quoted" \\ back\n\x01\x02\x7f\tcontrol\n\xc3\xa9\xe2\x82\xac\n' + b"[" * 1000 + b"\n" + UNKNOWN
        answer = b'{"jsonrpc":"2.0","id":77,"result":1}\n{"jsonrpc":"2.0","error":{"code":1,"message":"a\\nb"}}\n'
        for event in self.events("--log-level", "trace", input=noise + answer + PING):
            self.assertRegex(event["time"], rf"\A{TIME}\Z")
            self.assertIn(event["level"], ("trace", "debug", "info", "warning", "error"))
            self.assertTrue(event["message"])

    def test_json_lines_are_utf8_for_any_input(self):
        process = program.start("rpc", "--log-format", "json", "--log-level", "debug")
        # Bytes that are not UTF-8, and a line whose excerpt ends within a character.
        _, err = process.communicate(b"\xff\xfe\x80\n" + b"x" * 199 + "é".encode() + b"\n", program.DEADLINE)
        for line in err.splitlines():
            json.loads(line.decode("utf-8"))

    def test_each_text_event_is_one_line_without_control_characters(self):
        result = run("rpc", "--log-level", "trace", input=b"forged\x1b[31m \r 2020-01-01 line\n" + UNKNOWN + PING)
        lines = result.stderr.splitlines()
        self.assertGreaterEqual(len(lines), 3)
        for line in lines:
            self.assertRegex(line, rf"\A{TIME} (trace|debug|info|warning|error) \S")
            self.assertNotRegex(line, r"[\x00-\x1f\x7f]")
        self.assertIn(" info request id=1 method=system.ping outcome=ok duration_us=", result.stderr)

    def test_repeated_warnings_are_collapsed_in_text_and_counted(self):
        responses = b'{"jsonrpc":"2.0","id":7,"result":1}\n' * 5
        lines = run("rpc", "--log-level", "warning", input=responses).stderr.splitlines()
        self.assertEqual(len(lines), 2, lines)
        self.assertRegex(lines[1], rf"\A{TIME} warning .* … repeated 4 times in \d+s\Z")
        self.assertEqual(lines[1].split(" ", 1)[1].split(" … ")[0], lines[0].split(" ", 1)[1])
        lines = run("rpc", "--log-level", "warning", "--log-format", "json", input=responses).stderr.splitlines()
        self.assertEqual(len(lines), 5, lines)

    def test_log_is_never_written_to_stdout(self):  # R6.2
        for level in ("trace", "debug", "info", "off"):
            for form in ("text", "json"):
                result = run("rpc", "--log-level", level, "--log-format", form, input=PING)
                self.assert_exited(result, 0, PONG)

    def test_events_below_the_level_are_not_logged(self):
        self.assertEqual(run("rpc", "--log-level", "warning", input=PING + UNKNOWN).stderr, "")
        self.assertEqual(run("rpc", "--log-level", "off", input=b'{"jsonrpc":"2.0","id":7,"result":1}\n').stderr, "")
        self.assertIn("warning", run("rpc", "--log-level", "warning", input=b'{"jsonrpc":"2.0","id":7,"result":1}\n').stderr)

    def test_flags_override_the_environment(self):
        debug = {"FAIRLEAD_LOG_LEVEL": "debug", "FAIRLEAD_LOG_FORMAT": "json"}
        self.assertIn('"method":"system.ping"', run("rpc", input=PING, env=debug).stderr)
        self.assertEqual(run("rpc", "--log-level", "off", input=PING, env=debug).stderr, "")

    def test_listening_is_logged_in_json(self):
        with program.RpcListener("tcp:127.0.0.1:0", "--log-format", "json") as server:
            event = json.loads(server.lines[0])
        self.assertEqual((event["message"], event["address"], event["framing"]), ("listening", server.address, "line"))
        self.assertEqual([json.loads(line)["message"] for line in server.lines[1:]], ["shutting down"])

    def test_requests_are_served_when_stderr_is_not_read(self):
        process = program.start("rpc", "--log-level", "debug")  # its stderr pipe becomes full
        count = 20_000
        for _ in range(count // 100):
            process.stdin.write(PING * 100)
            process.stdin.flush()
            for _ in range(100):
                self.assertEqual(process.stdout.readline(), PONG)
        process.stdin.close()
        self.assertEqual(process.wait(program.DEADLINE), 0)
        process.stdout.close()
        process.stderr.close()


if __name__ == "__main__":
    unittest.main()
