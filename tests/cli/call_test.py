#!/usr/bin/env python3
"""fairlead call: one exit status for each way it can end, the result on stdout and nothing else there."""
import array
import fcntl
import os
import socket
import termios
import threading
import time
import unittest

import program
from program import run, stdio

OURS = stdio(program.PROGRAM, "rpc", "--log-level", "warning")


class Results(program.ProgramTest):
    def test_the_result_goes_to_stdout_as_it_came(self):
        self.assert_ended(run("call", OURS, "system.ping"), 0, b'"pong"\n', "")
        params = '{"z": 9007199254740993, "a": [1.0, 1e400, "\\u00e9é"]}'
        self.assert_ended(run("call", OURS, "system.echo", params), 0, params.encode() + b"\n")

    def test_nothing_else_goes_to_stdout(self):
        result = run("call", OURS, "system.ping", "--log-level", "trace")
        self.assert_ended(result, 0, b'"pong"\n')
        self.assertNotEqual(result.stderr, "")

    def test_a_quiet_call_says_nothing_on_stderr(self):
        self.assertEqual(run("call", OURS, "system.ping").stderr, "")

    def test_the_servers_stderr_is_passed_through(self):
        server = self.script(
            "sys.stderr.write('hello from the server\\n'); sys.stderr.flush(); sys.stdin.readline()\n"
            'print(\'{"jsonrpc":"2.0","id":1,"result":0}\', flush=True); sys.stdin.read()'
        )
        self.assert_ended(run("call", server, "m"), 0, b"0\n", "hello from the server")

    def test_a_servers_stderr_is_complete_when_ours_is_read_slowly(self):
        size = 20 * 1024 * 1024
        server = self.script(
            f"sys.stdin.readline()\nsys.stderr.write(('x' * 1023 + '\\n') * {size // 1024})\nsys.stderr.flush()\n"
            'print(\'{"jsonrpc":"2.0","id":1,"result":0}\', flush=True); sys.stdin.read()'
        )
        process = program.start("call", server, "m")
        try:
            # First nobody reads at all: it waits.
            ready = fcntl.fcntl(process.stderr, fcntl.F_GETPIPE_SZ) // 2
            end = time.monotonic() + program.DEADLINE
            waiting = array.array("i", [0])
            while waiting[0] < ready and time.monotonic() < end:
                fcntl.ioctl(process.stderr, termios.FIONREAD, waiting)
            out, err = process.communicate(timeout=program.DEADLINE)
        finally:
            process.kill()
            process.wait()
        self.assertEqual((process.returncode, out, len(err)), (0, b"0\n", size))

    def test_an_answer_without_result_is_null(self):  # R1.2
        self.assert_ended(run("call", self.answering(b'{"jsonrpc":"2.0","id":1}\n'), "m"), 0, b"null\n")

    def test_a_banner_before_the_answer_is_skipped(self):  # R2.6
        answer = b'Server 1.0\n\n{"jsonrpc":"2.0","method":"hello"}\n{"jsonrpc":"2.0","id":99,"result":1}\n' + program.PONG
        self.assert_ended(run("call", self.answering(answer), "m"), 0, b'"pong"\n')

    def test_a_byte_order_mark_before_the_answer_is_dropped(self):
        self.assert_ended(run("call", self.answering(b"\xef\xbb\xbf" + program.PONG), "m"), 0, b'"pong"\n')

    def test_an_answer_that_is_cut_off_at_the_end_of_the_stream_still_counts(self):
        server = self.script(f"sys.stdin.readline(); out.write({program.PONG.rstrip()!r})")
        self.assert_ended(run("call", server, "m"), 0, b'"pong"\n')

    def test_a_result_that_cannot_be_written_is_no_success(self):
        with open("/dev/full", "wb") as full:
            result = run("call", OURS, "system.ping", stdout=full)
        self.assertEqual(result.returncode, 3)
        self.assertIn("cannot write the result to stdout", result.stderr)
        result = run("call", OURS, "system.ping", preexec_fn=lambda: os.close(1))
        self.assertEqual(result.returncode, 3)
        self.assertIn("cannot write the result to stdout", result.stderr)

    def test_it_works_without_stdin_and_stderr(self):
        def close():
            os.close(0)
            os.close(2)

        self.assert_ended(run("call", OURS, "system.ping", preexec_fn=close), 0, b'"pong"\n')


