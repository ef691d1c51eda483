#!/usr/bin/env python3
"""fairlead rpc: input and output, listeners, and shutdown."""
import contextlib
import fcntl
import os
import pty
import signal
import socket
import subprocess
import termios
import time
import tty
import unittest

import program
from program import DEADLINE, PING, PONG, run, start


def requests(count):
    return b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"system.ping"}\n' % i for i in range(count))


def answers(count):
    return b"".join(b'{"jsonrpc":"2.0","id":%d,"result":"pong"}\n' % i for i in range(count))


def wait_until_blocked(process):
    """Waits until the stdout pipe of the process is full, so that the process cannot write its other responses."""
    full = fcntl.fcntl(process.stdout, fcntl.F_GETPIPE_SZ) - 4096
    until = time.monotonic() + DEADLINE
    waiting = 0
    while waiting < full and time.monotonic() < until:
        time.sleep(0.001)
        waiting = int.from_bytes(fcntl.ioctl(process.stdout, termios.FIONREAD, bytes(4)), "little")
    assert waiting >= full, f"only {waiting} bytes of output"


class StreamTest(program.ProgramTest):
    def test_requests_from_a_file_are_answered_to_a_file(self):
        with open(self.path("in"), "wb") as file:
            file.write(requests(20_000))
        with open(self.path("in"), "rb") as source, open(self.path("out"), "wb") as sink:
            result = run("rpc", "--log-level", "warning", stdin=source, stdout=sink)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        with open(self.path("out"), "rb") as file:
            self.assertEqual(file.read(), answers(20_000))

    def test_output_is_appended_to_a_file_opened_for_appending(self):
        with open(self.path("out"), "wb") as sink:
            sink.write(b"before\n")
        with open(self.path("out"), "ab") as sink:
            with open(self.path("in"), "wb") as file:
                file.write(PING)
            with open(self.path("in"), "rb") as source:
                run("rpc", stdin=source, stdout=sink)
        with open(self.path("out"), "rb") as file:
            self.assertEqual(file.read(), b"before\n" + PONG)

    def test_empty_input_has_empty_output(self):
        self.assert_exited(run("rpc"), 0, b"", "")
        self.assert_exited(run("rpc", stdin=subprocess.DEVNULL), 0, b"", "")
        self.assertEqual(run("rpc", input=PING, stdout=subprocess.DEVNULL).returncode, 0)

    def test_full_disk_is_reported(self):
        with open("/dev/full", "wb") as full:
            result = run("rpc", input=PING, stdout=full, timeout=10)
        self.assertEqual(result.returncode, 3)
        self.assertIn("No space left on device", result.stderr)

    def test_closed_streams_are_named_in_the_error(self):  # R5.6
        for closed, name in (((0,), "stdin"), ((1,), "stdout"), ((0, 1), "stdin"), ((0, 1, 2), "")):
            result = run("rpc", preexec_fn=lambda fds=closed: [os.close(fd) for fd in fds], timeout=10)
            self.assertEqual(result.returncode, 3, closed)
            self.assertIn(f"{name} is closed" if name else "", result.stderr)

    def test_requests_are_served_when_stderr_is_closed(self):
        self.assert_exited(run("rpc", input=PING, preexec_fn=lambda: os.close(2)), 0, PONG)

    def test_listener_works_when_stdin_stdout_and_stderr_are_closed(self):
        address = "unix:" + self.path("s")
        process = start("rpc", "--listen", address, preexec_fn=lambda: [os.close(fd) for fd in (0, 1, 2)])
        try:
            until = time.monotonic() + DEADLINE
            while not os.path.exists(self.path("s")) and time.monotonic() < until:
                time.sleep(0.01)
            self.assert_exited(run("call", address, "system.ping"), 0, b'"pong"\n')
        finally:
            process.terminate()
            process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, 0)

    def test_sockets_can_be_stdin_and_stdout(self):
        ours, theirs = socket.socketpair()
        process = start("rpc", stdin=theirs, stdout=theirs)
        theirs.close()
        with ours:
            ours.sendall(PING)
            self.assertEqual(ours.recv(1000), PONG)
            ours.shutdown(socket.SHUT_WR)
            self.assertEqual(ours.recv(1000), b"")
        process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, 0)

    def test_terminal_settings_are_restored(self):
        ours, theirs = pty.openpty()
        tty.setraw(theirs)
        process = start("rpc", stdin=theirs, stdout=theirs)
        os.write(ours, PING)
        self.assertEqual(os.read(ours, 1000), PONG)
        process.terminate()
        process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(fcntl.fcntl(theirs, fcntl.F_GETFL) & os.O_NONBLOCK, 0)
        self.assertTrue(termios.tcgetattr(theirs))
        os.close(ours)
        os.close(theirs)

    def test_shared_pipes_stay_blocking(self):
        inside, to = os.pipe()
        back, outside = os.pipe()
        process = start("rpc", stdin=inside, stdout=outside)
        os.write(to, PING)
        self.assertEqual(os.read(back, 1000), PONG)
        for fd in (inside, outside):
            self.assertEqual(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK, 0)
        os.close(to)
        process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, 0)
        for fd in (inside, back, outside):
            os.close(fd)

    def test_process_exits_when_stdout_is_closed(self):
        process = start("rpc", stderr=subprocess.DEVNULL)
        process.stdout.close()
        with contextlib.suppress(BrokenPipeError), process.stdin:
            process.stdin.write(requests(10_000))
        self.assertGreaterEqual(process.wait(DEADLINE), 0, "not killed by SIGPIPE")

    def test_slow_reader_receives_all_responses(self):  # R3.4
        text = b"x" * 1000
        count = 20_000
        with open(self.path("in"), "wb") as file:
            for i in range(count):
                file.write(b'{"jsonrpc":"2.0","id":%d,"method":"system.echo","params":["%s"]}\n' % (i, text))
        with open(self.path("in"), "rb") as source:
            process = start("rpc", stdin=source, stderr=subprocess.DEVNULL)
        wait_until_blocked(process)
        lines = 0
        for line in process.stdout:
            self.assertEqual(line, b'{"jsonrpc":"2.0","id":%d,"result":["%s"]}\n' % (lines, text))
            lines += 1
        self.assertEqual((process.wait(DEADLINE), lines), (0, count))
        process.stdout.close()


