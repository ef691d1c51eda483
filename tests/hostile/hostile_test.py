#!/usr/bin/env python3
"""Servers, upstreams and clients that attack the gateway: it stays alive, others are served, memory and the time on the loop
stay within their bounds, nothing is left behind (R11.3, R14). Run as `hostile_test.py PROGRAM [TEST…]`; in a build with a
sanitizer with FAIRLEAD_TEST_SANITIZED=1, which leaves out the bounds on memory and time."""
import contextlib
import json
import os
import signal
import socket
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True

from harness import DEADLINE, META, PROGRAM, SANITIZED, HostileTest, enter_namespace, until
from hostile_upstream import Upstream


class HostileStdioServer(HostileTest):
    def attack_by_call(self, attack, extra="", answered=True):
        """Calls the tool that sets the attack off; the attack ends before its answer."""
        gateway = self.start_listed(self.server("bad", attack, extra=extra))
        answer = self.assert_others_served_during(gateway, lambda: gateway.call("bad__go"))
        self.assertIn("result" if answered else "error", answer)
        return gateway

    def test_notification_flood_does_not_starve_others(self):
        self.assert_ends_clean(self.attack_by_call("notifications"))

    def test_progress_flood_does_not_starve_others(self):
        self.assert_ends_clean(self.attack_by_call("progress"))

    def test_batch_of_millions_of_elements_is_refused(self):
        self.assert_ends_clean(self.attack_by_call("batch"))

    def test_error_of_megabytes_is_cut_to_its_code(self):
        gateway = self.start_listed(self.server("bad", "huge_error"))
        answer = self.assert_others_served_during(gateway, lambda: gateway.call("bad__go"))
        self.assertEqual(answer["error"]["code"], -1)
        self.assertIn("max_error_bytes", answer["error"]["message"])
        self.assert_ends_clean(gateway)

    def test_crash_with_many_calls_under_way_does_not_hold_the_loop(self):
        gateway = self.start_listed(self.server("bad", "crash_with_calls"))
        errors = []
        waiting = [threading.Thread(target=lambda: errors.append(gateway.call("bad__wait")["error"])) for _ in range(200)]

        def attack():
            for caller in waiting:
                caller.start()
            self.assertTrue(until(lambda: self.calls_at(gateway, "bad") >= len(waiting)))
            gateway.call("bad__go")
            for caller in waiting:
                caller.join(DEADLINE)

        self.assert_others_served_during(gateway, attack)
        self.assertEqual({error["data"]["exitStatus"] for error in errors}, {7})
        self.assertEqual(len(errors), len(waiting))
        self.assert_ends_clean(gateway)

    def calls_at(self, gateway, name):
        return next(server for server in gateway.health()["servers"] if server["name"] == name)["calls"]

    def test_list_change_flood_does_not_starve_others(self):
        self.assert_ends_clean(self.attack_by_call("list_changes"))

    def test_noise_flood_ends_the_connection_with_the_limit_named(self):
        gateway = self.start_listed(self.server("bad", "noise"))
        answer = self.assert_others_served_during(gateway, lambda: gateway.call("bad__go"))
        self.assertIn("max_noise_frames", json.dumps(answer))
        self.assert_ends_clean(gateway)

    def test_answers_with_huge_unknown_ids_do_not_flood_the_log(self):
        gateway = self.attack_by_call("huge_ids")
        self.assertLess(gateway.log_bytes, 1 << 20)
        self.assert_ends_clean(gateway)

    def test_stderr_flood_does_not_flood_the_log_and_is_counted(self):
        gateway = self.attack_by_call("stderr")
        self.assertLess(gateway.log_bytes, 4 << 20)
        self.assert_logged(gateway, "dropped")
        self.assertFalse(any("\x1b" in line or "\x9b" in line for line in gateway.log))
        self.assert_ends_clean(gateway)

    def test_template_with_sixty_thousand_variables_is_left_out(self):
        gateway = self.start_listed(self.server("bad", "template_bomb"))
        read = lambda: gateway.post("resources/read", uri="bomb://x/" + "a" * 4000)
        answer = self.assert_others_served_during(gateway, read)
        self.assertIn("error", answer)
        self.assert_logged(gateway, "left out: `bomb://x/")
        self.assert_ends_clean(gateway)

    def test_long_uri_is_refused_with_the_limit_named(self):
        gateway = self.start_listed(self.server("bad", "honest_template"))
        read = lambda: gateway.post("resources/read", uri="bomb://x/" + "a-" * 5_000)
        answer = self.assert_others_served_during(gateway, read)
        self.assertEqual(answer["error"]["code"], -32602)
        self.assertIn("max_uri_bytes", json.dumps(answer))
        self.assert_ends_clean(gateway)

    def test_deep_schema_costs_no_call_its_time(self):
        gateway = self.start_listed(self.server("bad", "deep_schema"))
        self.assert_others_served_during(gateway, lambda: [gateway.call("bad__deep", a=1) for _ in range(5)])
        self.assert_ends_clean(gateway)

    def test_hundred_thousand_tools_do_not_hold_the_loop(self):
        gateway = self.start(self.server("bad", "many_tools"))
        self.assert_others_served_during(gateway, lambda: self.assert_logged(gateway, "max_list_entries"))
        self.assert_ends_clean(gateway)

    def test_large_lists_of_removed_servers_do_not_hold_the_loop(self):
        gateway = self.start()
        self.reload(gateway, *(self.server(f"bad{n}", "largest_list") for n in range(5)))
        kinds = ("tools", "resources", "prompts")
        self.assertTrue(until(lambda: all(gateway.health()["counts"][kind] >= 5 * 100_000 for kind in kinds), 60))
        self.reload(gateway)
        # The lists are freed in slices while nothing else happens. A turn over the bound is logged.
        slow = lambda: [line for line in gateway.log if "slow turn" in line]
        self.assertFalse(until(slow, 4) and not SANITIZED, slow())
        self.assert_ends_clean(gateway)

    def reload(self, gateway, *tables):
        with open(self.path("gateway.toml"), "w", encoding="utf-8") as file:
            file.write(self.server("good", "none") + "".join(tables))
        gateway.process.send_signal(signal.SIGHUP)

    def test_list_without_end_is_cut(self):
        gateway = self.start(self.server("bad", "endless_pages"))
        self.assert_others_served_during(gateway, lambda: self.assert_logged(gateway, "max_list_pages"))
        self.assert_ends_clean(gateway)

    def test_pattern_made_to_backtrack_does_not_hold_the_loop(self):
        gateway = self.start_listed(self.server("bad", "bad_output_schema"))
        self.assert_others_served_during(gateway, lambda: gateway.call("bad__match"))
        self.assert_ends_clean(gateway)

    def test_server_that_locks_the_manifest_stops_no_start(self):
        manifest = self.path("manifest")
        open(manifest, "w", encoding="utf-8").close()
        gateway = self.start_listed(self.server("bad", "locks_manifest", manifest), args=("--terminator-manifest", manifest))
        pid = int(gateway.text("good__go"))
        os.kill(pid, signal.SIGKILL)
        # Started anew while the lock is held; a call that was sent to the old process may fail.
        self.assertTrue(until(lambda: gateway.call("good__go").get("result", {}).get("content", [{"text": str(pid)}])[0]["text"] != str(pid)))
        self.assert_ends_clean(gateway)

    def test_stopped_keeper_leaves_nothing_behind(self):
        for how in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(how.name):
                gateway = self.start_listed(self.server("bad", "stops_keeper", self.path(how.name), extra='containment.cgroup = "off"\n'))
                gateway.call("bad__go")
                status = gateway.end(how)
                self.assertEqual(status, 0 if how == signal.SIGTERM else -signal.SIGKILL, gateway.log[-10:])
                self.assertTrue(until(lambda: not self.survivors(), 10), f"left behind: {self.survivors()}")

    def test_killed_keeper_leaves_no_detached_grandchild(self):
        name = self.path("grandchild")
        # With a cgroup the grandchild would be found by that.
        gateway = self.start_listed(self.server("bad", "kills_keeper", name, extra='containment.cgroup = "off"\n'))
        gateway.call("bad__go")
        with open(name, encoding="utf-8") as file:
            grandchild = int(file.read())
        self.assertTrue(until(lambda: not is_alive(grandchild)), "the grandchild lives on")
        self.assertTrue(until(lambda: "result" in gateway.call("good__go")))
        self.assert_ends_clean(gateway)

    def test_tool_that_crashes_the_server_is_refused_and_the_others_are_not(self):
        gateway = self.start_listed(self.server("bad", "crashes"), tool="bad__crash")
        codes = []
        for _ in range(8):
            codes.append(gateway.call("bad__crash")["error"]["data"]["code"])
            gateway.text("bad__go")
        self.assertEqual(codes, ["exited"] * 3 + ["tool_crashes"] * 5)
        self.assert_ends_clean(gateway)

    def test_gateway_among_the_servers_does_not_recurse(self):
        table = f'[servers.inner]\ncommand = "{PROGRAM}"\nargs = ["serve", "--stdio"]\n'
        gateway = self.start(table, environment={"FAIRLEAD_CONFIG": self.path("gateway.toml")})
        self.assertTrue(until(lambda: any(tool.startswith("inner__") for tool in gateway.tools())))
        self.assertLess(len(self.survivors()), 12)
        self.assert_ends_clean(gateway)


