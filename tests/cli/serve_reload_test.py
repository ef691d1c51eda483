#!/usr/bin/env python3
"""fairlead serve and SIGHUP: what is reloaded, and when the process exits instead."""
import fcntl
import json
import os
import pty
import re
import signal
import ssl
import termios
import threading
import time
import unittest

import program
from program import DEADLINE
from serve_ending_test import BLOCKING_SERVER
from serve_test import Gateway, ServeTest

# Two self-signed certificates that are valid for 100 years, each with its key.
CERTIFICATES = [
    """-----BEGIN CERTIFICATE-----
MIIBlDCCATqgAwIBAgIUMRnYxxacCiDynlCxc+RVWsM+rU4wCgYIKoZIzj0EAwIw
FjEUMBIGA1UEAwwLb25lLmV4YW1wbGUwIBcNMjYxMTE2MDAwMzExWhgPMjEyNjEw
MjMwMDAzMTFaMBYxFDASBgNVBAMMC29uZS5leGFtcGxlMFkwEwYHKoZIzj0CAQYI
KoZIzj0DAQcDQgAEcy7JqdupA63GNYUe0J/MeDyl5hvZt0N4CXUZHHOF76HOdggV
R0AmGSRD2Rm9uVzGeCRlVXtDKw7w/VS1MAzYm6NkMGIwHQYDVR0OBBYEFHkHKVfR
wjijh0m9mzbY5zYPd20aMB8GA1UdIwQYMBaAFHkHKVfRwjijh0m9mzbY5zYPd20a
MA8GA1UdEwEB/wQFMAMBAf8wDwYDVR0RBAgwBocEfwAAATAKBggqhkjOPQQDAgNI
ADBFAiB/5hNzMvj6nIQd5abICfqJ0ZjZOPHgw+m9hPAIb+HzwwIhANmEYB7lCuNj
XlPCAOhdMktKCVSmIl+fhbHlm6SphfnI
-----END CERTIFICATE-----
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgKzuVxROn246bjhyU
IgGPqjRNWVcfQ86iIh7tmEjV39yhRANCAARzLsmp26kDrcY1hR7Qn8x4PKXmG9m3
Q3gJdRkcc4Xvoc52CBVHQCYZJEPZGb25XMZ4JGVVe0MrDvD9VLUwDNib
-----END PRIVATE KEY-----""",
    """-----BEGIN CERTIFICATE-----
MIIBlTCCATqgAwIBAgIUBfuencRZxPP2ACorX6QRzVXjEKcwCgYIKoZIzj0EAwIw
FjEUMBIGA1UEAwwLdHdvLmV4YW1wbGUwIBcNMjYxMTE2MDAwMzExWhgPMjEyNjEw
MjMwMDAzMTFaMBYxFDASBgNVBAMMC3R3by5leGFtcGxlMFkwEwYHKoZIzj0CAQYI
KoZIzj0DAQcDQgAEw+NEzyfNIzN+2vQXrOo2ss9spQQlZ1kQ10z5MQzuF+aH34wr
i6644v1JRXhnbOKQ/SYDQSlaKp04e+jj6sryBKNkMGIwHQYDVR0OBBYEFJehFaMG
S6c/Pn6qDa6A8Wmask/JMB8GA1UdIwQYMBaAFJehFaMGS6c/Pn6qDa6A8Wmask/J
MA8GA1UdEwEB/wQFMAMBAf8wDwYDVR0RBAgwBocEfwAAATAKBggqhkjOPQQDAgNJ
ADBGAiEA+yW2nKBWD5d9Kd0zMDqbF6G4s1jvZh4eZVo1v07eRGwCIQDcjMVBC+ly
rMqiti1Nlnivt6wAs8yxsFP5Nv9i9am/sQ==
-----END CERTIFICATE-----
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgHjO0dYs83jYSuU2H
LbMl14eaN5vG7xybu7qrg97gFLShRANCAATD40TPJ80jM37a9Bes6jayz2ylBCVn
WRDXTPkxDO4X5offjCuLrrji/UlFeGds4pD9JgNBKVoqnTh76OPqyvIE
-----END PRIVATE KEY-----""",
]