class RequestLogTest(program.ProgramTest):
    def test_hostile_ids_are_escaped_and_truncated(self):
        request = b'{"jsonrpc":"2.0","id":"%s","method":"\\u001b[2J\xc2\x9b"}\n' % (b"7" * 1_000_000)
        stderr = run("rpc", input=request * 3).stderr
        self.assertEqual(len(stderr.splitlines()), 3)
        self.assertLess(len(stderr), 30_000)
        self.assertNotRegex(stderr, "[\x1b\x80-\x9f]")


class ListenerSafetyTest(program.ProgramTest):
    def test_unix_socket_is_accessible_to_its_owner_only(self):
        for args, mode in (((), 0o600), (("--socket-mode", "0660"), 0o660)):
            with program.RpcListener("unix:" + self.path("s"), *args, preexec_fn=lambda: os.umask(0o002)):
                self.assertEqual(os.stat(self.path("s")).st_mode & 0o777, mode)
        self.assertEqual(run("rpc", "--socket-mode", "rw").returncode, 2)

    def test_http_request_is_not_executed(self):
        with program.RpcListener("tcp:127.0.0.1:0", "--log-level", "info") as server:
            with socket.create_connection(server.host_and_port(), DEADLINE) as client:
                client.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n" + PING)
                with contextlib.suppress(ConnectionResetError):
                    self.assertEqual(client.recv(1000), b"")
            with socket.create_connection(server.host_and_port(), DEADLINE) as client:
                client.sendall(PING)
                self.assertEqual(client.recv(1000), PONG)
        self.assertIn("sent an HTTP request", "".join(server.lines))
        self.assertEqual("".join(server.lines).count("system.ping"), 1)

    def test_malformed_frames_do_not_end_the_connection_without_a_limit(self):
        noise = b"noise\n" * 2000
        self.assertNotIn(PONG, run("rpc", input=noise + PING).stdout)
        self.assertTrue(run("rpc", "--max-noise-frames", "0", input=noise + PING).stdout.endswith(PONG))


