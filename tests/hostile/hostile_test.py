#!/usr/bin/env python3
"""Servers and clients that attack the gateway: it does not crash, other clients are served, memory and the time of each turn of the
loop stay within bounds, and no process survives (R11.3, R14). Run as `hostile_test.py PROGRAM [TEST…]`; in a build with a
sanitizer with FAIRLEAD_TEST_SANITIZED=1, which skips the checks of memory and time."""
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


class HostileStdioServerTest(HostileTest):
    def attack_by_call(self, attack, extra="", answered=True):
        """Calls the tool that starts the attack. The attack ends before the response to this call."""
        gateway = self.start_listed(self.server("bad", attack, extra=extra))
        answer = self.assert_others_served_during(gateway, lambda: gateway.call("bad__go"))
        self.assertIn("result" if answered else "error", answer)
        return gateway

    def test_notification_flood_does_not_starve_others(self):
        self.assert_exits_cleanly(self.attack_by_call("notifications"))

    def test_progress_flood_does_not_starve_others(self):
        self.assert_exits_cleanly(self.attack_by_call("progress"))

    def test_batch_of_millions_of_elements_is_rejected(self):
        self.assert_exits_cleanly(self.attack_by_call("batch"))

    def test_error_over_max_error_bytes_is_reduced_to_its_code(self):
        gateway = self.start_listed(self.server("bad", "huge_error"))
        answer = self.assert_others_served_during(gateway, lambda: gateway.call("bad__go"))
        self.assertEqual(answer["error"]["code"], -1)
        self.assertIn("max_error_bytes", answer["error"]["message"])
        self.assert_exits_cleanly(gateway)

    def test_crash_with_many_calls_in_progress_does_not_block_the_loop(self):
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
        self.assert_exits_cleanly(gateway)

    def calls_at(self, gateway, name):
        return next(server for server in gateway.health()["servers"] if server["name"] == name)["calls"]

    def test_list_change_flood_does_not_starve_others(self):
        self.assert_exits_cleanly(self.attack_by_call("list_changes"))

    def test_flood_of_malformed_frames_ends_the_connection_and_names_the_limit(self):
        gateway = self.start_listed(self.server("bad", "noise"))
        answer = self.assert_others_served_during(gateway, lambda: gateway.call("bad__go"))
        self.assertIn("max_noise_frames", json.dumps(answer))
        self.assert_exits_cleanly(gateway)

    def test_responses_with_huge_unknown_ids_do_not_flood_the_log(self):
        gateway = self.attack_by_call("huge_ids")
        self.assertLess(gateway.log_bytes, 1 << 20)
        self.assert_exits_cleanly(gateway)

    def test_stderr_flood_does_not_flood_the_log_and_is_counted(self):
        gateway = self.attack_by_call("stderr")
        self.assertLess(gateway.log_bytes, 4 << 20)
        self.assert_logged(gateway, "dropped")
        self.assertFalse(any("\x1b" in line or "\x9b" in line for line in gateway.log))
        self.assert_exits_cleanly(gateway)

    def test_template_with_sixty_thousand_variables_is_omitted(self):
        gateway = self.start_listed(self.server("bad", "template_bomb"))
        read = lambda: gateway.post("resources/read", uri="bomb://x/" + "a" * 4000)
        answer = self.assert_others_served_during(gateway, read)
        self.assertIn("error", answer)
        self.assert_logged(gateway, "omitted: `bomb://x/")
        self.assert_exits_cleanly(gateway)

    def test_long_uri_is_rejected_with_the_limit_named(self):
        gateway = self.start_listed(self.server("bad", "honest_template"))
        read = lambda: gateway.post("resources/read", uri="bomb://x/" + "a-" * 5_000)
        answer = self.assert_others_served_during(gateway, read)
        self.assertEqual(answer["error"]["code"], -32602)
        self.assertIn("max_uri_bytes", json.dumps(answer))
        self.assert_exits_cleanly(gateway)

    def test_deep_schema_does_not_slow_calls(self):
        gateway = self.start_listed(self.server("bad", "deep_schema"))
        self.assert_others_served_during(gateway, lambda: [gateway.call("bad__deep", a=1) for _ in range(5)])
        self.assert_exits_cleanly(gateway)

    def test_hundred_thousand_tools_do_not_block_the_loop(self):
        gateway = self.start(self.server("bad", "many_tools"))
        self.assert_others_served_during(gateway, lambda: self.assert_logged(gateway, "max_list_entries"))
        self.assert_exits_cleanly(gateway)

    def test_large_lists_of_removed_servers_do_not_block_the_loop(self):
        gateway = self.start()
        count = 1 if SANITIZED else 5  # a sanitizer takes ten seconds for each
        self.reload(gateway, *(self.server(f"bad{n}", "largest_list") for n in range(count)))
        kinds = ("tools", "resources", "prompts")
        self.assertTrue(until(lambda: all(gateway.health()["counts"][kind] >= count * 100_000 for kind in kinds), 60))
        self.reload(gateway)
        # The lists are freed in slices while the gateway is idle. A slow turn is logged.
        slow = lambda: [line for line in gateway.log if "slow turn" in line]
        self.assertFalse(until(slow, 4) and not SANITIZED, slow())
        self.assert_exits_cleanly(gateway)

    def reload(self, gateway, *tables):
        with open(self.path("gateway.toml"), "w", encoding="utf-8") as file:
            file.write(self.server("good", "none") + "".join(tables))
        gateway.process.send_signal(signal.SIGHUP)

    def test_endless_list_is_limited_to_max_list_pages(self):
        gateway = self.start(self.server("bad", "endless_pages"))
        self.assert_others_served_during(gateway, lambda: self.assert_logged(gateway, "max_list_pages"))
        self.assert_exits_cleanly(gateway)

    def test_backtracking_pattern_does_not_block_the_loop(self):
        gateway = self.start_listed(self.server("bad", "bad_output_schema"))
        self.assert_others_served_during(gateway, lambda: gateway.call("bad__match"))
        self.assert_exits_cleanly(gateway)

    def test_server_that_locks_the_manifest_does_not_prevent_starts(self):
        manifest = self.path("manifest")
        open(manifest, "w", encoding="utf-8").close()
        gateway = self.start_listed(self.server("bad", "locks_manifest", manifest), args=("--terminator-manifest", manifest))
        pid = int(gateway.text("good__go"))
        os.kill(pid, signal.SIGKILL)
        # The server is restarted while the manifest is locked. A call that was sent to the former process may fail.
        self.assertTrue(until(lambda: gateway.call("good__go").get("result", {}).get("content", [{"text": str(pid)}])[0]["text"] != str(pid)))
        self.assert_exits_cleanly(gateway)

    def test_no_process_survives_a_stopped_keeper(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(number.name):
                gateway = self.start_listed(self.server("bad", "stops_keeper", self.path(number.name), extra='containment.cgroup = "off"\n'))
                gateway.call("bad__go")
                status = gateway.end(number)
                self.assertEqual(status, 0 if number == signal.SIGTERM else -signal.SIGKILL, gateway.log[-10:])
                self.assertTrue(until(lambda: not self.survivors(), 10), f"surviving processes: {self.survivors()}")

    def test_detached_grandchild_does_not_survive_a_killed_keeper(self):
        name = self.path("grandchild")
        # Without a cgroup, because the gateway would find the grandchild in it.
        gateway = self.start_listed(self.server("bad", "kills_keeper", name, extra='containment.cgroup = "off"\n'))
        gateway.call("bad__go")
        with open(name, encoding="utf-8") as file:
            grandchild = int(file.read())
        self.assertTrue(until(lambda: not is_alive(grandchild)), "the grandchild is still alive")
        self.assertTrue(until(lambda: "result" in gateway.call("good__go")))
        self.assert_exits_cleanly(gateway)

    def test_only_the_tool_that_crashes_the_server_is_rejected(self):
        gateway = self.start_listed(self.server("bad", "crashes"), tool="bad__crash")
        codes = []
        for _ in range(8):
            codes.append(gateway.call("bad__crash")["error"]["data"]["code"])
            gateway.text("bad__go")
        self.assertEqual(codes, ["exited"] * 3 + ["tool_crashes"] * 5)
        self.assert_exits_cleanly(gateway)

    def test_gateway_among_the_servers_does_not_recurse(self):
        table = f'[servers.inner]\ncommand = "{PROGRAM}"\nargs = ["serve", "--stdio"]\n'
        gateway = self.start(table, environment={"FAIRLEAD_CONFIG": self.path("gateway.toml")})
        self.assertTrue(until(lambda: any(tool.startswith("inner__") for tool in gateway.tools())))
        self.assertLess(len(self.survivors()), 12)
        self.assert_exits_cleanly(gateway)


def is_alive(pid):
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    return False


class HostileHttpUpstreamTest(HostileTest):
    def attack(self, attack):
        upstream = Upstream(attack)
        self.addCleanup(upstream.stop)
        gateway = self.start_listed(f'[servers.bad]\nurl = "{upstream.url}"\nclocks.idle = "{DEADLINE // 2}s"\n')
        answer = self.assert_others_served_during(gateway, lambda: gateway.call("bad__go"))
        return gateway, upstream, answer

    def test_comment_flood_does_not_starve_others(self):
        gateway, _, answer = self.attack("comments")
        self.assertIn("result", answer)
        self.assert_exits_cleanly(gateway)

    def test_notification_flood_does_not_starve_others(self):
        gateway, _, answer = self.attack("notifications")
        self.assertIn("result", answer)
        self.assert_exits_cleanly(gateway)

    def test_endless_interim_responses_are_rejected_with_the_limit_named(self):
        gateway, _, answer = self.attack("interim")
        self.assertIn("max_interim_responses", json.dumps(answer))
        self.assert_exits_cleanly(gateway)

    def test_endless_response_head_is_rejected(self):
        gateway, _, answer = self.attack("endless_head")
        self.assertIn("error", answer)
        self.assert_exits_cleanly(gateway)

    def test_response_over_max_frame_bytes_is_rejected(self):
        gateway, _, answer = self.attack("huge_answer")
        self.assertEqual(answer["error"]["data"]["code"], "frame_too_large")
        self.assert_exits_cleanly(gateway)

    def test_endless_event_is_rejected(self):
        gateway, _, answer = self.attack("endless_line")
        self.assertEqual(answer["error"]["data"]["code"], "frame_too_large")
        self.assert_exits_cleanly(gateway)

    def test_retry_of_zero_does_not_remove_the_reconnect_delay(self):
        begin = time.monotonic()
        gateway, upstream, answer = self.attack("retry_zero")
        self.assertIn("result", answer)
        self.assert_others_served_during(gateway, lambda: [gateway.call("bad__go") for _ in range(200)])
        self.assertLess(upstream.stream_count, 30 + 10 * (time.monotonic() - begin))  # without a minimum delay: 1,500 a second
        self.assert_exits_cleanly(gateway)


class HostileClientTest(HostileTest):
    def connect(self, gateway):
        connection = socket.create_connection(("127.0.0.1", gateway.port), DEADLINE)
        self.addCleanup(connection.close)
        return connection

    def head(self, length, host="127.0.0.1"):
        return (f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
                f"Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n\r\n").encode()  # fmt: skip

    def test_concurrent_large_calls_are_all_answered(self):
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
        self.assert_exits_cleanly(gateway)

    def test_foreign_host_name_is_rejected(self):
        gateway = self.start()
        connection = self.connect(gateway)
        connection.sendall(self.head(2, host="attacker.example") + b"{}")
        self.assertRegex(connection.recv(4096), rb"^HTTP/1.1 4(03|21)")
        self.assert_exits_cleanly(gateway)

    def test_malformed_http_requests_do_not_crash_the_gateway(self):
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
        self.assert_exits_cleanly(gateway)

    def test_three_hundred_thousand_members_do_not_block_the_loop(self):
        gateway = self.start()
        arguments = ",".join('"k%d":0' % n for n in range(300_000))
        body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{%s},"name":"good__go","_meta":%s}}' % (arguments, json.dumps(META))
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                   "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "good__go"}  # fmt: skip
        answers = []
        self.assert_others_served_during(gateway, lambda: answers.append(gateway.http_request("POST", "/mcp", body, headers)))
        self.assertIn('"result"', answers[0])
        self.assert_exits_cleanly(gateway)

    def session(self, gateway, revision):
        """Starts a session. Returns the headers of its requests."""
        params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        connection = self.connect(gateway)
        body = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).encode()
        connection.sendall(self.head(len(body)) + body)
        answer = connection.recv(65536).decode()
        session = next(line.split(": ")[1] for line in answer.splitlines() if line.lower().startswith("mcp-session-id"))
        return {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                "Mcp-Session-Id": session, "MCP-Protocol-Version": revision}  # fmt: skip

    def test_batch_of_millions_of_elements_is_rejected_with_the_limit_named(self):
        gateway = self.start()
        headers = self.session(gateway, "2025-03-26")
        answers = []
        body = "[" + "1," * 2_000_000 + "1]"
        self.assert_others_served_during(gateway, lambda: answers.append(gateway.http_request("POST", "/mcp", body, headers)))
        self.assertIn("max_batch_messages", answers[0])
        self.assert_exits_cleanly(gateway)

    def test_name_of_megabytes_is_rejected_with_the_limit_named(self):
        gateway = self.start()
        headers = self.session(gateway, "2025-06-18")
        for method in ("tools/call", "prompts/get"):
            body = '{"jsonrpc":"2.0","id":1,"method":"%s","params":{"name":"%s"}}' % (method, "\\u001b" * 690_000)
            answers = []
            self.assert_others_served_during(gateway, lambda: answers.append(gateway.http_request("POST", "/mcp", body, headers)))
            self.assertIn("max_name_bytes", answers[0])
            self.assertLess(len(answers[0]), 10_000)
        self.assert_exits_cleanly(gateway)

    def test_finished_event_streams_are_not_kept(self):
        gateway = self.start()
        headers = self.session(gateway, "2025-06-18")
        call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "good__go", "arguments": {"text": "x" * 500_000}, "_meta": {"progressToken": 1}}}

        def attack():
            for id in range(1, 201):  # 100 MB of answers in one session
                gateway.http_request("POST", "/mcp", json.dumps({**call, "id": id}), headers)

        self.assert_others_served_during(gateway, attack)
        self.assert_exits_cleanly(gateway)


if __name__ == "__main__":
    enter_namespace(__file__)
    unittest.main()
