#!/usr/bin/env python3
"""fairlead rpc: where it reads and writes, and how it ends."""
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
    """Until its output pipe is full: what is left it can only keep."""
    full = fcntl.fcntl(process.stdout, fcntl.F_GETPIPE_SZ) - 4096
    until = time.monotonic() + DEADLINE
    waiting = 0
    while waiting < full and time.monotonic() < until:
        time.sleep(0.001)
        waiting = int.from_bytes(fcntl.ioctl(process.stdout, termios.FIONREAD, bytes(4)), "little")
    assert waiting >= full, f"only {waiting} bytes of output"


class Streams(program.ProgramTest):
    def test_from_file_to_file(self):
        with open(self.path("in"), "wb") as file:
            file.write(requests(20_000))
        with open(self.path("in"), "rb") as source, open(self.path("out"), "wb") as sink:
            result = run("rpc", "--log-level", "warning", stdin=source, stdout=sink)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        with open(self.path("out"), "rb") as file:
            self.assertEqual(file.read(), answers(20_000))

    def test_it_appends_where_the_shell_says_so(self):
        with open(self.path("out"), "wb") as sink:
            sink.write(b"before\n")
        with open(self.path("out"), "ab") as sink:
            with open(self.path("in"), "wb") as file:
                file.write(PING)
            with open(self.path("in"), "rb") as source:
                run("rpc", stdin=source, stdout=sink)
        with open(self.path("out"), "rb") as file:
            self.assertEqual(file.read(), b"before\n" + PONG)

    def test_nothing_in_nothing_out(self):
        self.assert_ended(run("rpc"), 0, b"", "")
        self.assert_ended(run("rpc", stdin=subprocess.DEVNULL), 0, b"", "")
        self.assertEqual(run("rpc", input=PING, stdout=subprocess.DEVNULL).returncode, 0)

    def test_a_full_disk_is_said(self):
        with open("/dev/full", "wb") as full:
            result = run("rpc", input=PING, stdout=full, timeout=10)
        self.assertEqual(result.returncode, 3)
        self.assertIn("No space left on device", result.stderr)

    def test_closed_streams_are_named(self):  # R5.6
        for closed, name in (((0,), "stdin"), ((1,), "stdout"), ((0, 1), "stdin"), ((0, 1, 2), "")):
            result = run("rpc", preexec_fn=lambda fds=closed: [os.close(fd) for fd in fds], timeout=10)
            self.assertEqual(result.returncode, 3, closed)
            self.assertIn(f"{name} is closed" if name else "", result.stderr)

    def test_without_stderr_it_serves(self):
        self.assert_ended(run("rpc", input=PING, preexec_fn=lambda: os.close(2)), 0, PONG)

    def test_a_listener_needs_no_streams(self):
        address = "unix:" + self.path("s")
        process = start("rpc", "--listen", address, preexec_fn=lambda: [os.close(fd) for fd in (0, 1, 2)])
        try:
            until = time.monotonic() + DEADLINE
            while not os.path.exists(self.path("s")) and time.monotonic() < until:
                time.sleep(0.01)
            self.assert_ended(run("call", address, "system.ping"), 0, b'"pong"\n')
        finally:
            process.terminate()
            process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, 0)

    def test_sockets_as_streams(self):
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

    def test_a_terminal_is_left_as_it_was(self):
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

    def test_a_reader_that_goes_away_ends_it(self):
        process = start("rpc", stderr=subprocess.DEVNULL)
        process.stdout.close()
        with contextlib.suppress(BrokenPipeError), process.stdin:
            process.stdin.write(requests(10_000))
        self.assertGreaterEqual(process.wait(DEADLINE), 0, "not killed by SIGPIPE")

    def test_a_slow_reader_gets_everything(self):  # R3.4
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


class RequestLog(program.ProgramTest):
    def test_hostile_ids_are_escaped_and_cut(self):
        request = b'{"jsonrpc":"2.0","id":"%s","method":"\\u001b[2J\xc2\x9b"}\n' % (b"7" * 1_000_000)
        stderr = run("rpc", input=request * 3).stderr
        self.assertEqual(len(stderr.splitlines()), 3)
        self.assertLess(len(stderr), 30_000)
        self.assertNotRegex(stderr, "[\x1b\x80-\x9f]")


class ListenerSafety(program.ProgramTest):
    def test_a_unix_socket_is_for_its_owner(self):
        for args, mode in (((), 0o600), (("--socket-mode", "0660"), 0o660)):
            with program.Listening("unix:" + self.path("s"), *args, preexec_fn=lambda: os.umask(0o002)):
                self.assertEqual(os.stat(self.path("s")).st_mode & 0o777, mode)
        self.assertEqual(run("rpc", "--socket-mode", "rw").returncode, 2)

    def test_a_cross_site_post_is_not_executed(self):
        with program.Listening("tcp:127.0.0.1:0", "--log-level", "info") as server:
            with socket.create_connection(server.host_and_port(), DEADLINE) as client:
                client.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n" + PING)
                with contextlib.suppress(ConnectionResetError):
                    self.assertEqual(client.recv(1000), b"")
            with socket.create_connection(server.host_and_port(), DEADLINE) as client:
                client.sendall(PING)
                self.assertEqual(client.recv(1000), PONG)
        self.assertIn("sent an HTTP request", "".join(server.lines))
        self.assertEqual("".join(server.lines).count("system.ping"), 1)

    def test_noise_without_limit_ends_nothing(self):
        noise = b"noise\n" * 2000
        self.assertNotIn(PONG, run("rpc", input=noise + PING).stdout)
        self.assertTrue(run("rpc", "--max-noise-frames", "0", input=noise + PING).stdout.endswith(PONG))