def is_alive(pid):
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    return False


class HostileHttpUpstream(HostileTest):
    def attack(self, attack):
        upstream = Upstream(attack)
        self.addCleanup(upstream.stop)
        gateway = self.start_listed(f'[servers.bad]\nurl = "{upstream.url}"\nclocks.idle = "{DEADLINE // 2}s"\n')
        answer = self.assert_others_served_during(gateway, lambda: gateway.call("bad__go"))
        return gateway, upstream, answer

    def test_comment_flood_does_not_starve_others(self):
        gateway, _, answer = self.attack("comments")
        self.assertIn("result", answer)
        self.assert_ends_clean(gateway)

    def test_notification_flood_does_not_starve_others(self):
        gateway, _, answer = self.attack("notifications")
        self.assertIn("result", answer)
        self.assert_ends_clean(gateway)

    def test_interim_answers_without_end_are_refused_with_the_limit_named(self):
        gateway, _, answer = self.attack("interim")
        self.assertIn("max_interim_responses", json.dumps(answer))
        self.assert_ends_clean(gateway)

    def test_head_without_end_is_refused(self):
        gateway, _, answer = self.attack("endless_head")
        self.assertIn("error", answer)
        self.assert_ends_clean(gateway)

    def test_answer_over_max_frame_bytes_is_refused(self):
        gateway, _, answer = self.attack("huge_answer")
        self.assertEqual(answer["error"]["data"]["code"], "frame_too_large")
        self.assert_ends_clean(gateway)

    def test_event_without_end_is_refused(self):
        gateway, _, answer = self.attack("endless_line")
        self.assertIn("error", answer)
        self.assert_ends_clean(gateway)

    def test_retry_of_zero_does_not_make_the_gateway_reconnect_without_pause(self):
        begin = time.monotonic()
        gateway, upstream, answer = self.attack("retry_zero")
        self.assertIn("result", answer)
        self.assert_others_served_during(gateway, lambda: [gateway.call("bad__go") for _ in range(200)])
        self.assertLess(upstream.streams, 30 + 10 * (time.monotonic() - begin))  # without a floor: 1,500 a second
        self.assert_ends_clean(gateway)


