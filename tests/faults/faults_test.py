#!/usr/bin/env python3
"""Servers that misbehave, behind the gateway: whatever they do, no process is left behind, no call is lost without its
error, and others are served (R4.3, R10, R11.3). Run as `faults_test.py PROGRAM [TEST…]`."""
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
    def start(self, *ways, extra="", args=(), head="", env=None):
        """A gateway with a server for each way, called by it, and a good one."""
        text = head
        for way in ("good", *ways):
            words = way.split(":", 1)
            arguments = json.dumps([os.path.join(HERE, "bad_server.py"), *words])
            text += f'[servers.{words[0].replace("_", "-")}]\ncommand = "{sys.executable}"\nargs = {arguments}\n'
            text += extra if words[0] != "good" else ""
        return self.start_gateway(text, *args, environment=env)


LEAVERS = ("stubborn", "launcher", "double_fork", "escapes", "forks")


class NothingIsLeftBehind(FaultTest):
    """Each kind of server that would outlive its owner, and each way the owner can end."""

    def run_and_end(self, way, how):
        gateway = self.start(way)
        self.assertIn(f"{way.replace('_', '-')}__pid", gateway.tools())
        gateway.text(f"{way.replace('_', '-')}__pid")
        status = gateway.end(how)
        self.assert_nothing_left(4)
        return status

    def test_after_sigterm(self):
        for way in LEAVERS:
            with self.subTest(way):
                self.assertEqual(self.run_and_end(way, signal.SIGTERM), 0)

    def test_after_sigkill(self):
        for way in LEAVERS:
            with self.subTest(way):
                self.run_and_end(way, signal.SIGKILL)

    def test_at_any_moment(self):
        rounds = int(os.environ.get("FAIRLEAD_FAULT_ROUNDS", "100"))
        for round in range(rounds):
            gateway = self.start("stubborn", "escapes")
            # From the first breath to well after all servers run.
            threading.Event().wait(random.Random(round).uniform(0, 0.25))
            gateway.end(signal.SIGKILL if round % 4 else signal.SIGTERM)
            self.assert_nothing_left(5)

    def test_the_gateway_has_no_zombies(self):
        gateway = self.start("exits_after_calls")
        for _ in range(20):
            gateway.call("exits-after-calls__pid")
        pids = subprocess.run(["ps", "-o", "stat=", "--ppid", str(gateway.process.pid)], capture_output=True, text=True).stdout
        self.assertNotIn("Z", pids)
        self.assert_ends_clean(gateway)


class TheKeeperIsAttacked(FaultTest):
    """Any process of the same user can stop or kill the process that owns the servers."""

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

    def test_stopped_and_the_gateway_killed_leaves_nothing(self):
        gateway = self.run_with_stopped_keeper()
        gateway.end(signal.SIGKILL)
        self.assert_nothing_left(4)

    def test_stopped_and_the_gateway_terminated_leaves_nothing(self):
        gateway = self.run_with_stopped_keeper()
        before = time.monotonic()
        self.assertEqual(gateway.end(), 0)
        self.assertLess(time.monotonic() - before, 8)
        self.assert_nothing_left(1)

    def test_stopped_costs_no_call(self):
        gateway = self.run_with_stopped_keeper()
        first = int(gateway.text("good__pid"))
        os.kill(first, signal.SIGKILL)
        self.assertNotEqual(int(gateway.text("good__pid")), first)
        self.assert_ends_clean(gateway)

    def test_killed_alone_leaves_nothing_even_without_a_cgroup(self):
        number = self.path("number")
        gateway = self.start(f"vanishes:{number}", extra='containment.cgroup = "off"\n')
        self.assertTrue(until(lambda: "vanishes__pid" in gateway.tools() and os.path.exists(number)))
        with open(number, encoding="utf-8") as file:
            stray = f"/proc/{int(file.read())}"
        self.assertTrue(os.path.exists(stray))
        os.kill(self.keeper_of(gateway), signal.SIGKILL)
        gone = until(lambda: not os.path.exists(stray), 10)
        if not gone:
            os.kill(int(stray[6:]), signal.SIGKILL)
        self.assertTrue(gone)
        gateway.text("vanishes__pid")
        self.keeper_of(gateway)  # the new one is the only child: nothing is left unreaped
        self.assert_ends_clean(gateway)

    def test_the_missing_protection_is_in_health(self):
        gateway = self.start()
        gateway.text("good__pid")
        [server] = json.loads(gateway.ask("GET", "/health"))["servers"]
        self.assertIn("landlock is off", server["missingProtection"])
        self.assert_ends_clean(gateway)