class ShutdownTest(program.ProgramTest):
    def test_all_requests_before_eof_are_answered(self):  # R6.3
        self.assert_exited(run("rpc", "--log-level", "warning", input=requests(50_000)), 0, answers(50_000), "")

    def test_responses_are_flushed_before_exit_on_signal(self):  # R6.3
        for number in (signal.SIGTERM, signal.SIGINT):
            with open(self.path("log"), "wb") as log:  # lines would be lost in a pipe that is not read
                process = start("rpc", stderr=log)
            process.stdin.write(requests(1000))
            process.stdin.flush()
            lines = [process.stdout.readline()]
            process.send_signal(number)
            lines += process.stdout.readlines()
            self.assertEqual(process.wait(DEADLINE), 0)
            for i, line in enumerate(lines):
                self.assertRegex(line, rb'\A{"jsonrpc":"2.0","id":%d,("result":"pong"|"error":{"code":-32004,.*})}\n\Z' % i)
            process.communicate()
            with open(self.path("log"), "rb") as log:
                self.assertIn(b"shutting down", log.read())

    def test_signal_ends_an_idle_process_at_once(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            process = start("rpc")
            process.stdin.write(PING)
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), PONG)
            began = time.monotonic()
            process.send_signal(number)
            self.assertEqual(process.wait(DEADLINE), 0)
            self.assertLess(time.monotonic() - began, 3)
            process.communicate()

    def test_signal_ends_the_process_when_stdout_is_not_read(self):  # bounded by the grace period
        process = start("rpc", "--grace", "300ms", stderr=subprocess.DEVNULL)
        large = b'{"jsonrpc":"2.0","id":1,"method":"system.echo","params":["' + b"x" * 4_000_000 + b'"]}\n'
        process.stdin.write(large)
        process.stdin.flush()
        wait_until_blocked(process)
        began = time.monotonic()
        process.terminate()
        self.assertEqual(process.wait(DEADLINE), 0)
        self.assertLess(time.monotonic() - began, 5)
        process.communicate()

    def test_listener_with_idle_clients_exits_on_sigterm(self):
        with program.RpcListener("tcp:127.0.0.1:0") as server:
            clients = [socket.create_connection(server.host_and_port()) for _ in range(20)]
            clients[0].sendall(PING)
            self.assertEqual(clients[0].recv(1000), PONG)
            began = time.monotonic()
            server.process.terminate()
            self.assertEqual(server.process.wait(DEADLINE), 0)
            self.assertLess(time.monotonic() - began, 5)
            for client in clients:
                client.settimeout(5)
                self.assertEqual(client.recv(1000), b"")
                client.close()