class ReloadTest(ServeTest):
    def named_server(self, name, text=None, args=()):
        """Returns the table of a server whose program has its own file, NAME.py."""
        options = {} if text is None else {"text": text}
        table = self.server(name=name, args=args, **options)
        os.rename(self.path("server.py"), self.path(f"{name}.py"))
        return table.replace("server.py", f"{name}.py")

    def wait_until(self, condition):
        end = time.monotonic() + DEADLINE
        while not condition():
            self.assertLess(time.monotonic(), end, "the condition does not become true")
            time.sleep(0.01)

    def reload(self, gateway, text, line="configuration reloaded"):
        """Rewrites the file, sends SIGHUP, and waits for a new log line that contains `line`."""
        self.config(text)
        before = sum(line in logged for logged in gateway.lines)
        gateway.process.send_signal(signal.SIGHUP)
        self.wait_until(lambda: sum(line in logged for logged in list(gateway.lines)) > before)

    def tools(self, gateway):
        return {tool["name"] for tool in json.loads(gateway.post("tools/list", {}))["result"]["tools"]}

    def pid(self, gateway, server):
        return json.loads(gateway.call(f"{server}__pid"))["result"]["content"][0]["text"]

    def test_servers_are_added_removed_and_changed_and_others_keep_running(self):
        stays, goes, changes = (self.named_server(name) for name in ("stays", "goes", "changes"))
        with Gateway(*self.config(stays + goes + changes)) as gateway:
            self.assertIn("goes__odd", self.tools(gateway))
            before = {name: self.pid(gateway, name) for name in ("stays", "goes", "changes")}
            new = self.named_server("new")
            self.reload(gateway, 'list_wait = "5s"\n' + stays + new + changes + "env = { X = '1' }\n")
            self.assertIn("content", json.loads(gateway.call("new__odd"))["result"])
            self.assertEqual(self.pid(gateway, "stays"), before["stays"])
            self.assertNotEqual(self.pid(gateway, "changes"), before["changes"])
            names = self.tools(gateway)
            self.assertIn("new__odd", names)
            self.assertNotIn("goes__odd", names)
            self.assertEqual(json.loads(gateway.call("goes__odd"))["error"]["message"], "Unknown tool: goes__odd")
            self.wait_until(lambda: not os.path.exists(f"/proc/{before['goes']}"))
            servers = {server["name"] for server in json.loads(gateway.get("/health"))["servers"]}
            self.assertEqual(servers, {"stays", "new", "changes"})
            self.reload(gateway, stays + goes)  # the removed server is added again
            self.assertIn("content", json.loads(gateway.call("goes__odd"))["result"])
            self.assertEqual(self.pid(gateway, "stays"), before["stays"])

    def test_call_in_progress_at_a_removed_server_finishes(self):
        os.mkfifo(self.path("fifo"))
        stays, goes = self.named_server("stays"), self.named_server("goes", BLOCKING_SERVER, [self.path("fifo")])
        with Gateway(*self.config(stays + goes)) as gateway:
            self.tools(gateway)
            answers = []
            caller = threading.Thread(target=lambda: answers.append(gateway.call("goes__wait")))
            caller.start()
            with open(self.path("fifo"), "w"):
                self.reload(gateway, stays)
                self.assertNotIn("goes__wait", self.tools(gateway))
                self.assertEqual(answers, [])
            caller.join(DEADLINE)
        self.assertIn('"done"', answers[0])

    def test_fifo_as_the_file_is_rejected_and_blocks_neither_reload_nor_shutdown(self):
        with Gateway(*self.config(self.named_server("s"))) as gateway:
            pid = self.pid(gateway, "s")
            os.remove(self.path("gateway.toml"))
            os.mkfifo(self.path("gateway.toml"))
            gateway.process.send_signal(signal.SIGHUP)
            self.wait_until(lambda: any("it is a FIFO, not a regular file" in line for line in list(gateway.lines)))
            self.assertEqual(self.pid(gateway, "s"), pid)
            os.remove(self.path("gateway.toml"))
            self.reload(gateway, self.named_server("s") + self.named_server("t"))
            self.assertIn("content", json.loads(gateway.call("t__odd"))["result"])
            os.remove(self.path("gateway.toml"))
            os.mkfifo(self.path("gateway.toml"))
            gateway.process.send_signal(signal.SIGHUP)
            gateway.process.send_signal(signal.SIGTERM)
            self.assertEqual(gateway.process.wait(DEADLINE), 0)

    def test_invalid_file_is_reported_and_the_old_configuration_stays(self):
        with Gateway(*self.config(self.named_server("s"))) as gateway:
            pid = self.pid(gateway, "s")
            for broken, why in (
                ("[servers.s]\ncomand = 'x'\n", "comand"),
                ("[[[", "gateway.toml"),
                ("[" + "a." * 100_000 + "a]\n", "gateway.toml:1:129: nests deeper than max_config_depth (64)"),
                ("#" * (1 << 20) + "\n", "has more than max_config_bytes (1048576)"),
            ):
                self.reload(gateway, broken, "configuration not reloaded")
                self.assertIn(why, [line for line in gateway.lines if "configuration not reloaded" in line][-1])
                self.assertEqual(self.pid(gateway, "s"), pid)
            os.remove(self.path("gateway.toml"))
            gateway.process.send_signal(signal.SIGHUP)
            self.wait_until(lambda: sum("configuration not reloaded" in line for line in list(gateway.lines)) == 5)
            self.assertEqual(self.pid(gateway, "s"), pid)

    def test_large_file_does_not_block_the_loop(self):
        many = "".join(f'[servers.s{i}]\nurl = "http://127.0.0.1:1/mcp"\nenabled = false\n' for i in range(15_000))
        self.assertGreater(len(many), 900_000)
        with Gateway(*self.config(self.named_server("s"))) as gateway:
            self.reload(gateway, self.named_server("s") + many)
            health = json.loads(gateway.get("/health"))
        # Reading the file in one turn would take several times as long.
        self.assertLess(health["loop"]["longest_turn_ms"], 100, health["loop"])

    def test_keys_that_need_a_restart_are_named(self):
        with Gateway(*self.config(self.named_server("s"))) as gateway:
            changed = 'drain_grace = "1s"\nsocket_mode = "0660"\nlimits.max_noise_frames = 7\n'
            self.reload(gateway, changed + self.named_server("s"), "changes need a restart")
            self.assertIn('keys="socket_mode, drain_grace, limits"', "".join(gateway.lines))

    def test_new_connections_use_the_new_certificate_and_an_invalid_one_is_rejected(self):
        def install(pem):
            with open(self.path("cert.pem"), "w", encoding="utf-8") as file:
                file.write(pem)

        install(CERTIFICATES[0])
        files = "".join(f'{key} = "{self.path("cert.pem")}"\n' for key in ("tls_certificate", "tls_key"))
        text = files + self.named_server("s")
        process = program.start("serve", "--listen", "127.0.0.1:0", *self.config(text))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        lines = []
        port = None
        while port is None:
            line = process.stderr.readline().decode()
            self.assertTrue(line, lines)
            lines.append(line)
            found = re.search(r"endpoint=https://127.0.0.1:(\d+)/mcp", line)
            port = found and int(found[1])
        served_certificate = lambda: ssl.get_server_certificate(("127.0.0.1", port)).strip()
        certificate = lambda pem: re.search(r"-----BEGIN CERTIFICATE.*END CERTIFICATE-----", pem, re.S)[0]

        def reload_certificate(expected):
            process.send_signal(signal.SIGHUP)
            while True:
                line = process.stderr.readline().decode()
                self.assertTrue(line)
                if expected in line:
                    return

        self.assertEqual(served_certificate(), certificate(CERTIFICATES[0]))
        install(CERTIFICATES[1])
        reload_certificate("configuration reloaded")
        self.assertEqual(served_certificate(), certificate(CERTIFICATES[1]))
        install("not a certificate")
        reload_certificate("configuration not reloaded")
        self.assertEqual(served_certificate(), certificate(CERTIFICATES[1]))

    def test_renamed_log_file_is_reopened(self):
        log = self.path("gateway.log")
        with open(log, "w", encoding="utf-8") as file:
            process = program.start("serve", "--listen", "127.0.0.1:0", *self.config(self.named_server("s")), stderr=file)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)

        def read(path):
            if not os.path.exists(path):
                return ""
            with open(path, encoding="utf-8") as file:
                return file.read()

        self.wait_until(lambda: "endpoint=" in read(log))
        os.rename(log, log + ".1")
        process.send_signal(signal.SIGHUP)
        self.wait_until(lambda: "configuration reloaded" in read(log))
        self.assertNotIn("configuration reloaded", read(log + ".1"))


