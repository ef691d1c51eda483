#!/usr/bin/env python3
"""fairlead serve and SIGHUP: what is reloaded, and when it ends instead."""
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
from serve_ending_test import HOLDS
from serve_test import Gateway, ServeTest

# Two certificates of nobody's, for 100 years, each with its key.
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


class Reloading(ServeTest):
    def named(self, name, text=None, args=()):
        """A server whose program has a file of its own."""
        how = {} if text is None else {"text": text}
        table = self.server(name=name, args=args, **how)
        os.rename(self.path("server.py"), self.path(f"{name}.py"))
        return table.replace("server.py", f"{name}.py")

    def until(self, condition):
        end = time.monotonic() + DEADLINE
        while not condition():
            self.assertLess(time.monotonic(), end, "it never comes true")
            time.sleep(0.01)

    def reload(self, gateway, text, line="configuration reloaded"):
        """Rewrites the file and waits until the log says what came of it."""
        self.config(text)
        before = sum(line in one for one in gateway.lines)
        gateway.process.send_signal(signal.SIGHUP)
        self.until(lambda: sum(line in one for one in list(gateway.lines)) > before)

    def tools(self, gateway):
        return {tool["name"] for tool in json.loads(gateway.post("tools/list", {}))["result"]["tools"]}

    def pid(self, gateway, server):
        return json.loads(gateway.call(f"{server}__pid"))["result"]["content"][0]["text"]

    def test_servers_are_added_removed_and_changed_and_the_others_left_alone(self):
        stays, goes, changes = (self.named(name) for name in ("stays", "goes", "changes"))
        with Gateway(*self.config(stays + goes + changes)) as gateway:
            self.assertIn("goes__odd", self.tools(gateway))
            before = {name: self.pid(gateway, name) for name in ("stays", "goes", "changes")}
            new = self.named("new")
            self.reload(gateway, 'list_wait = "5s"\n' + stays + new + changes + "env = { X = '1' }\n")
            self.assertIn("content", json.loads(gateway.call("new__odd"))["result"])
            self.assertEqual(self.pid(gateway, "stays"), before["stays"])
            self.assertNotEqual(self.pid(gateway, "changes"), before["changes"])
            names = self.tools(gateway)
            self.assertIn("new__odd", names)
            self.assertNotIn("goes__odd", names)
            self.assertEqual(json.loads(gateway.call("goes__odd"))["error"]["message"], "Unknown tool: goes__odd")
            self.until(lambda: not os.path.exists(f"/proc/{before['goes']}"))
            servers = {server["name"] for server in json.loads(gateway.get("/health"))["servers"]}
            self.assertEqual(servers, {"stays", "new", "changes"})
            self.reload(gateway, stays + goes)  # and back again
            self.assertIn("content", json.loads(gateway.call("goes__odd"))["result"])
            self.assertEqual(self.pid(gateway, "stays"), before["stays"])

    def test_a_call_under_way_at_a_removed_server_finishes(self):
        os.mkfifo(self.path("held"))
        stays, goes = self.named("stays"), self.named("goes", HOLDS, [self.path("held")])
        with Gateway(*self.config(stays + goes)) as gateway:
            self.tools(gateway)
            answers = []
            caller = threading.Thread(target=lambda: answers.append(gateway.call("goes__wait")))
            caller.start()
            with open(self.path("held"), "w"):
                self.reload(gateway, stays)
                self.assertNotIn("goes__wait", self.tools(gateway))
                self.assertEqual(answers, [])
            caller.join(DEADLINE)
        self.assertIn('"done"', answers[0])

    def test_a_fifo_as_the_file_is_refused_and_holds_up_neither_reloads_nor_the_end(self):
        with Gateway(*self.config(self.named("s"))) as gateway:
            pid = self.pid(gateway, "s")
            os.remove(self.path("gateway.toml"))
            os.mkfifo(self.path("gateway.toml"))
            gateway.process.send_signal(signal.SIGHUP)
            self.until(lambda: any("it is a FIFO, not a regular file" in line for line in list(gateway.lines)))
            self.assertEqual(self.pid(gateway, "s"), pid)
            os.remove(self.path("gateway.toml"))
            self.reload(gateway, self.named("s") + self.named("t"))
            self.assertIn("content", json.loads(gateway.call("t__odd"))["result"])
            os.remove(self.path("gateway.toml"))
            os.mkfifo(self.path("gateway.toml"))
            gateway.process.send_signal(signal.SIGHUP)
            gateway.process.send_signal(signal.SIGTERM)
            self.assertEqual(gateway.process.wait(DEADLINE), 0)

    def test_a_broken_file_keeps_the_old_configuration_and_says_why(self):
        with Gateway(*self.config(self.named("s"))) as gateway:
            pid = self.pid(gateway, "s")
            for broken, why in (
                ("[servers.s]\ncomand = 'x'\n", "comand"),
                ("[[[", "gateway.toml"),
                ("[" + "a." * 100_000 + "a]\n", "gateway.toml:1: nests deeper than max_config_depth (64)"),
                ("#" * (1 << 20) + "\n", "has more than max_config_bytes (1048576)"),
            ):
                self.reload(gateway, broken, "configuration not reloaded")
                self.assertIn(why, [line for line in gateway.lines if "configuration not reloaded" in line][-1])
                self.assertEqual(self.pid(gateway, "s"), pid)
            os.remove(self.path("gateway.toml"))
            gateway.process.send_signal(signal.SIGHUP)
            self.until(lambda: sum("configuration not reloaded" in line for line in list(gateway.lines)) == 5)
            self.assertEqual(self.pid(gateway, "s"), pid)

    def test_a_large_file_does_not_hold_the_loop(self):
        many = "".join(f'[servers.s{i}]\nurl = "http://127.0.0.1:1/mcp"\nenabled = false\n' for i in range(15_000))
        self.assertGreater(len(many), 900_000)
        with Gateway(*self.config(self.named("s"))) as gateway:
            self.reload(gateway, self.named("s") + many)
            health = json.loads(gateway.get("/health"))
        # Reading it takes several times as long.
        self.assertLess(health["loop"]["longest_turn_ms"], 100, health["loop"])

    def test_keys_that_need_a_restart_are_named(self):
        with Gateway(*self.config(self.named("s"))) as gateway:
            changed = 'drain_grace = "1s"\nsocket_mode = "0660"\nlimits.max_noise_frames = 7\n'
            self.reload(gateway, changed + self.named("s"), "changes need a restart")
            self.assertIn('keys="socket_mode, drain_grace, limits"', "".join(gateway.lines))

    def test_new_connections_have_the_new_certificate_and_an_unusable_one_is_refused(self):
        def install(pem):
            with open(self.path("cert.pem"), "w", encoding="utf-8") as file:
                file.write(pem)

        install(CERTIFICATES[0])
        files = "".join(f'{key} = "{self.path("cert.pem")}"\n' for key in ("tls_certificate", "tls_key"))
        text = files + self.named("s")
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
        shown = lambda: ssl.get_server_certificate(("127.0.0.1", port)).strip()
        certificate = lambda pem: re.search(r"-----BEGIN CERTIFICATE.*END CERTIFICATE-----", pem, re.S)[0]

        def hang_up(expected):
            process.send_signal(signal.SIGHUP)
            while True:
                line = process.stderr.readline().decode()
                self.assertTrue(line)
                if expected in line:
                    return

        self.assertEqual(shown(), certificate(CERTIFICATES[0]))
        install(CERTIFICATES[1])
        hang_up("configuration reloaded")
        self.assertEqual(shown(), certificate(CERTIFICATES[1]))
        install("nothing of the kind")
        hang_up("configuration not reloaded")
        self.assertEqual(shown(), certificate(CERTIFICATES[1]))

    def test_a_log_file_that_was_renamed_is_opened_again(self):
        log = self.path("gateway.log")
        with open(log, "w", encoding="utf-8") as file:
            process = program.start("serve", "--listen", "127.0.0.1:0", *self.config(self.named("s")), stderr=file)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)

        def read(path):
            if not os.path.exists(path):
                return ""
            with open(path, encoding="utf-8") as file:
                return file.read()

        self.until(lambda: "endpoint=" in read(log))
        os.rename(log, log + ".1")
        process.send_signal(signal.SIGHUP)
        self.until(lambda: "configuration reloaded" in read(log))
        self.assertNotIn("configuration reloaded", read(log + ".1"))