class Requests(program.ProgramTest):
    """What the other side gets to read."""

    def sent(self, *args, **how):
        to = self.path("received")
        server = self.script(
            "line = sys.stdin.buffer.readline()\n"
            f"open({to!r}, 'wb').write(line)\n"
            'print(\'{"jsonrpc":"2.0","id":1,"result":0}\', flush=True)\n'
            f"open({to!r}, 'ab').write(sys.stdin.buffer.read())\n"
        )
        result = run("call", server, *args, **how)
        with open(to, "rb") as file:
            return result, file.read()

    def test_a_request_is_exact(self):  # R1.1, R5.1
        _, line = self.sent("m", '{"b": 1,"a":2.50}')
        self.assertEqual(line, b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"b": 1,"a":2.50}}\n')

    def test_absent_params_are_left_out(self):  # R1.2
        _, line = self.sent("m")
        self.assertEqual(line, b'{"jsonrpc":"2.0","id":1,"method":"m"}\n')

    def test_params_come_from_stdin(self):
        result, line = self.sent("m", "-", input=b'[1,\n "two"]\n')
        self.assertEqual(line, b'{"jsonrpc":"2.0","id":1,"method":"m","params":[1,  "two"]}\n')
        self.assertEqual(result.returncode, 0)
        large = b'["' + b"x" * 5_000_000 + b'"]'
        _, line = self.sent("m", "-", input=large)
        self.assertEqual(line, b'{"jsonrpc":"2.0","id":1,"method":"m","params":' + large + b"}\n")

    def test_a_notification_has_no_id_and_waits_for_nothing(self):  # R1.1
        result, line = self.sent("m", "[1]", "--notify")
        self.assertEqual(line, b'{"jsonrpc":"2.0","method":"m","params":[1]}\n')
        self.assert_ended(result, 0, b"", "")
        _, line = self.sent("m", "--notify")
        self.assertEqual(line, b'{"jsonrpc":"2.0","method":"m"}\n')

    def test_a_method_is_escaped(self):
        _, line = self.sent('a"b\\c')
        self.assertEqual(line, b'{"jsonrpc":"2.0","id":1,"method":"a\\"b\\\\c"}\n')


class Framings(program.ProgramTest):
    def test_every_framing_on_every_transport(self):  # R2, R3.2
        params = '{"text": "two\\nlines", "n": [1,\n2]}'
        for framing in ("line", "length", "header"):
            expected = params.encode() + b"\n"
            if framing == "line":
                expected = b'{"text": "two\\nlines", "n": [1, 2]}\n'
            how = ["system.echo", params, "--framing", framing]
            child = stdio(program.PROGRAM, "rpc", "--framing", framing)
            self.assert_ended(run("call", child, *how), 0, expected)
            for address in ("tcp:127.0.0.1:0", "unix:" + self.path("s")):
                with program.Listening(address, "--framing", framing) as server:
                    self.assert_ended(run("call", server.address, *how), 0, expected)
                    self.assert_ended(run("call", server.address, "nope", "--framing", framing), 1)

    def test_the_framing_may_come_from_the_environment(self):
        header = {"FAIRLEAD_FRAMING": "header"}  # which the child does not inherit
        child = stdio(program.PROGRAM, "rpc", "--framing", "header")
        self.assert_ended(run("call", child, "system.ping", env=header), 0, b'"pong"\n')
        line = stdio(program.PROGRAM, "rpc", "--framing", "line")
        self.assert_ended(run("call", line, "system.ping", "--framing", "line", env=header), 0, b'"pong"\n')


class RemoteErrors(program.ProgramTest):  # status 1
    def test_an_error_is_printed_to_stderr(self):
        result = run("call", OURS, "no.such.method")
        self.assert_ended(result, 1, b"", "error -32601: Method not found: no.such.method")

    def test_its_data_is_printed_as_it_came(self):
        answer = b'{"jsonrpc":"2.0","id":1,"error":{"code":-7,"message":"no","data":{"b": 1.0,"a":[]}}}\n'
        result = run("call", self.answering(answer), "m")
        self.assert_ended(result, 1, b"", 'data: {"b": 1.0,"a":[]}')
        self.assertIn("error -7: no", result.stderr)


class Misuse(program.ProgramTest):  # status 2
    def test_params_that_are_not_json(self):
        for params in ("{", "[1,]", "nope", "'a'", '{"a":1} x'):
            self.assert_ended(run("call", OURS, "m", params), 2, b"", "PARAMS is not JSON")
        self.assert_ended(run("call", OURS, "m", "-", input=b""), 2, b"", "PARAMS is not JSON")
        self.assert_ended(run("call", OURS, "m", "-", input=b"\xff"), 2, b"", "PARAMS is not JSON")

    def test_params_that_json_rpc_does_not_allow(self):
        for params in ("1", '"x"', "null", "true"):
            self.assert_ended(run("call", OURS, "m", params), 2, b"", "neither an object nor an array")

    def test_addresses_that_are_none(self):  # R3.3
        for address in ("nonsense", "ftp://x", "tcp:localhost", "tcp::1", "tcp:h:99999", "tcp:h:http", "unix:",
                        "stdio:a%2", "http:x", "tcp:::1:80", ""):
            self.assert_ended(run("call", address, "m"), 2)

    def test_durations_that_are_none(self):
        for duration in ("", "1d", "-1", "-5ms", "nan", "inf", "1e999", "5 s", "s", "0x10", "1..5", "ms"):
            self.assert_ended(run("call", OURS, "system.ping", f"--timeout={duration}"), 2)