class ListenerTest(program.ProgramTest):
    def exchange(self, server, data):
        with socket.create_connection(server.host_and_port(), 10) as client:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            got = b""
            while piece := client.recv(65536):
                got += piece
            return got

    def test_chosen_port_is_logged_for_port_zero(self):  # R6.1
        with program.RpcListener("tcp:127.0.0.1:0") as server:
            self.assertRegex(server.address, r"\Atcp:127\.0\.0\.1:[1-9]\d*\Z")
            self.assertEqual(self.exchange(server, requests(1000)), answers(1000))
        self.assertEqual(server.process.returncode, 0)

    def test_host_names_and_ipv6_addresses_are_accepted(self):
        with program.RpcListener("tcp:localhost:0") as server:
            self.assert_exited(run("call", server.address, "system.ping"), 0, b'"pong"\n')
        if socket.has_ipv6 and os.path.exists("/proc/net/if_inet6"):
            with program.RpcListener("tcp:[::1]:0") as server:
                self.assert_exited(run("call", server.address, "system.ping"), 0, b'"pong"\n')

    def test_many_clients_are_served_at_once(self):
        with program.RpcListener("tcp:127.0.0.1:0") as server:
            clients = [socket.create_connection(server.host_and_port(), 10) for _ in range(200)]
            for client in clients:
                client.sendall(PING)
            for client in clients:
                self.assertEqual(client.recv(1000), PONG)
                client.close()

    def test_bad_client_does_not_affect_other_clients(self):  # R2.5
        with program.RpcListener("tcp:127.0.0.1:0", "--framing", "length") as server:
            self.assertEqual(self.exchange(server, b"GET / HTTP/1.1\r\n\r\n"), b"")
            self.assertIn(b'"id":null,"error":{"code":-32700', self.exchange(server, b"\0\0\0\2{}x"))
            frame = len(PING[:-1]).to_bytes(4, "big") + PING
            client = socket.create_connection(server.host_and_port(), 10)
            client.sendall(frame[:10])
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.close()  # a reset
            self.assertEqual(self.exchange(server, frame), len(PONG[:-1]).to_bytes(4, "big") + PONG)
        self.assertEqual(server.process.returncode, 0)
        self.assertIn("sent an HTTP request", "".join(server.lines))

    def test_stale_socket_file_is_replaced(self):
        path = self.path("s")
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(path)
        self.assertTrue(os.path.exists(path))
        with program.RpcListener("unix:" + path) as server:
            self.assert_exited(run("call", server.address, "system.ping"), 0, b'"pong"\n')
        self.assertFalse(os.path.exists(path), "removed at the end")

    def test_socket_file_left_by_a_crash_is_replaced(self):
        address = "unix:" + self.path("s")
        with program.RpcListener(address) as server:
            server.process.kill()
            server.process.wait()
        with program.RpcListener(address) as server:
            self.assert_exited(run("call", address, "system.ping"), 0, b'"pong"\n')

    def test_socket_in_use_is_not_replaced(self):
        address = "unix:" + self.path("s")
        with program.RpcListener(address):
            self.assert_exited(run("rpc", "--listen", address), 3, b"", "in use")
            self.assert_exited(run("call", address, "system.ping"), 0, b'"pong"\n')

    def test_file_that_is_not_a_socket_is_not_replaced(self):
        with open(self.path("precious"), "w", encoding="utf-8") as file:
            file.write("data")
        self.assert_exited(run("rpc", "--listen", "unix:" + self.path("precious")), 3)
        with open(self.path("precious"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "data")

    def test_addresses_that_cannot_be_bound_or_are_invalid_are_reported(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"tcp:127.0.0.1:{taken.getsockname()[1]}"
            self.assert_exited(run("rpc", "--listen", address), 3, b"", "in use")
        self.assert_exited(run("rpc", "--listen", "unix:/no/such/folder/s"), 3, b"", "/no/such/folder/s")
        self.assert_exited(run("rpc", "--listen", "nonsense"), 2)
        self.assert_exited(run("rpc", "--listen", "stdio:cat"), 2, b"", "tcp: and unix:")
        self.assert_exited(run("rpc", "--listen", "http://127.0.0.1:1/"), 2)

    def test_address_can_be_set_in_the_environment(self):
        address = "unix:" + self.path("s")
        process = start("rpc", env={"FAIRLEAD_RPC_LISTEN": address})
        try:
            process.stderr.readline()
            self.assert_exited(run("call", address, "system.ping"), 0, b'"pong"\n')
        finally:
            process.terminate()
            process.communicate(timeout=DEADLINE)

    def test_address_variable_of_serve_is_ignored(self):
        self.assert_exited(run("rpc", input=PING, env={"FAIRLEAD_LISTEN": "127.0.0.1:0"}), 0, PONG)


if __name__ == "__main__":
    unittest.main()