class Endings(program.ProgramTest):
    def test_eof_answers_all_that_was_sent(self):  # R6.3
        self.assert_ended(run("rpc", "--log-level", "warning", input=requests(50_000)), 0, answers(50_000), "")

    def test_signals_end_it_with_everything_flushed(self):  # R6.3
        for number in (signal.SIGTERM, signal.SIGINT):
            with open(self.path("log"), "wb") as log:  # a pipe that nobody reads would drop lines
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

    def test_a_signal_while_idle_ends_it_at_once(self):
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

    def test_a_signal_ends_it_though_nobody_reads(self):  # bounded by the grace period
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

    def test_a_listener_with_idle_clients_ends(self):
        with program.Listening("tcp:127.0.0.1:0") as server:
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


class Listeners(program.ProgramTest):
    def exchange(self, server, data):
        with socket.create_connection(server.host_and_port(), 10) as client:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            got = b""
            while piece := client.recv(65536):
                got += piece
            return got

    def test_port_zero_says_which_it_got(self):  # R6.1
        with program.Listening("tcp:127.0.0.1:0") as server:
            self.assertRegex(server.address, r"\Atcp:127\.0\.0\.1:[1-9]\d*\Z")
            self.assertEqual(self.exchange(server, requests(1000)), answers(1000))
        self.assertEqual(server.process.returncode, 0)

    def test_a_name_and_ipv6(self):
        with program.Listening("tcp:localhost:0") as server:
            self.assert_ended(run("call", server.address, "system.ping"), 0, b'"pong"\n')
        if socket.has_ipv6 and os.path.exists("/proc/net/if_inet6"):
            with program.Listening("tcp:[::1]:0") as server:
                self.assert_ended(run("call", server.address, "system.ping"), 0, b'"pong"\n')

    def test_many_clients_at_once(self):
        with program.Listening("tcp:127.0.0.1:0") as server:
            clients = [socket.create_connection(server.host_and_port(), 10) for _ in range(200)]
            for client in clients:
                client.sendall(PING)
            for client in clients:
                self.assertEqual(client.recv(1000), PONG)
                client.close()

    def test_one_bad_client_harms_nobody(self):  # R2.5
        with program.Listening("tcp:127.0.0.1:0", "--framing", "length") as server:
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

    def test_a_socket_file_nobody_listens_on_is_replaced(self):
        path = self.path("s")
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(path)
        self.assertTrue(os.path.exists(path))
        with program.Listening("unix:" + path) as server:
            self.assert_ended(run("call", server.address, "system.ping"), 0, b'"pong"\n')
        self.assertFalse(os.path.exists(path), "removed at the end")

    def test_a_socket_file_after_a_crash_is_replaced(self):
        address = "unix:" + self.path("s")
        with program.Listening(address) as server:
            server.process.kill()
            server.process.wait()
        with program.Listening(address) as server:
            self.assert_ended(run("call", address, "system.ping"), 0, b'"pong"\n')

    def test_a_socket_somebody_listens_on_is_left_alone(self):
        address = "unix:" + self.path("s")
        with program.Listening(address):
            self.assert_ended(run("rpc", "--listen", address), 3, b"", "in use")
            self.assert_ended(run("call", address, "system.ping"), 0, b'"pong"\n')

    def test_a_file_that_is_no_socket_is_left_alone(self):
        with open(self.path("precious"), "w", encoding="utf-8") as file:
            file.write("data")
        self.assert_ended(run("rpc", "--listen", "unix:" + self.path("precious")), 3)
        with open(self.path("precious"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "data")

    def test_addresses_that_cannot_be_had(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"tcp:127.0.0.1:{taken.getsockname()[1]}"
            self.assert_ended(run("rpc", "--listen", address), 3, b"", "in use")
        self.assert_ended(run("rpc", "--listen", "unix:/no/such/folder/s"), 3, b"", "/no/such/folder/s")
        self.assert_ended(run("rpc", "--listen", "nonsense"), 2)
        self.assert_ended(run("rpc", "--listen", "stdio:cat"), 2, b"", "tcp: and unix:")
        self.assert_ended(run("rpc", "--listen", "http://127.0.0.1:1/"), 2)

    def test_the_address_may_come_from_the_environment(self):
        address = "unix:" + self.path("s")
        process = start("rpc", env={"FAIRLEAD_RPC_LISTEN": address})
        try:
            process.stderr.readline()
            self.assert_ended(run("call", address, "system.ping"), 0, b'"pong"\n')
        finally:
            process.terminate()
            process.communicate(timeout=DEADLINE)

    def test_the_address_of_serve_is_not_that_of_rpc(self):
        self.assert_ended(run("rpc", input=PING, env={"FAIRLEAD_LISTEN": "127.0.0.1:0"}), 0, PONG)


if __name__ == "__main__":
    unittest.main()
