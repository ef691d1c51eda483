#!/usr/bin/env python3
"""Tests of the gateway with servers that misbehave: no process is left behind, every failed call gets an error, and
the other servers still work (R4.3, R10, R11.3). Run as `faults_test.py PROGRAM [TEST…]`."""
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))

from gateway import DEADLINE, PROGRAM, GatewayTest, enter_namespace, until


class FaultTest(GatewayTest):
    def start(self, *modes, extra="", args=(), head="", env=None):
        """Starts a gateway with one server for each mode, named after it, and one good server."""
        text = head
        for mode in ("good", *modes):
            words = mode.split(":", 1)
            arguments = json.dumps([os.path.join(HERE, "bad_server.py"), *words])
            text += f'[servers.{words[0].replace("_", "-")}]\ncommand = "{sys.executable}"\nargs = {arguments}\n'
            text += extra if words[0] != "good" else ""
        return self.start_gateway(text, *args, environment=env)


SURVIVOR_MODES = ("stubborn", "launcher", "double_fork", "escapes", "forks")


class NoSurvivorsTest(FaultTest):
    """Tests each kind of server that would survive the gateway, with each signal that ends the gateway."""

    def run_and_end(self, mode, signal_number):
        gateway = self.start(mode)
        self.assertIn(f"{mode.replace('_', '-')}__pid", gateway.tools())
        gateway.text(f"{mode.replace('_', '-')}__pid")
        status = gateway.end(signal_number)
        self.assert_no_survivors(4)
        return status

    def test_no_server_process_survives_sigterm_of_gateway(self):
        for mode in SURVIVOR_MODES:
            with self.subTest(mode):
                self.assertEqual(self.run_and_end(mode, signal.SIGTERM), 0)

    def test_no_server_process_survives_sigkill_of_gateway(self):
        for mode in SURVIVOR_MODES:
            with self.subTest(mode):
                self.run_and_end(mode, signal.SIGKILL)

    def test_no_server_process_survives_gateway_killed_at_random_time(self):
        rounds = int(os.environ.get("FAIRLEAD_FAULT_ROUNDS", "100"))
        for round in range(rounds):
            gateway = self.start("stubborn", "escapes")
            # A random time between the start of the gateway and well after the start of all servers.
            threading.Event().wait(random.Random(round).uniform(0, 0.25))
            gateway.end(signal.SIGKILL if round % 4 else signal.SIGTERM)
            self.assert_no_survivors(5)

    def test_gateway_reaps_exited_servers(self):
        gateway = self.start("exits_after_calls")
        for _ in range(20):
            gateway.call("exits-after-calls__pid")
        pids = subprocess.run(["ps", "-o", "stat=", "--ppid", str(gateway.process.pid)], capture_output=True, text=True).stdout
        self.assertNotIn("Z", pids)
        self.assert_exits_cleanly(gateway)


class KeeperAttackTest(FaultTest):
    """Any process of the same user can stop or kill the keeper, which owns the servers."""

    def keeper_of(self, gateway):
        pid = gateway.process.pid
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            children = file.read().split()
        self.assertEqual(len(children), 1, children)
        return int(children[0])

    def run_with_stopped_keeper(self):
        gateway = self.start("stubborn", "escapes", head='drain_grace = "1s"\n')
        self.assertTrue(until(lambda: {"stubborn__pid", "escapes__pid"} <= set(gateway.tools())))
        os.kill(self.keeper_of(gateway), signal.SIGSTOP)
        return gateway

    def test_no_process_survives_when_keeper_is_stopped_and_gateway_is_killed(self):
        gateway = self.run_with_stopped_keeper()
        gateway.end(signal.SIGKILL)
        self.assert_no_survivors(4)

    def test_no_process_survives_when_keeper_is_stopped_and_gateway_is_terminated(self):
        gateway = self.run_with_stopped_keeper()
        before = time.monotonic()
        self.assertEqual(gateway.end(), 0)
        self.assertLess(time.monotonic() - before, 8)
        self.assert_no_survivors(1)

    def test_call_restarts_server_while_keeper_is_stopped(self):
        gateway = self.run_with_stopped_keeper()
        first = int(gateway.text("good__pid"))
        os.kill(first, signal.SIGKILL)
        self.assertNotEqual(int(gateway.text("good__pid")), first)
        self.assert_exits_cleanly(gateway)

    def test_orphan_is_killed_when_keeper_is_killed_without_cgroup(self):
        pid_file = self.path("pid")
        gateway = self.start(f"vanishes:{pid_file}", extra='containment.cgroup = "off"\n')
        self.assertTrue(until(lambda: "vanishes__pid" in gateway.tools() and os.path.exists(pid_file)))
        with open(pid_file, encoding="utf-8") as file:
            stray = f"/proc/{int(file.read())}"
        self.assertTrue(os.path.exists(stray))
        os.kill(self.keeper_of(gateway), signal.SIGKILL)
        gone = until(lambda: not os.path.exists(stray), 10)
        if not gone:
            os.kill(int(stray[6:]), signal.SIGKILL)
        self.assertTrue(gone)
        gateway.text("vanishes__pid")
        self.keeper_of(gateway)  # the new keeper is the only child: the old one has been reaped
        self.assert_exits_cleanly(gateway)

    def test_health_reports_missing_protection(self):
        gateway = self.start()
        gateway.text("good__pid")
        [server] = json.loads(gateway.http_request("GET", "/health"))["servers"]
        self.assertIn("landlock is off", server["missingProtection"])
        self.assert_exits_cleanly(gateway)


