#!/usr/bin/env python3
"""The configuration: definitions, validation, and changes while the gateway serves calls."""
import json
import sys
import threading
import unittest

sys.dont_write_bytecode = True

from harness import RegistryTest, enter_namespace, tool, until

PROCESSES = "mcp.max_stdio_processes"


class ConfigurationTest(RegistryTest):
    def setUp(self):
        super().setUp()
        self.gateway = self.start()

    def tearDown(self):
        self.assert_exits_cleanly(self.gateway)

    def value(self, key):
        return self.gateway.get(f"/config/{key}")["value"]

    def running(self):
        return len([row for row in self.gateway.items("/processes") if row.get("pid")])

    def test_definitions_describe_every_key(self):
        rows = self.gateway.items("/config")
        keys = [row["key"] for row in rows]
        self.assertEqual(len(keys), len(set(keys)))
        self.assertIn(PROCESSES, keys)
        self.assertGreater(len(rows), 20)
        for row in rows:
            with self.subTest(key=row["key"]):
                for member in ("type", "description", "default"):
                    self.assertIn(member, row)
                self.assertEqual(self.gateway.get(f"/config/{row['key']}")["value"], row["value"])
        self.assertEqual(self.value(PROCESSES), 50)

    def test_value_is_changed_reset_and_stored(self):
        self.assertEqual(self.gateway.set_config(PROCESSES, 7)["value"], 7)
        self.assertEqual(self.value(PROCESSES), 7)
        self.assertEqual(self.gateway.end(), 0)
        self.gateway = self.start()
        self.assertEqual(self.value(PROCESSES), 7)
        answer = self.gateway.request("DELETE", f"/config/{PROCESSES}")
        self.assertIn(answer.status, (200, 204), answer)
        self.assertEqual(self.value(PROCESSES), 50)

    def test_invalid_values_are_refused(self):
        for value in ("7", 0, -1, 10_001, 1.5, None, True, [], {}, 1e300, "x" * 10_000):
            with self.subTest(value=str(value)[:20]):
                answer = self.gateway.request("PUT", f"/config/{PROCESSES}", {"value": value})
                if value is None and answer.status == 200:
                    continue  # null may reset the value
                self.assert_problem(answer, 422, pointer="/value")
        for body in ({}, {"value": 5, "surprise": 1}, [5]):
            self.assertEqual(self.gateway.request("PUT", f"/config/{PROCESSES}", body).status // 100, 4, body)
        for key in ("no.such_key", "mcp", "", "mcp.", "a.b.c", "mcp.max_stdio_processes%00"):
            with self.subTest(key=key):
                self.assertIn(self.gateway.request("PUT", f"/config/{key}", {"value": 5}).status, (404, 405, 400))
        self.assertEqual(self.value(PROCESSES), 50)

    def test_lowered_limit_applies_to_the_next_start_and_raised_one_at_once(self):
        for number in range(3):
            self.add(self.gateway, f"s{number}", config={"clocks": {"queue": "300ms"}})
        client = self.gateway.mcp()
        for number in range(3):
            client.text(f"s{number}__pid")
        for number in range(3):
            self.gateway.request("POST", f"/mcp/servers/{self.row(f's{number}')['id']}/stop")
        self.assertTrue(until(lambda: self.running() == 0))
        self.gateway.set_config(PROCESSES, 1)
        release = self.path("release")
        holding = self.in_background(lambda: client.text("s0__wait", path=release))
        self.assertTrue(until(lambda: self.running() == 1))
        error = client.error("tools/call", name="s1__pid", arguments={})
        self.assertIn("max_stdio_processes", json.dumps(error))
        self.assertEqual(error["data"]["code"], "resource_exhausted")
        self.gateway.set_config(PROCESSES, 2)
        client.text("s1__pid")
        with open(release, "w", encoding="utf-8"):
            pass
        self.assertEqual(holding(), "waited")

    def row(self, name):
        return next(row for row in self.gateway.items("/mcp/servers") if row["name"] == name)

    def test_limit_changes_under_load_lose_no_call_of_running_servers(self):
        self.add(self.gateway, "steady")
        self.gateway.mcp().text("steady__pid")
        stopping, problems, counts = threading.Event(), [], []

        def load():
            client, count = self.gateway.mcp(), 0
            while not stopping.is_set():
                try:
                    client.text("steady__echo", n=count)
                    count += 1
                except Exception as problem:  # reported below
                    problems.append(problem)
                    return
            counts.append(count)

        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        for limit in [1, 50, 2, 10_000] * 10:
            self.gateway.set_config(PROCESSES, limit)
        stopping.set()
        for thread in threads:
            thread.join()
        self.assertEqual(problems, [])
        self.assertTrue(all(counts), counts)

    def test_clocks_and_limits_apply_at_once(self):
        rows = {row["key"]: row for row in self.gateway.items("/config")}
        sample = {key: row for key, row in rows.items() if row.get("applies") == "at once" and row["type"] in ("integer", "duration", "boolean")}
        self.assertGreater(len(sample), 5)
        for key, row in sample.items():
            with self.subTest(key=key):
                if row["type"] == "integer":
                    value = max(row.get("minimum", 0), min(row["value"] + 1, row.get("maximum", row["value"] + 1)))
                else:
                    value = (not row["value"]) if row["type"] == "boolean" else row["value"]
                self.assertEqual(self.gateway.set_config(key, value)["value"], value)
        self.add(self.gateway, "after")
        self.assertTrue(self.gateway.mcp().text("after__pid").isdigit())

    def test_default_of_a_clock_applies_at_once_to_servers_that_do_not_set_it(self):
        self.add(self.gateway, "plain")
        self.add(self.gateway, "own", config={"clocks": {"idle": "50s"}})
        client = self.gateway.mcp()
        self.gateway.set_config("mcp.clocks.idle", "300ms")
        error = client.error("tools/call", name="plain__wait", arguments={"path": self.path("nothing")})
        self.assertEqual(error["data"]["code"], "call_timeout", error)
        file = self.path("file")
        waiting = self.in_background(lambda: client.text("own__wait", path=file))
        with self.assertRaises(AssertionError):
            waiting(1)
        with open(file, "w", encoding="utf-8"):
            pass
        self.assertEqual(waiting(), "waited")
        self.assertEqual(self.gateway.request("DELETE", "/config/mcp.clocks.idle").status // 100, 2)
        self.assertTrue(client.text("plain__pid").isdigit())

    def test_concurrent_changes_leave_one_of_the_values(self):
        changes = [self.in_background(lambda value=value: self.gateway.set_config(PROCESSES, value)) for value in range(100, 120)]
        for join in changes:
            join()
        self.assertIn(self.value(PROCESSES), range(100, 120))


if __name__ == "__main__":
    enter_namespace(__file__)
    unittest.main()
