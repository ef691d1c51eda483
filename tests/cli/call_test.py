#!/usr/bin/env python3
"""fairlead call: an exit status for each outcome, and only the result on stdout."""
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

RPC_SERVER = stdio(program.PROGRAM, "rpc", "--log-level", "warning")


class CallResultTest(program.ProgramTest):
    def test_result_is_written_to_stdout_unchanged(self):
        self.assert_exited(run("call", RPC_SERVER, "system.ping"), 0, b'"pong"\n', "")
        params = '{"z": 9007199254740993, "a": [1.0, 1e400, "\\u00e9é"]}'
        self.assert_exited(run("call", RPC_SERVER, "system.echo", params), 0, params.encode() + b"\n")

    def test_log_is_not_written_to_stdout(self):
        result = run("call", RPC_SERVER, "system.ping", "--log-level", "trace")
        self.assert_exited(result, 0, b'"pong"\n')
        self.assertNotEqual(result.stderr, "")

    def test_successful_call_writes_nothing_to_stderr(self):
        self.assertEqual(run("call", RPC_SERVER, "system.ping").stderr, "")

    def test_stderr_of_server_is_relayed(self):
        server = self.script(
            "sys.stderr.write('hello from the server\\n'); sys.stderr.flush(); sys.stdin.readline()\n"
            'print(\'{"jsonrpc":"2.0","id":1,"result":0}\', flush=True); sys.stdin.read()'
        )
        self.assert_exited(run("call", server, "m"), 0, b"0\n", "hello from the server")

    def test_stderr_of_server_is_complete_when_stderr_is_read_slowly(self):
        size = 20 * 1024 * 1024
        server = self.script(
            f"sys.stdin.readline()\nsys.stderr.write(('x' * 1023 + '\\n') * {size // 1024})\nsys.stderr.flush()\n"
            'print(\'{"jsonrpc":"2.0","id":1,"result":0}\', flush=True); sys.stdin.read()'
        )
        process = program.start("call", server, "m")
        try:
            # Until stderr is read the program waits.
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

    def test_response_without_result_is_printed_as_null(self):  # R1.2
        self.assert_exited(run("call", self.server_responding(b'{"jsonrpc":"2.0","id":1}\n'), "m"), 0, b"null\n")

    def test_banner_before_the_response_is_skipped(self):  # R2.6
        answer = b'Server 1.0\n\n{"jsonrpc":"2.0","method":"hello"}\n{"jsonrpc":"2.0","id":99,"result":1}\n' + program.PONG
        self.assert_exited(run("call", self.server_responding(answer), "m"), 0, b'"pong"\n')

    def test_byte_order_mark_before_the_response_is_ignored(self):
        self.assert_exited(run("call", self.server_responding(b"\xef\xbb\xbf" + program.PONG), "m"), 0, b'"pong"\n')

    def test_response_without_line_end_at_eof_is_accepted(self):
        server = self.script(f"sys.stdin.readline(); out.write({program.PONG.rstrip()!r})")
        self.assert_exited(run("call", server, "m"), 0, b'"pong"\n')

    def test_status_is_3_when_the_result_cannot_be_written(self):
        with open("/dev/full", "wb") as full:
            result = run("call", RPC_SERVER, "system.ping", stdout=full)
        self.assertEqual(result.returncode, 3)
        self.assertIn("cannot write to stdout", result.stderr)
        result = run("call", RPC_SERVER, "system.ping", preexec_fn=lambda: os.close(1))
        self.assertEqual(result.returncode, 3)
        self.assertIn("cannot write to stdout", result.stderr)

    def test_call_succeeds_when_stdin_and_stderr_are_closed(self):
        def close():
            os.close(0)
            os.close(2)

        self.assert_exited(run("call", RPC_SERVER, "system.ping", preexec_fn=close), 0, b'"pong"\n')


