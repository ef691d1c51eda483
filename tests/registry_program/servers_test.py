#!/usr/bin/env python3
"""The admin API for servers, as its contract for scripts describes it: rows, versions, pages, idempotency, test, refresh."""
import concurrent.futures
import contextlib
import json
import os
import re
import sqlite3
import sys
import unittest

sys.dont_write_bytecode = True

from harness import ADMIN_TOKEN, UNKNOWN_ID, RegistryTest, enter_namespace, tool, until

UUID_V7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
HTTP = {"transport": "http", "config": {"transport": "http", "url": "http://127.0.0.1:9/mcp"}, "enabled": False}


class ServersTest(RegistryTest):
    def setUp(self):
        super().setUp()
        self.gateway = self.start()

    def tearDown(self):
        self.assert_exits_cleanly(self.gateway)

    def add_http(self, name, **members):
        return self.gateway.create("/mcp/servers", {"name": name, **HTTP, **members})

    def test_created_server_is_answered_with_its_row_and_location(self):
        body = self.toy("files")
        answer = self.gateway.request("POST", "/mcp/servers", body)
        self.assertEqual(answer.status, 201, answer)
        row = answer.json()
        self.assertTrue(UUID_V7.fullmatch(row["id"]), row)
        for member in ("name", "description", "domain", "transport"):
            self.assertEqual(row[member], body[member])
        for member in ("command", "args"):
            self.assertEqual(row["config"][member], body["config"][member])
        self.assertEqual((row["version"], row["visibility"], row["enabled"]), (1, "visible", True))
        self.assertTrue(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", row["createdAt"]), row)
        location = answer.headers["Location"]
        self.assertTrue(location.endswith(row["id"]), location)
        self.assertEqual(self.gateway.get(location), row)
        for prefix in ("", "/api/v1"):
            self.assertEqual(self.gateway.get(f"{prefix}/mcp/servers/{row['id']}"), row)

    def test_servers_are_served_without_a_restart(self):
        client = self.gateway.mcp()
        self.assertEqual(client.tools(), [])
        listener = client.listen()
        self.add(self.gateway, "files")
        self.assertTrue(listener.notification("notifications/tools/list_changed"))
        listener.close()
        self.assertIn("files__pid", client.tools())
        self.assertEqual(client.text("files__echo", a=1), '{"a": 1}')

    def test_http_server_is_created_with_its_headers(self):
        row = self.add_http("remote", config={**HTTP["config"], "headers": {"X-Key": "v"}})
        self.assertEqual((row["transport"], row["config"]["url"]), ("http", HTTP["config"]["url"]))
        self.assertEqual(row["config"]["headers"], {"X-Key": "v"})

    def test_patch_is_a_merge_patch_and_increments_the_version(self):
        row = self.add_http("remote", tags=["a"], title="T", metadata={"x": {"keep": 1, "drop": 2}})
        path = f"/mcp/servers/{row['id']}"
        changed = self.gateway.patch(path, {"title": None, "tags": ["b", "c"], "metadata": {"x": {"drop": None}}})
        self.assertEqual((changed["version"], changed["tags"], changed["metadata"]), (2, ["b", "c"], {"x": {"keep": 1}}))
        self.assertFalse(changed.get("title"))
        self.assertEqual(changed["id"], row["id"])
        self.assertEqual(changed["createdAt"], row["createdAt"])
        self.assertEqual(self.gateway.get(path), changed)

    def test_renamed_server_has_new_public_names(self):
        row = self.add(self.gateway, "before")
        self.gateway.patch(f"/mcp/servers/{row['id']}", {"name": "after"})
        client = self.gateway.mcp()
        self.assertTrue(until(lambda: "after__pid" in client.tools()), client.tools())
        self.assertFalse([name for name in client.tools() if name.startswith("before__")])

    def test_deleted_server_is_gone(self):
        row = self.add(self.gateway, "files")
        pid = int(self.gateway.mcp().text("files__pid"))
        path = f"/mcp/servers/{row['id']}"
        answer = self.gateway.request("DELETE", path)
        self.assertEqual((answer.status, answer.body), (204, b""))
        self.assert_problem(self.gateway.request("GET", path), 404, "not_found")
        self.assert_problem(self.gateway.request("DELETE", path), 404, "not_found")
        self.assert_problem(self.gateway.request("PATCH", path, {"title": "x"}), 404, "not_found")
        self.assertTrue(until(lambda: not os.path.exists(f"/proc/{pid}")))
        self.assertTrue(until(lambda: "files__pid" not in self.gateway.mcp().tools()))
        self.gateway.create("/mcp/servers", self.toy("files"))  # the name is free again

    def test_disabled_server_offers_nothing_until_it_is_enabled(self):
        row = self.add(self.gateway, "files")
        path = f"/mcp/servers/{row['id']}"
        client = self.gateway.mcp()
        client.text("files__pid")
        self.gateway.patch(path, {"enabled": False})
        self.assertTrue(until(lambda: not [name for name in client.tools() if name.startswith("files__")]))
        self.assertTrue(until(lambda: not self.gateway.server_processes("files")))
        client.error("tools/call", name="files__pid", arguments={})
        self.gateway.patch(path, {"enabled": True})
        self.assertTrue(until(lambda: "files__pid" in client.tools()))
        client.text("files__pid")

    def test_taken_and_reserved_names_are_refused(self):
        row = self.add_http("remote")
        other = self.add_http("other")
        self.assert_problem(self.gateway.request("POST", "/mcp/servers", {"name": "remote", **HTTP}), 409, "name_taken")
        self.assert_problem(self.gateway.request("PATCH", f"/mcp/servers/{other['id']}", {"name": "remote"}), 409, "name_taken")
        for name in ("servers", "e", "", "a__b", "a b", "x" * 33, "\u00e9", "a/b", "..", "a\u0000b"):
            with self.subTest(name=name):
                self.assert_problem(self.gateway.request("POST", "/mcp/servers", {"name": name, **HTTP}), 422, pointer="/name")
        self.assertEqual(self.gateway.get(f"/mcp/servers/{row['id']}"), row)

    def test_missing_rows_and_invalid_ids_are_not_found(self):
        for id in (UNKNOWN_ID, "x", "'%20OR%201=1--", "%00", "a" * 3000):
            for method in ("GET", "DELETE"):
                answer = self.gateway.request(method, f"/mcp/servers/{id}")
                self.assertIn(answer.status, (400, 404), answer)

    def test_stale_if_match_is_refused(self):
        row = self.add_http("remote")
        path = f"/mcp/servers/{row['id']}"
        tag = self.gateway.request("GET", path).headers["ETag"]
        self.assertTrue(tag)
        answer = self.gateway.request("PATCH", path, {"title": "one"}, headers={"If-Match": tag})
        self.assertEqual(answer.status, 200, answer)
        new_tag = answer.headers["ETag"]
        self.assertNotEqual(new_tag, tag)
        for method, body in (("PATCH", {"title": "two"}), ("DELETE", None)):
            self.assert_problem(self.gateway.request(method, path, body, headers={"If-Match": tag}), 412, "version_mismatch")
        self.assertEqual(self.gateway.get(path)["title"], "one")
        self.assertEqual(self.gateway.request("PATCH", path, {"title": "three"}, headers={"If-Match": "*"}).status, 200)
        self.assertEqual(self.gateway.request("PATCH", path, {"title": "four"}).status, 200)
        current = self.gateway.request("GET", path).headers["ETag"]
        self.assertEqual(self.gateway.request("GET", path, headers={"If-None-Match": current}).status, 304)
        self.assertEqual(self.gateway.request("DELETE", path, headers={"If-Match": current}).status, 204)

    def test_repeated_idempotency_key_creates_one_row(self):
        body = {"name": "once", **HTTP}
        headers = {"Idempotency-Key": "key-1"}
        first = self.gateway.request("POST", "/mcp/servers", body, headers=headers)
        again = self.gateway.request("POST", "/mcp/servers", body, headers=headers)
        self.assertEqual((first.status, again.status), (201, 201), again)
        self.assertEqual((again.body, again.headers["Location"]), (first.body, first.headers["Location"]))
        self.assertEqual(len([row for row in self.gateway.items("/mcp/servers") if row["name"] == "once"]), 1)
        changed = self.gateway.request("POST", "/mcp/servers", {**body, "name": "twice"}, headers=headers)
        self.assert_problem(changed, 422)
        other = self.gateway.request("POST", "/mcp/servers", {**body, "name": "twice"}, headers={"Idempotency-Key": "key-2"})
        self.assertEqual(other.status, 201, other)
        failed = [self.gateway.request("POST", "/mcp/servers", body, headers={"Idempotency-Key": "key-3"}) for _ in range(2)]
        self.assertEqual([answer.status for answer in failed], [409, 409])

    def test_key_of_a_request_in_progress_creates_one_row(self):
        body = {"name": "once", **HTTP}
        send = lambda: self.gateway.request("POST", "/mcp/servers", body, headers={"Idempotency-Key": "same"})
        answers = [join() for join in [self.in_background(send) for _ in range(8)]]
        created = [answer for answer in answers if answer.status == 201]
        self.assertTrue(created, answers)
        self.assertEqual(len({answer.json()["id"] for answer in created}), 1)
        self.assertTrue(all(answer.status in (201, 409) for answer in answers), answers)

    def test_pages_have_every_row_once(self):
        known = {row["name"] for row in self.gateway.items("/mcp/servers")}
        wanted = {f"server{number}" for number in range(25)}
        for name in sorted(wanted):
            self.add_http(name)
        found, cursor = [], ""
        while True:
            page = self.gateway.get("/mcp/servers?limit=10" + cursor)
            self.assertLessEqual(len(page["items"]), 10)
            found += [row["name"] for row in page["items"]]
            if "nextCursor" not in page:
                break
            # A row that is removed or added between two pages does not hide others.
            if not cursor:
                removed = next(row for row in page["items"] if row["name"] in wanted)
                self.gateway.request("DELETE", f"/mcp/servers/{removed['id']}")
            cursor = "&cursor=" + page["nextCursor"]
        self.assertEqual(len(found), len(set(found)))
        self.assertEqual(set(found), wanted | known)
        for query in ("limit=0", "limit=-1", "limit=x", "limit=99999999999999999999", "cursor=x", "cursor=%27", "unknown=1"):
            with self.subTest(query=query):
                answer = self.gateway.request("GET", f"/mcp/servers?{query}")
                self.assertIn(answer.status, (400, 422), answer)

    def test_test_reports_steps_and_leaves_no_process(self):
        row = self.add(self.gateway, "files", enabled=False)
        answer = self.gateway.request("POST", f"/mcp/servers/{row['id']}/test")
        self.assertEqual(answer.status, 200, answer)
        report = answer.json()
        self.assertEqual((report["ok"], report["revision"], report["tools"]), (True, "2025-11-25", 3))
        self.assertGreater(len(report["steps"]), 1)
        for step in report["steps"]:
            self.assertTrue(step["name"] and step["ok"] and step["ms"] >= 0, report)
        self.assertTrue(until(lambda: not self.gateway.server_processes("files")))
        self.assertEqual(self.starts("files"), 1)

    def test_test_of_a_failing_server_reports_the_error_and_stderr(self):
        script = "import sys; print('no license found', file=sys.stderr); sys.exit(7)"
        row = self.gateway.create("/mcp/servers", {
            "name": "bad", "transport": "stdio", "enabled": False, "config": {"transport": "stdio", "command": sys.executable, "args": ["-c", script]},
        })  # fmt: skip
        report = self.gateway.request("POST", f"/mcp/servers/{row['id']}/test").json()
        self.assertIs(report["ok"], False)
        self.assertEqual(report["error"]["code"], "exited_in_handshake", report)
        self.assertIn("no license found", json.dumps(report))
        self.assertTrue(any(not step["ok"] for step in report["steps"]), report)
        self.gateway.patch(f"/mcp/servers/{row['id']}", {"config": {"command": "no-such-program-at-all"}})
        report = self.gateway.request("POST", f"/mcp/servers/{row['id']}/test").json()
        self.assertEqual((report["ok"], report["error"]["code"]), (False, "command_not_found"), report)

    def test_test_streams_its_steps_as_events(self):
        row = self.add(self.gateway, "files", enabled=False)
        with self.gateway.stream(f"/mcp/servers/{row['id']}/test", method="POST") as stream:
            self.assertEqual(stream.status, 200, stream.body)
            self.assertTrue(stream.ends())
            events = []
            while (event := stream.next(1)) is not None:
                events.append(event)
        steps = [json.loads(event.data) for event in events if event.name == "step"]
        self.assertTrue(steps and all(step["ok"] for step in steps), events)
        self.assertEqual(json.loads(events[-1].data)["ok"], True, events)

    def test_test_streams_the_first_lines_of_stderr_as_events(self):
        script = "import sys\nfor i in range(1200): print('line', i, 'x' * 600, file=sys.stderr)\nsys.exit(7)"
        row = self.gateway.create("/mcp/servers", {
            "name": "bad", "transport": "stdio", "enabled": False, "config": {"transport": "stdio", "command": sys.executable, "args": ["-c", script]},
        })  # fmt: skip
        with self.gateway.stream(f"/mcp/servers/{row['id']}/test", method="POST") as stream:
            self.assertTrue(stream.ends())
            events = []
            while (event := stream.next(1)) is not None:
                events.append(event)
        lines = [json.loads(event.data)["line"] for event in events if event.name == "stderr"]
        self.assertTrue(lines[0].startswith("line 0 xxx"), lines[:1])
        self.assertLessEqual((len(lines), max(map(len, lines))), (1000, 600))
        self.assertEqual((events[-1].name, json.loads(events[-1].data)["ok"]), ("result", False))

    def test_test_does_not_disturb_the_running_process(self):
        row = self.add(self.gateway, "files")
        client = self.gateway.mcp()
        pid = client.text("files__pid")
        self.assertTrue(self.gateway.request("POST", f"/mcp/servers/{row['id']}/test").json()["ok"])
        self.assertEqual(client.text("files__pid"), pid)

    def test_refresh_reports_the_difference(self):
        row = self.add(self.gateway, "files")
        path = f"/mcp/servers/{row['id']}/refresh"
        answer = self.gateway.request("POST", path)
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.json(), {"tools": 3, "added": [], "removed": [], "changed": []})
        self.write_state("files", [tool("pid", "Another text."), tool("echo"), tool("new")])
        report = self.gateway.request("POST", path).json()
        self.assertEqual(report, {"tools": 3, "added": ["new"], "removed": ["wait"], "changed": ["pid"]})
        names = [entry["name"] for entry in self.gateway.items(f"/mcp/servers/{row['id']}/tools")]
        self.assertEqual(sorted(names), ["echo", "new", "pid"])
        client = self.gateway.mcp()
        self.assertTrue(until(lambda: "files__new" in client.tools() and "files__wait" not in client.tools()))

    def test_refreshes_that_wait_for_the_database_do_not_hold_the_loop(self):
        row = self.add(self.gateway, "files")
        client = self.gateway.mcp()
        refresh = lambda: self.gateway.request("POST", f"/mcp/servers/{row['id']}/refresh").status
        with contextlib.closing(sqlite3.connect(self.path("fairlead.db"), isolation_level=None)) as other, \
             concurrent.futures.ThreadPoolExecutor(2) as pool:
            other.execute("BEGIN IMMEDIATE")  # the lists of both refreshes are fetched, and wait to be stored
            refreshes = []
            for name in ("first", "second"):
                self.write_state("files", [tool(name)])
                refreshes.append(pool.submit(refresh))
                self.assertTrue(until(lambda: f"files__{name}" in client.tools()))
            other.execute("ROLLBACK")
            self.assertEqual([future.result() for future in refreshes], [200, 200])
        # Of CPU time: waiting takes none.
        self.assertLess(self.gateway.get("/health")["loop"]["longest_turn_ms"], 1000)

    def test_restart_and_stop_act_on_the_process(self):
        row = self.add(self.gateway, "files")
        client = self.gateway.mcp()
        first = client.text("files__pid")
        self.assertIn(self.gateway.request("POST", f"/mcp/servers/{row['id']}/restart").status, (200, 202, 204))
        self.assertTrue(until(lambda: client.text("files__pid") != first))
        self.assertIn(self.gateway.request("POST", f"/mcp/servers/{row['id']}/stop").status, (200, 202, 204))
        self.assertTrue(until(lambda: not self.gateway.server_processes("files")))
        client.text("files__pid")  # starts it again
        [pid] = self.gateway.server_processes("files")
        self.assertEqual(str(pid), client.text("files__pid"))

    def test_logs_have_the_last_lines_of_stderr(self):
        script = ("import os, sys\nfor n in range(3): print('line', n, file=sys.stderr, flush=True)\n"
                  "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])")  # fmt: skip
        body = self.toy("noisy")
        body["config"]["args"] = ["-c", script, *body["config"]["args"]]
        row = self.gateway.create("/mcp/servers", body)
        self.wait_until_listed(self.gateway, row)
        path = f"/mcp/servers/{row['id']}/logs"
        self.assertTrue(until(lambda: "line 2" in self.gateway.request("GET", path).text), self.gateway.request("GET", path))
        with self.gateway.stream(path) as stream:
            self.assertEqual(stream.status, 200, stream.body)
            self.gateway.request("POST", f"/mcp/servers/{row['id']}/restart")
            self.gateway.mcp().text("noisy__pid")
            self.assertTrue(stream.wait_for(lambda event: "line 2" in event.data))

    def test_rules_of_tools_apply_to_lists_and_calls(self):
        tools = [tool("read_a"), tool("read_b"), tool("write_a"), tool("echo"), tool("pid")]
        self.add(self.gateway, "files", tools, tools={"allow": ["read_*", "echo", "pid"], "deny": ["read_b"], "hide": ["pid"], "rename": {"echo": "say"}})
        client = self.gateway.mcp()
        self.assertEqual(sorted(name for name in client.tools() if name.startswith("files__")), ["files__read_a", "files__say"])
        self.assertTrue(client.text("files__pid").isdigit())  # hidden, but callable
        self.assertEqual(client.text("files__say", x=1), '{"x": 1}')
        for name in ("files__read_b", "files__write_a", "files__echo"):
            client.error("tools/call", name=name, arguments={})

    def test_secrets_are_shown_to_administrators_and_masked_for_others(self):
        body = self.toy("files", config={"env": {"API_KEY": "tiger-lily-secret"}})
        row = self.gateway.create("/mcp/servers", body)
        self.assertEqual(row["config"]["env"], {"API_KEY": "tiger-lily-secret"})
        _, token = self.user(self.gateway, "ann")
        answer = self.gateway.request("GET", f"/mcp/servers/{row['id']}", token=token)
        self.assertNotIn("tiger-lily-secret", answer.text)
        self.assertNotIn("tiger-lily-secret", self.gateway.request("GET", "/mcp/servers", token=token).text)
        self.gateway.patch(f"/mcp/servers/{row['id']}", {"title": "x"})
        self.assertEqual(self.gateway.get(f"/mcp/servers/{row['id']}")["config"]["env"], {"API_KEY": "tiger-lily-secret"})

    def test_rows_and_lists_survive_a_restart(self):
        row = self.add(self.gateway, "files", tags=["a"], metadata={"any": [1, {"x": None}]})
        self.assertEqual(self.gateway.end(), 0)
        self.gateway = self.start()
        self.assertEqual(self.gateway.get(f"/mcp/servers/{row['id']}"), row)


if __name__ == "__main__":
    enter_namespace(__file__)
    unittest.main()