class CallRecoveryTest(FaultTest):
    def test_next_call_restarts_server_killed_while_idle(self):
        gateway = self.start()
        first = int(gateway.text("good__pid"))
        os.kill(first, signal.SIGKILL)
        self.assertNotEqual(int(gateway.text("good__pid")), first)
        self.assert_exits_cleanly(gateway)

    def test_call_fails_with_stderr_when_server_dies_and_next_call_succeeds(self):
        gateway = self.start()
        gateway.tools()
        error = gateway.call("good__die")["error"]
        self.assertEqual((error["data"]["exitStatus"], error["data"]["stderr"]), (3, ["last words"]))
        self.assertIn("remedy", error["data"])
        gateway.text("good__pid")
        self.assert_exits_cleanly(gateway)

    def test_call_times_out_and_server_keeps_running_when_server_never_answers(self):
        seen = self.path("seen")
        gateway = self.start(f"slow:{seen}", extra='clocks.idle = "300ms"\n')
        gateway.tools()
        pid = gateway.text("slow__pid")
        error = gateway.call("slow__hang")["error"]
        self.assertEqual(error["data"]["kind"], "timed out")
        self.assertTrue(until(lambda: os.path.exists(seen)))  # the server was notified of the cancellation
        self.assertEqual(gateway.text("slow__pid"), pid)
        self.assert_exits_cleanly(gateway)

    def test_progress_resets_idle_timeout_when_client_sent_no_token(self):
        gateway = self.start("slow", extra='clocks.idle = "1500ms"\n')
        answer = gateway.call("slow__ticks")  # parsing fails if anything but the response arrives
        self.assertIn("result", answer)
        self.assert_exits_cleanly(gateway)

    def test_each_call_succeeds_when_server_exits_after_each_call(self):
        gateway = self.start("exits_after_calls")
        gateway.tools()
        pids = {gateway.text("exits-after-calls__pid") for _ in range(5)}
        self.assertEqual(len(pids), 5)
        self.assert_exits_cleanly(gateway)

    def test_concurrent_first_calls_start_one_process(self):
        count = self.path("count")
        gateway = self.start(f"counts:{count}")
        gateway.tools()
        answers = []
        callers = [threading.Thread(target=lambda: answers.append(gateway.text("counts__pid"))) for _ in range(100)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(DEADLINE)
        self.assertEqual((len(answers), len(set(answers))), (100, 1))
        with open(count, encoding="utf-8") as file:
            self.assertEqual(file.read(), "x")
        self.assert_exits_cleanly(gateway)

    def test_result_of_five_megabytes_is_forwarded_unchanged(self):
        gateway = self.start()
        gateway.tools()
        self.assertEqual(gateway.text("good__big"), "ä" * (5 * 1024 * 1024 // 2))
        self.assert_exits_cleanly(gateway)

    def test_call_succeeds_when_server_writes_two_megabytes_to_stderr(self):
        gateway = self.start()
        gateway.tools()
        self.assertEqual(gateway.text("good__shout"), "shouted")
        self.assert_exits_cleanly(gateway)
        # The log contains some of the lines, and the number of dropped lines.
        logged = sum("info stderr child=good " in line for line in gateway.log)
        dropped = sum(int(found[1]) for line in gateway.log if (found := re.search(r"stderr lines dropped.* dropped=(\d+)", line)))
        self.assertEqual(logged + dropped, 20_001)
        self.assertLess(logged, 5000)


class ServerIsolationTest(FaultTest):
    """While one server is broken, tools/list omits it and the good server works."""

    def start_with_broken_server(self, mode, extra="", head='list_wait = "500ms"\n'):
        gateway = self.start(mode, extra=extra, head=head)
        # On a busy machine the good server can be slow too; then a later list contains it.
        self.assertTrue(until(lambda: "good__pid" in gateway.tools()))
        gateway.text("good__pid")
        return gateway

    def test_others_are_served_when_one_dies_in_handshake(self):
        gateway = self.start_with_broken_server("dies_in_handshake")
        self.assertTrue(until(lambda: "no licence" in self.last_error(gateway, "dies-in-handshake")))
        self.assertIn("code: exited_in_handshake\n", self.last_error(gateway, "dies-in-handshake"))
        self.assert_exits_cleanly(gateway)

    def test_others_are_served_when_one_never_answers_after_handshake(self):
        self.assert_exits_cleanly(self.start_with_broken_server("mute"))

    def last_error(self, gateway, name):
        servers = json.loads(gateway.http_request("GET", "/health"))["servers"]
        return next(server for server in servers if server["name"] == name).get("lastError", "")

    def test_health_has_stderr_and_remedy_when_server_never_reads(self):
        gateway = self.start_with_broken_server("never_reads", extra='clocks.handshake = "2s"\n')
        self.assertTrue(until(lambda: "handshake_timeout" in self.last_error(gateway, "never-reads")))
        self.assertIn("warming up", self.last_error(gateway, "never-reads"))
        self.assertIn("remedy: ", self.last_error(gateway, "never-reads"))
        self.assert_exits_cleanly(gateway)

    def test_server_that_starts_slowly_is_added_to_list_later(self):
        start_file = self.path("start")
        gateway = self.start_with_broken_server(f"waits:{start_file}")
        self.assertNotIn("waits__pid", gateway.tools())
        with open(start_file, "w", encoding="utf-8"):
            pass
        self.assertTrue(until(lambda: "waits__pid" in gateway.tools()))
        gateway.text("waits__pid")
        self.assert_exits_cleanly(gateway)

    def test_call_waits_for_server_that_starts_later_than_list_wait(self):
        start_file = self.path("start")
        gateway = self.start_with_broken_server(f"waits:{start_file}")
        answers = []
        caller = threading.Thread(target=lambda: answers.append(gateway.text("waits__pid")))
        caller.start()
        self.assertTrue(until(lambda: any(server["name"] == "waits" and server["waiting"] > 1
                                          for server in json.loads(gateway.http_request("GET", "/health"))["servers"])))
        self.assertNotIn("waits__pid", gateway.tools())
        self.assertEqual(answers, [])
        with open(start_file, "w", encoding="utf-8"):
            pass
        caller.join(DEADLINE)
        self.assertEqual(len(answers), 1)
        self.assert_exits_cleanly(gateway)

    def test_call_fails_with_stderr_when_server_dies_in_handshake(self):
        gateway = self.start_with_broken_server("dies_in_handshake")
        error = gateway.call("dies-in-handshake__pid")["error"]
        self.assertEqual(error["code"], -32603)
        self.assertIn("no licence", json.dumps(error))
        self.assertEqual(gateway.call("nobody__pid")["error"]["code"], -32602)
        self.assert_exits_cleanly(gateway)

    def test_others_are_served_when_one_prints_a_banner_of_100_megabytes(self):
        self.assert_exits_cleanly(self.start_with_broken_server("banner"))

    def test_others_are_served_when_program_of_one_does_not_exist(self):
        gateway = self.start(head='list_wait = "500ms"\n[servers.missing]\ncommand = "/no/such/program"\n')
        self.assertTrue(until(lambda: "good__pid" in gateway.tools()))
        self.assertTrue(until(lambda: "/no/such/program" in self.last_error(gateway, "missing")))
        self.assert_exits_cleanly(gateway)


class NestedGatewayTest(FaultTest):
    """A server that is itself a gateway does not start gateways without limit."""

    def nested(self, *args, env=None):
        arguments = json.dumps(["serve", "--stdio", *args])
        return self.start(head=f'list_wait = "500ms"\n[servers.inner]\ncommand = "{PROGRAM}"\nargs = {arguments}\n', env=env)

    def nested_gateways(self):
        """Returns the number of processes of this test that run `fairlead serve --stdio`."""
        found = 0
        for pid in self.survivors():
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    found += file.read().startswith(f"{PROGRAM}\0serve\0--stdio".encode())
        return found

    def test_nested_gateway_does_not_inherit_configuration(self):
        gateway = self.nested(env={"FAIRLEAD_CONFIG": self.path("gateway.toml")})
        # Without a configuration the inner gateway has the demo server.
        self.assertTrue(until(lambda: any(name.startswith("inner__demo__") for name in gateway.tools()), 20))
        self.assertEqual(self.nested_gateways(), 1)
        self.assert_exits_cleanly(gateway)

    def test_gateway_that_starts_itself_stops_at_max_nesting(self):
        gateway = self.nested("--config", self.path("gateway.toml"))
        self.assertTrue(until(lambda: gateway.tools() and any("max_nesting" in line for line in gateway.log), 20))
        self.assertLessEqual(self.nested_gateways(), 4)
        gateway.text("good__pid")
        self.assert_exits_cleanly(gateway)


if __name__ == "__main__":
    enter_namespace(__file__)
    unittest.main()