class Unreachable(program.ProgramTest):  # status 3
    def test_nobody_listens(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
            self.assert_ended(run("call", f"tcp:127.0.0.1:{port}", "m"), 3, b"", "Connection refused")
        self.assert_ended(run("call", "unix:" + self.path("none"), "m"), 3, b"", "No such file")
        self.assert_ended(run("call", "unix:/" + "x" * 200, "m"), 3, b"", "107 bytes")

    def test_a_program_that_cannot_be_started(self):  # R4.5
        self.assert_ended(run("call", "stdio:no-such-program-here", "m"), 3, b"", "no-such-program-here")
        with open(self.path("plain"), "w", encoding="utf-8") as file:
            file.write("not a program")
        self.assert_ended(run("call", stdio(self.path("plain")), "m"), 3, b"", "plain")

    def test_a_program_that_ends_instead_of_answering(self):  # R4.4
        server = self.script("sys.stdin.readline(); sys.stderr.write('out of coffee\\n'); sys.exit(7)")
        result = run("call", server, "m")
        self.assert_ended(result, 3, b"", "out of coffee")
        self.assertIn("7", result.stderr)
        self.assert_ended(run("call", stdio("/bin/true"), "m"), 3)
        server = self.script("sys.stdin.readline(); os.kill(os.getpid(), 9)")
        self.assert_ended(run("call", server, "m"), 3, b"", "9")

    def test_a_server_that_hangs_up(self):
        with socket.create_server(("127.0.0.1", 0)) as server:

            def hang_up():
                client, _ = server.accept()
                client.recv(1000)
                client.close()

            thread = threading.Thread(target=hang_up)
            thread.start()
            self.assert_ended(run("call", f"tcp:127.0.0.1:{server.getsockname()[1]}", "m"), 3, b"", "closed")
            thread.join()


class Timeouts(program.ProgramTest):  # status 4
    def test_a_server_that_never_answers(self):  # R5.2
        server = self.script("sys.stdin.read()")
        began = time.monotonic()
        self.assert_ended(run("call", server, "m", "--timeout", "200ms"), 4, b"", "200 ms")
        self.assertLess(time.monotonic() - began, 10)

    def test_every_way_to_say_it(self):
        server = self.script("sys.stdin.read()")
        for timeout, told in (("150ms", 150), ("0.2s", 200), ("0.2", 200), ("0.003m", 180), ("1e2ms", 100), ("0", 0)):
            self.assert_ended(run("call", server, "m", "--timeout", timeout), 4, b"", f"within {told} ms")
        for timeout in ("30s", "2m", "5", "10000ms"):
            self.assert_ended(run("call", OURS, "system.ping", "--timeout", timeout), 0, b'"pong"\n')

    def test_a_server_that_never_reads(self):  # R3.4
        server = self.script("time.sleep(20)")
        large = b'["' + b"x" * 5_000_000 + b'"]'
        for how in ([], ["--notify"]):
            began = time.monotonic()
            self.assert_ended(run("call", server, "m", "-", "--timeout", "300ms", *how, input=large), 4, b"", "300 ms")
            self.assertLess(time.monotonic() - began, 10)

    def test_a_server_that_accepts_and_is_silent(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = f"tcp:127.0.0.1:{server.getsockname()[1]}"
            self.assert_ended(run("call", address, "m", "--timeout", "200ms"), 4, b"", "200 ms")


class Violations(program.ProgramTest):  # status 5
    def test_an_answer_that_is_none(self):
        for answer in (
            b'{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"x"}}\n',
            b'{"id":1,"result":1}\n',
            b'{"jsonrpc":"2.0","id":1,"error":"failed"}\n',
            b'{"jsonrpc":"2.0","id":1,"result":1,"result":2}\n',
        ):
            result = run("call", self.answering(answer), "m", "--timeout", "5s")
            self.assert_ended(result, 5)
            self.assertNotEqual(result.stderr, "")

    def test_a_server_with_another_framing(self):
        server = self.script(f"out.write({program.PONG!r}); out.flush(); sys.stdin.read()")
        self.assert_ended(run("call", server, "m", "--framing", "length", "--timeout", "5s"), 5, b"", "line or header framing")
        self.assert_ended(run("call", server, "m", "--framing", "header", "--timeout", "5s"), 5, b"", "line framing")

    def test_a_frame_that_cannot_be_true(self):
        server = self.script("out.write(b'\\xff\\xff\\xff\\xff'); out.flush(); sys.stdin.read()")
        self.assert_ended(run("call", server, "m", "--framing", "length", "--timeout", "5s"), 5, b"", "cannot be true")


if __name__ == "__main__":
    unittest.main()