class HangingUp(ServeTest):
    def start_on_terminal(self, *args, ignore=False):
        """The program in a session of its own, whose terminal is ours to close. Its log is a file."""
        ours, theirs = pty.openpty()

        def become_owner():
            os.setsid()
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
            if ignore:
                signal.signal(signal.SIGHUP, signal.SIG_IGN)

        with open(self.path("log"), "w", encoding="utf-8") as log:
            process = program.start("serve", "--listen", "127.0.0.1:0", *args, stdin=theirs, stdout=theirs, stderr=log, preexec_fn=become_owner)
        os.close(theirs)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_for("endpoint=")
        return process, ours

    def wait_for(self, what, times=1):
        end = time.monotonic() + DEADLINE
        while True:
            with open(self.path("log"), encoding="utf-8") as log:
                if log.read().count(what) >= times:
                    return
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.01)

    def test_a_terminal_that_closes_ends_it_with_status_0(self):
        process, ours = self.start_on_terminal(*self.config(self.server()))
        os.close(ours)
        self.assertEqual(process.wait(DEADLINE), 0)
        self.wait_for("shutting down")

    def test_with_its_terminal_open_it_reloads(self):
        process, ours = self.start_on_terminal(*self.config(self.server()))
        process.send_signal(signal.SIGHUP)
        self.wait_for("configuration reloaded")
        self.assertIsNone(process.poll())
        os.close(ours)
        self.assertEqual(process.wait(DEADLINE), 0)

    def test_under_nohup_it_outlives_its_terminal_and_reloads_later(self):
        process, ours = self.start_on_terminal(*self.config(self.server()), ignore=True)
        os.close(ours)
        process.send_signal(signal.SIGHUP)
        while process.poll() is None:
            process.send_signal(signal.SIGHUP)  # the first one may have been for the terminal
            with open(self.path("log"), encoding="utf-8") as log:
                if "configuration reloaded" in log.read():
                    break
            time.sleep(0.01)
        self.assertIsNone(process.poll())

    def test_without_a_file_to_reload_it_ends(self):
        with Gateway() as gateway:
            gateway.process.send_signal(signal.SIGHUP)
            self.assertEqual(gateway.process.wait(DEADLINE), 0)


if __name__ == "__main__":
    unittest.main()