class CallRequestTest(program.ProgramTest):
    """The bytes that the server receives."""

    def send(self, *args, **options):
        """Calls a server. Returns the result of the program and the bytes that the server received."""
        received = self.path("received")
        server = self.script(
            "line = sys.stdin.buffer.readline()\n"
            f"open({received!r}, 'wb').write(line)\n"
            'print(\'{"jsonrpc":"2.0","id":1,"result":0}\', flush=True)\n'
            f"open({received!r}, 'ab').write(sys.stdin.buffer.read())\n"
        )
        result = run("call", server, *args, **options)
        with open(received, "rb") as file:
            return result, file.read()

    def test_request_is_sent_with_params_unchanged(self):  # R1.1, R5.1
        _, line = self.send("m", '{"b": 1,"a":2.50}')
        self.assertEqual(line, b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"b": 1,"a":2.50}}\n')

    def test_absent_params_are_omitted(self):  # R1.2
        _, line = self.send("m")
        self.assertEqual(line, b'{"jsonrpc":"2.0","id":1,"method":"m"}\n')

    def test_params_are_read_from_stdin(self):
        result, line = self.send("m", "-", input=b'[1,\n "two"]\n')
        self.assertEqual(line, b'{"jsonrpc":"2.0","id":1,"method":"m","params":[1,  "two"]}\n')
        self.assertEqual(result.returncode, 0)
        large = b'["' + b"x" * 5_000_000 + b'"]'
        _, line = self.send("m", "-", input=large)
        self.assertEqual(line, b'{"jsonrpc":"2.0","id":1,"method":"m","params":' + large + b"}\n")

    def test_notification_has_no_id_and_does_not_wait_for_a_response(self):  # R1.1
        result, line = self.send("m", "[1]", "--notify")
        self.assertEqual(line, b'{"jsonrpc":"2.0","method":"m","params":[1]}\n')
        self.assert_exited(result, 0, b"", "")
        _, line = self.send("m", "--notify")
        self.assertEqual(line, b'{"jsonrpc":"2.0","method":"m"}\n')

    def test_method_is_escaped(self):
        _, line = self.send('a"b\\c')
        self.assertEqual(line, b'{"jsonrpc":"2.0","id":1,"method":"a\\"b\\\\c"}\n')


class CallFramingTest(program.ProgramTest):
    def test_every_framing_works_on_every_transport(self):  # R2, R3.2
        params = '{"text": "two\\nlines", "n": [1,\n2]}'
        for framing in ("line", "length", "header"):
            expected = params.encode() + b"\n"
            if framing == "line":
                expected = b'{"text": "two\\nlines", "n": [1, 2]}\n'
            arguments = ["system.echo", params, "--framing", framing]
            child = stdio(program.PROGRAM, "rpc", "--framing", framing)
            self.assert_exited(run("call", child, *arguments), 0, expected)
            for address in ("tcp:127.0.0.1:0", "unix:" + self.path("s")):
                with program.RpcListener(address, "--framing", framing) as server:
                    self.assert_exited(run("call", server.address, *arguments), 0, expected)
                    self.assert_exited(run("call", server.address, "nope", "--framing", framing), 1)

    def test_framing_can_be_set_in_the_environment(self):
        header = {"FAIRLEAD_FRAMING": "header"}  # the child does not inherit this variable
        child = stdio(program.PROGRAM, "rpc", "--framing", "header")
        self.assert_exited(run("call", child, "system.ping", env=header), 0, b'"pong"\n')
        line = stdio(program.PROGRAM, "rpc", "--framing", "line")
        self.assert_exited(run("call", line, "system.ping", "--framing", "line", env=header), 0, b'"pong"\n')


class RemoteErrorTest(program.ProgramTest):  # status 1
    def test_error_is_printed_to_stderr(self):
        result = run("call", RPC_SERVER, "no.such.method")
        self.assert_exited(result, 1, b"", "error -32601: Method not found: no.such.method")

    def test_data_of_an_error_is_printed_unchanged(self):
        answer = b'{"jsonrpc":"2.0","id":1,"error":{"code":-7,"message":"no","data":{"b": 1.0,"a":[]}}}\n'
        result = run("call", self.server_responding(answer), "m")
        self.assert_exited(result, 1, b"", 'data: {"b": 1.0,"a":[]}')
        self.assertIn("error -7: no", result.stderr)


class CallUsageErrorTest(program.ProgramTest):  # status 2
    def test_params_that_are_not_json_are_rejected(self):
        for params in ("{", "[1,]", "nope", "'a'", '{"a":1} x'):
            self.assert_exited(run("call", RPC_SERVER, "m", params), 2, b"", "PARAMS is not JSON")
        self.assert_exited(run("call", RPC_SERVER, "m", "-", input=b""), 2, b"", "PARAMS is not JSON")
        self.assert_exited(run("call", RPC_SERVER, "m", "-", input=b"\xff"), 2, b"", "PARAMS is not JSON")

    def test_params_that_are_neither_object_nor_array_are_rejected(self):
        for params in ("1", '"x"', "null", "true"):
            self.assert_exited(run("call", RPC_SERVER, "m", params), 2, b"", "neither an object nor an array")

    def test_invalid_addresses_are_rejected(self):  # R3.3
        for address in ("nonsense", "ftp://x", "tcp:localhost", "tcp::1", "tcp:h:99999", "tcp:h:http", "unix:",
                        "stdio:a%2", "http:x", "tcp:::1:80", ""):
            self.assert_exited(run("call", address, "m"), 2)

    def test_invalid_durations_are_rejected(self):
        for duration in ("", "1d", "-1", "-5ms", "nan", "inf", "1e999", "5 s", "s", "0x10", "1..5", "ms"):
            self.assert_exited(run("call", RPC_SERVER, "system.ping", f"--timeout={duration}"), 2)