class CallsAreNotLost(FaultTest):
    def test_a_child_killed_while_idle_is_replaced_for_the_next_call(self):
        gateway = self.start()
        first = int(gateway.text("good__pid"))
        os.kill(first, signal.SIGKILL)
        self.assertNotEqual(int(gateway.text("good__pid")), first)
        self.assert_ends_clean(gateway)

    def test_a_child_that_dies_in_a_call_leaves_its_last_words_and_the_next_call_works(self):
        gateway = self.start()
        gateway.tools()
        error = gateway.call("good__die")["error"]
        self.assertEqual((error["data"]["exitStatus"], error["data"]["stderr"]), (3, ["last words"]))
        self.assertIn("remedy", error["data"])
        gateway.text("good__pid")
        self.assert_ends_clean(gateway)

    def test_a_server_that_never_answers_costs_one_call_its_deadline_and_is_kept(self):
        seen = self.path("seen")
        gateway = self.start(f"slow:{seen}", extra='clocks.idle = "300ms"\n')
        gateway.tools()
        pid = gateway.text("slow__pid")
        error = gateway.call("slow__hang")["error"]
        self.assertEqual(error["data"]["kind"], "timed out")
        self.assertTrue(until(lambda: os.path.exists(seen)))  # it was told
        self.assertEqual(gateway.text("slow__pid"), pid)
        self.assert_ends_clean(gateway)

    def test_progress_rearms_the_idle_clock_although_the_client_sent_no_token(self):
        gateway = self.start("slow", extra='clocks.idle = "1500ms"\n')
        answer = gateway.call("slow__ticks")  # which fails to parse if there is anything but the answer
        self.assertIn("result", answer)
        self.assert_ends_clean(gateway)

    def test_a_server_that_exits_after_each_call_serves_each_call(self):
        gateway = self.start("exits_after_calls")
        gateway.tools()
        pids = {gateway.text("exits-after-calls__pid") for _ in range(5)}
        self.assertEqual(len(pids), 5)
        self.assert_ends_clean(gateway)

    def test_many_first_calls_at_once_start_one_process(self):
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
        self.assert_ends_clean(gateway)

    def test_five_megabytes_of_text_come_through_whole(self):
        gateway = self.start()
        gateway.tools()
        self.assertEqual(gateway.text("good__big"), "ä" * (5 * 1024 * 1024 // 2))
        self.assert_ends_clean(gateway)

    def test_two_megabytes_on_stderr_block_nobody(self):
        gateway = self.start()
        gateway.tools()
        self.assertEqual(gateway.text("good__shout"), "shouted")
        self.assert_ends_clean(gateway)
        # The log has some of it, and says how much it does not have.
        logged = sum("info stderr child=good " in line for line in gateway.log)
        dropped = sum(int(found[1]) for line in gateway.log if (found := re.search(r"stderr lines dropped.* dropped=(\d+)", line)))
        self.assertEqual(logged + dropped, 20_001)
        self.assertLess(logged, 5000)


class OthersAreServed(FaultTest):
    """While one server is broken, the list comes without it and the good one answers."""

    def check(self, way, extra="", head='list_wait = "500ms"\n'):
        gateway = self.start(way, extra=extra, head=head)
        # On a busy machine the good one may be late, too: then it comes with a change of the list.
        self.assertTrue(until(lambda: "good__pid" in gateway.tools()))
        gateway.text("good__pid")
        return gateway

    def test_one_dies_in_the_handshake(self):
        gateway = self.check("dies_in_handshake")
        self.assertTrue(until(lambda: "no licence" in self.last_error(gateway, "dies-in-handshake")))
        self.assertIn("code: exited_in_handshake\n", self.last_error(gateway, "dies-in-handshake"))
        self.assert_ends_clean(gateway)

    def test_one_answers_the_handshake_and_then_nothing(self):
        self.assert_ends_clean(self.check("mute"))

    def last_error(self, gateway, name):
        servers = json.loads(gateway.ask("GET", "/health"))["servers"]
        return next(server for server in servers if server["name"] == name).get("lastError", "")

    def test_one_never_reads_and_is_told_of_with_its_last_words(self):
        gateway = self.check("never_reads", extra='clocks.handshake = "2s"\n')
        self.assertTrue(until(lambda: "handshake_timeout" in self.last_error(gateway, "never-reads")))
        self.assertIn("warming up", self.last_error(gateway, "never-reads"))
        self.assertIn("remedy: ", self.last_error(gateway, "never-reads"))
        self.assert_ends_clean(gateway)

    def test_one_is_slow_to_start_and_comes_with_a_change_of_the_list(self):
        gate = self.path("gate")
        gateway = self.check(f"waits:{gate}")
        self.assertNotIn("waits__pid", gateway.tools())
        with open(gate, "w", encoding="utf-8"):
            pass
        self.assertTrue(until(lambda: "waits__pid" in gateway.tools()))
        gateway.text("waits__pid")
        self.assert_ends_clean(gateway)

    def test_call_waits_for_a_server_that_starts_later_than_list_wait(self):
        gate = self.path("gate")
        gateway = self.check(f"waits:{gate}")
        answers = []
        caller = threading.Thread(target=lambda: answers.append(gateway.text("waits__pid")))
        caller.start()
        self.assertTrue(until(lambda: any(server["name"] == "waits" and server["waiting"] > 1
                                          for server in json.loads(gateway.ask("GET", "/health"))["servers"])))
        self.assertNotIn("waits__pid", gateway.tools())
        self.assertEqual(answers, [])
        with open(gate, "w", encoding="utf-8"):
            pass
        caller.join(DEADLINE)
        self.assertEqual(len(answers), 1)
        self.assert_ends_clean(gateway)

    def test_call_to_a_server_that_dies_in_the_handshake_fails_with_its_last_words(self):
        gateway = self.check("dies_in_handshake")
        error = gateway.call("dies-in-handshake__pid")["error"]
        self.assertEqual(error["code"], -32603)
        self.assertIn("no licence", json.dumps(error))
        self.assertEqual(gateway.call("nobody__pid")["error"]["code"], -32602)
        self.assert_ends_clean(gateway)

    def test_one_prints_a_hundred_megabytes_of_banner(self):
        self.assert_ends_clean(self.check("banner"))

    def test_one_does_not_exist(self):
        gateway = self.start(head='list_wait = "500ms"\n[servers.missing]\ncommand = "/no/such/program"\n')
        self.assertTrue(until(lambda: "good__pid" in gateway.tools()))
        self.assertTrue(until(lambda: "/no/such/program" in self.last_error(gateway, "missing")))
        self.assert_ends_clean(gateway)


class AGatewayAmongTheServers(FaultTest):
    """A server that is a gateway itself does not start gateways without end."""

    def nested(self, *args, env=None):
        arguments = json.dumps(["serve", "--stdio", *args])
        return self.start(head=f'list_wait = "500ms"\n[servers.inner]\ncommand = "{PROGRAM}"\nargs = {arguments}\n', env=env)

    def nested_gateways(self):
        """Processes of this test that run `fairlead serve --stdio`."""
        found = 0
        for pid in self.survivors():
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    found += file.read().startswith(f"{PROGRAM}\0serve\0--stdio".encode())
        return found

    def test_it_does_not_inherit_our_configuration(self):
        gateway = self.nested(env={"FAIRLEAD_CONFIG": self.path("gateway.toml")})
        # Without a configuration it has the server of the demo.
        self.assertTrue(until(lambda: any(name.startswith("inner__demo__") for name in gateway.tools()), 20))
        self.assertEqual(self.nested_gateways(), 1)
        self.assert_ends_clean(gateway)

    def test_one_that_starts_itself_stops_at_max_nesting(self):
        gateway = self.nested("--config", self.path("gateway.toml"))
        self.assertTrue(until(lambda: gateway.tools() and any("max_nesting" in line for line in gateway.log), 20))
        self.assertLessEqual(self.nested_gateways(), 4)
        gateway.text("good__pid")
        self.assert_ends_clean(gateway)


if __name__ == "__main__":
    enter_namespace(__file__)
    unittest.main()