class HangupTest(ServeTest):
    def start_on_terminal(self, *args, ignore=False):
        """Starts the program in a new session with a controlling terminal. Returns its process and the descriptor that closes the
        terminal. The log is written to a file."""
        ours, theirs = pty.openpty()

        def set_controlling_terminal():
            os.setsid()
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
            if ignore:
                signal.signal(signal.SIGHUP, signal.SIG_IGN)

        with open(self.path("log"), "w", encoding="utf-8") as log:
            process = program.start("serve", "--listen", "127.0.0.1:0", *args, stdin=theirs, stdout=theirs, stderr=log, preexec_fn=set_controlling_terminal)
        os.close(theirs)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_for_log("endpoint=")
        return process, ours

    def wait_for_log(self, text, times=1):
        end = time.monotonic() + DEADLINE
        while True:
            with open(self.path("log"), encoding="utf-8") as log:
                if log.read().count(text) >= times:
                    return
            self.assertLess(time.monotonic(), end, text)
            time.sleep(0.01)

    def test_closing_the_terminal_ends_the_process_with_status_0(self):
        process, ours = self.start_on_terminal(*self.config(self.server()))
        os.close(ours)
        self.assertEqual(process.wait(DEADLINE), 0)
        self.wait_for_log("shutting down")

    def test_sighup_reloads_while_the_terminal_is_open(self):
        process, ours = self.start_on_terminal(*self.config(self.server()))
        process.send_signal(signal.SIGHUP)
        self.wait_for_log("configuration reloaded")
        self.assertIsNone(process.poll())
        os.close(ours)
        self.assertEqual(process.wait(DEADLINE), 0)

    def test_process_under_nohup_survives_its_terminal_and_reloads_later(self):
        process, ours = self.start_on_terminal(*self.config(self.server()), ignore=True)
        os.close(ours)
        process.send_signal(signal.SIGHUP)
        while process.poll() is None:
            process.send_signal(signal.SIGHUP)  # the first signal may have been taken as the end of the terminal
            with open(self.path("log"), encoding="utf-8") as log:
                if "configuration reloaded" in log.read():
                    break
            time.sleep(0.01)
        self.assertIsNone(process.poll())

    def test_sighup_ends_the_process_without_a_configuration_file(self):
        with Gateway() as gateway:
            gateway.process.send_signal(signal.SIGHUP)
            self.assertEqual(gateway.process.wait(DEADLINE), 0)


if __name__ == "__main__":
    unittest.main()