class UnreachableServerTest(program.ProgramTest):  # status 3
    def test_status_is_3_when_nothing_listens_at_the_address(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
            self.assert_exited(run("call", f"tcp:127.0.0.1:{port}", "m"), 3, b"", "Connection refused")
        self.assert_exited(run("call", "unix:" + self.path("none"), "m"), 3, b"", "No such file")
        self.assert_exited(run("call", "unix:/" + "x" * 200, "m"), 3, b"", "at most 107")

    def test_status_is_3_when_the_program_cannot_be_started(self):  # R4.5
        self.assert_exited(run("call", "stdio:no-such-program-here", "m"), 3, b"", "no-such-program-here")
        with open(self.path("plain"), "w", encoding="utf-8") as file:
            file.write("not a program")
        self.assert_exited(run("call", stdio(self.path("plain")), "m"), 3, b"", "plain")

    def test_status_is_3_when_the_program_exits_without_a_response(self):  # R4.4
        server = self.script("sys.stdin.readline(); sys.stderr.write('out of coffee\\n'); sys.exit(7)")
        result = run("call", server, "m")
        self.assert_exited(result, 3, b"", "out of coffee")
        self.assertIn("7", result.stderr)
        self.assert_exited(run("call", stdio("/bin/true"), "m"), 3)
        server = self.script("sys.stdin.readline(); os.kill(os.getpid(), 9)")
        self.assert_exited(run("call", server, "m"), 3, b"", "9")

    def test_status_is_3_when_the_server_closes_the_connection(self):
        with socket.create_server(("127.0.0.1", 0)) as server:

            def close_connection():
                client, _ = server.accept()
                client.recv(1000)
                client.close()

            thread = threading.Thread(target=close_connection)
            thread.start()
            self.assert_exited(run("call", f"tcp:127.0.0.1:{server.getsockname()[1]}", "m"), 3, b"", "closed")
            thread.join()


class CallTimeoutTest(program.ProgramTest):  # status 4
    def test_call_times_out_when_the_server_never_responds(self):  # R5.2
        server = self.script("sys.stdin.read()")
        began = time.monotonic()
        self.assert_exited(run("call", server, "m", "--timeout", "200ms"), 4, b"", "200 ms")
        self.assertLess(time.monotonic() - began, 10)

    def test_all_units_of_timeout_are_accepted(self):
        server = self.script("sys.stdin.read()")
        for timeout, milliseconds in (("150ms", 150), ("0.2s", 200), ("0.2", 200), ("0.003m", 180), ("1e2ms", 100)):
            self.assert_exited(run("call", server, "m", "--timeout", timeout), 4, b"", f"within {milliseconds} ms")
        for timeout in ("30s", "2m", "5", "10000ms", "0", "0ms", "1e12ms"):
            self.assert_exited(run("call", RPC_SERVER, "system.ping", "--timeout", timeout), 0, b'"pong"\n')

    def test_call_times_out_when_the_server_never_reads(self):  # R3.4
        server = self.script("time.sleep(20)")
        large = b'["' + b"x" * 5_000_000 + b'"]'
        for options in ([], ["--notify"]):
            began = time.monotonic()
            self.assert_exited(run("call", server, "m", "-", "--timeout", "300ms", *options, input=large), 4, b"", "300 ms")
            self.assertLess(time.monotonic() - began, 10)

    def test_call_times_out_when_the_server_accepts_and_sends_nothing(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = f"tcp:127.0.0.1:{server.getsockname()[1]}"
            self.assert_exited(run("call", address, "m", "--timeout", "200ms"), 4, b"", "200 ms")


class ProtocolViolationTest(program.ProgramTest):  # status 5
    def test_status_is_5_for_an_invalid_response(self):
        for answer in (
            b'{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"x"}}\n',
            b'{"id":1,"result":1}\n',
            b'{"jsonrpc":"2.0","id":1,"error":"failed"}\n',
            b'{"jsonrpc":"2.0","id":1,"result":1,"result":2}\n',
        ):
            result = run("call", self.server_responding(answer), "m", "--timeout", "5s")
            self.assert_exited(result, 5)
            self.assertNotEqual(result.stderr, "")

    def test_status_is_5_when_the_server_uses_another_framing(self):
        server = self.script(f"out.write({program.PONG!r}); out.flush(); sys.stdin.read()")
        self.assert_exited(run("call", server, "m", "--framing", "length", "--timeout", "5s"), 5, b"", "line or header framing")
        self.assert_exited(run("call", server, "m", "--framing", "header", "--timeout", "5s"), 5, b"", "line framing")

    def test_status_is_5_for_an_impossible_frame_length(self):
        server = self.script("out.write(b'\\xff\\xff\\xff\\xff'); out.flush(); sys.stdin.read()")
        self.assert_exited(run("call", server, "m", "--framing", "length", "--timeout", "5s"), 5, b"", "cannot be true")


if __name__ == "__main__":
    unittest.main()