class HostileClient(HostileTest):
    def connect(self, gateway):
        connection = socket.create_connection(("127.0.0.1", gateway.port), DEADLINE)
        self.addCleanup(connection.close)
        return connection

    def head(self, length, host="127.0.0.1"):
        return (f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
                f"Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n\r\n").encode()  # fmt: skip

    def test_large_calls_under_way_at_once_are_all_answered(self):
        gateway = self.start()
        text = "x" * 3_000_000
        results = []

        def attack():
            callers = [threading.Thread(target=lambda: results.append(gateway.text("good__go", text=text) == text)) for _ in range(8)]
            for caller in callers:
                caller.start()
            for caller in callers:
                caller.join(2 * DEADLINE)

        attack()
        self.assertEqual(results, [True] * 8)
        self.assert_ends_clean(gateway)

    def test_foreign_host_name_is_refused(self):
        gateway = self.start()
        connection = self.connect(gateway)
        connection.sendall(self.head(2, host="attacker.example") + b"{}")
        self.assertRegex(connection.recv(4096), rb"^HTTP/1.1 4(03|21)")
        self.assert_ends_clean(gateway)

    def test_unsendable_requests_leave_the_gateway_alive(self):
        gateway = self.start()

        def attack():
            for junk in (b"\x00" * 70_000, b"GET " + b"/" * 70_000, b"POST /mcp HTTP/1.1\r\n" + b"A: b\r\n" * 20_000,
                         self.head(2 << 30), self.head(10) + b"[" * 10, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):  # fmt: skip
                with contextlib.suppress(OSError):
                    self.connect(gateway).sendall(junk)
            deep = b"[" * 4_000_000
            connection = self.connect(gateway)
            with contextlib.suppress(OSError):
                connection.sendall(self.head(len(deep)) + deep)
                connection.recv(4096)

        self.assert_others_served_during(gateway, attack)
        self.assert_ends_clean(gateway)

    def test_three_hundred_thousand_members_do_not_hold_the_loop(self):
        gateway = self.start()
        arguments = ",".join('"k%d":0' % n for n in range(300_000))
        body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{%s},"name":"good__go","_meta":%s}}' % (arguments, json.dumps(META))
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                   "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "good__go"}  # fmt: skip
        answers = []
        self.assert_others_served_during(gateway, lambda: answers.append(gateway.ask("POST", "/mcp", body, headers)))
        self.assertIn('"result"', answers[0])
        self.assert_ends_clean(gateway)

    def session(self, gateway, revision):
        """The headers of a new session."""
        hello = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        connection = self.connect(gateway)
        body = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}).encode()
        connection.sendall(self.head(len(body)) + body)
        answer = connection.recv(65536).decode()
        session = next(line.split(": ")[1] for line in answer.splitlines() if line.lower().startswith("mcp-session-id"))
        return {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                "Mcp-Session-Id": session, "MCP-Protocol-Version": revision}  # fmt: skip

    def test_batch_of_millions_of_elements_is_refused_with_the_limit_named(self):
        gateway = self.start()
        headers = self.session(gateway, "2025-03-26")
        answers = []
        body = "[" + "1," * 2_000_000 + "1]"
        self.assert_others_served_during(gateway, lambda: answers.append(gateway.ask("POST", "/mcp", body, headers)))
        self.assertIn("max_batch_messages", answers[0])
        self.assert_ends_clean(gateway)

    def test_name_of_megabytes_is_refused_with_the_limit_named(self):
        gateway = self.start()
        headers = self.session(gateway, "2025-06-18")
        for method in ("tools/call", "prompts/get"):
            body = '{"jsonrpc":"2.0","id":1,"method":"%s","params":{"name":"%s"}}' % (method, "\\u001b" * 690_000)
            answers = []
            self.assert_others_served_during(gateway, lambda: answers.append(gateway.ask("POST", "/mcp", body, headers)))
            self.assertIn("max_name_bytes", answers[0])
            self.assertLess(len(answers[0]), 10_000)
        self.assert_ends_clean(gateway)

    def test_finished_event_streams_are_not_kept(self):
        gateway = self.start()
        headers = self.session(gateway, "2025-06-18")
        call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "good__go", "arguments": {"text": "x" * 500_000}, "_meta": {"progressToken": 1}}}

        def attack():
            for id in range(1, 201):  # 100 MB of answers in one session
                gateway.ask("POST", "/mcp", json.dumps({**call, "id": id}), headers)

        self.assert_others_served_during(gateway, attack)
        self.assert_ends_clean(gateway)


if __name__ == "__main__":
    enter_namespace(__file__)
    unittest.main()
