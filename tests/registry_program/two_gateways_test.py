#!/usr/bin/env python3
"""Two gateways on one PostgreSQL: edits of both reach both, and none is lost. PostgreSQL that is stopped, or does not answer, stops
no call. FAIRLEAD_TEST_LONG=1: longer outages."""
import concurrent.futures
import os
import statistics
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True

from harness import RegistryTest, enter_namespace, until
from postgres import PostgresServer

STOPPED = 10  # seconds
HUNG = 10 if os.environ.get("FAIRLEAD_TEST_LONG") == "1" else 3  # seconds
EDITS = 100
HTTP = {"transport": "http", "config": {"transport": "http", "url": "http://127.0.0.1:9/mcp"}, "enabled": False}
# Seconds in which a change must reach the other gateway: less than the interval of polls (5 s), so that it is the
# notification that tells it.
NOTIFIED = 4


class Load:
    """Calls a tool, and reads the lists, in a loop. Every one must succeed."""

    def __init__(self, gateway, name):
        self.gateway, self.name = gateway, name
        self.stopping = threading.Event()
        self.calls, self.problem = 0, None
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        client = self.gateway.mcp()
        try:
            while not self.stopping.is_set():
                client.text(self.name + "__echo", n=self.calls)
                if self.calls % 10 == 0:
                    client.tools()
                    self.gateway.get("/mcp/servers?limit=5")
                self.calls += 1
        except Exception as problem:  # reported by the test
            self.problem = problem

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join(60)


class PostgresTest(RegistryTest):
    @classmethod
    def setUpClass(cls):
        cls.postgres = PostgresServer()
        cls.addClassCleanup(cls.postgres.close)

    def setUp(self):
        super().setUp()
        self.database = self.postgres.new_database("t" + self.word)

    def start_two(self):
        return [self.start(), self.start()]

    def names(self, gateway):
        return {row["name"] for row in gateway.items("/mcp/servers?limit=500")}


class TwoGatewaysTest(PostgresTest):
    def test_concurrent_edits_of_both_are_all_kept(self):
        gateways = self.start_two()
        shared = gateways[0].create("/mcp/servers", {"name": "shared", "metadata": {}, **HTTP})
        path = f"/mcp/servers/{shared['id']}"
        self.assertTrue(until(lambda: gateways[1].request("GET", path).status == 200, 5))

        def edit(edited):
            # One new row, and one member of a row that both change.
            number, count = edited
            gateways[number].create("/mcp/servers", {"name": f"g{number}-{count}", **HTTP})
            gateways[number].patch(path, {"metadata": {f"g{number}-{count}": count}})

        with concurrent.futures.ThreadPoolExecutor(2 * EDITS) as pool:
            list(pool.map(edit, [(number, count) for count in range(EDITS) for number in (0, 1)]))
        done = time.monotonic()
        wanted = {f"g{number}-{count}" for number in (0, 1) for count in range(EDITS)}
        for gateway in gateways:
            self.assertTrue(until(lambda: wanted <= self.names(gateway) and set(gateway.get(path)["metadata"]) == wanted, 2))
        self.assertLess(time.monotonic() - done, NOTIFIED)
        rows = [gateway.get(path) for gateway in gateways]
        self.assertEqual(rows[0], rows[1])
        self.assertEqual(rows[0]["version"], 1 + 2 * EDITS)
        for gateway in gateways:
            self.assert_exits_cleanly(gateway)

    def test_change_of_one_reaches_clients_of_the_other(self):
        one, two = self.start_two()
        self.assertEqual(two.mcp().tools(), [])
        with two.mcp().listen() as listener:
            row = one.create("/mcp/servers", self.toy())
            start = time.monotonic()
            self.assertTrue(until(lambda: two.request("GET", f"/mcp/servers/{row['id']}").status == 200, 5))
            self.assertLess(time.monotonic() - start, NOTIFIED)
            self.assertTrue(listener.notification("notifications/tools/list_changed", 10))
        self.assertTrue(until(lambda: "toy__pid" in two.mcp().tools(), 10))
        user, token = self.user(one, "ann")
        self.assertTrue(until(lambda: two.request("GET", "/mcp/servers", token=token).status == 200, NOTIFIED))
        stream = two.mcp(token=token).listen()
        mine = next(entry for entry in one.items("/tokens") if entry["user"] == user["id"])
        one.request("DELETE", f"/tokens/{mine['id']}")
        self.assertTrue(until(lambda: two.request("GET", "/mcp/servers", token=token).status == 401, NOTIFIED))
        self.assertTrue(stream.ends(5), "a token revoked at one gateway keeps a stream at the other")
        stream.close()
        one.set_config("mcp.max_stdio_processes", 33)
        self.assertTrue(until(lambda: two.get("/config/mcp.max_stdio_processes")["value"] == 33, NOTIFIED))
        one.request("DELETE", f"/mcp/servers/{row['id']}")
        self.assertTrue(until(lambda: "toy__pid" not in two.mcp().tools(), NOTIFIED))
        for gateway in (one, two):
            self.assert_exits_cleanly(gateway)

    def test_changes_reach_the_other_gateway_within_a_second(self):
        one, two = self.start_two()

        def delay(number):
            row = one.create("/mcp/servers", {"name": f"s{number}", **HTTP})
            start = time.monotonic()
            self.assertTrue(until(lambda: two.request("GET", f"/mcp/servers/{row['id']}").status == 200, NOTIFIED))
            return time.monotonic() - start

        delays = [delay(number) for number in range(9)]
        self.assertLess(statistics.median(delays), 1, delays)
        for gateway in (one, two):
            self.assert_exits_cleanly(gateway)

    def test_request_with_one_idempotency_key_is_executed_by_one_gateway(self):
        one, two = self.start_two()
        user, _ = self.user(one, "ann")
        self.assertTrue(until(lambda: two.request("GET", f"/users/{user['id']}").status == 200, NOTIFIED))
        for attempt in range(5):
            body, headers = {"user": user["id"], "name": f"t{attempt}"}, {"Idempotency-Key": f"k{attempt}"}
            send = lambda gateway: gateway.request("POST", "/tokens", body, headers=headers)
            answers = [join() for join in [self.in_background(send, gateway) for gateway in (one, two) * 4]]
            self.assertEqual({answer.status for answer in answers} | {201, 409}, {201, 409}, answers)
            repeated = [send(gateway).json()["id"] for gateway in (one, two)]
            ids = [entry["id"] for entry in one.items("/tokens") + two.items("/tokens") if entry["name"] == body["name"]]
            self.assertEqual(set(ids), set(repeated))
            self.assertEqual(len(set(ids)), 1)
        for gateway in (one, two):
            self.assert_exits_cleanly(gateway)

    def test_idempotency_key_stays_in_use_when_the_outcome_of_its_commit_is_unknown(self):
        gateway = self.start()
        name = "t" + self.word
        self.postgres.sql("create function die() returns trigger language plpgsql as "
                          "'begin perform pg_terminate_backend(pg_backend_pid()); return null; end'", name)  # fmt: skip
        self.postgres.sql("create constraint trigger die after insert on users deferrable initially deferred "
                          "for each row execute function die()", name)  # fmt: skip
        send = lambda: gateway.request("POST", "/users", {"name": "ann", "role": "user"}, headers={"Idempotency-Key": "k"})
        first = send()
        self.assertEqual((first.status, first.json()["code"]), (503, "commit_outcome_unknown"))
        self.postgres.sql("drop trigger die on users", name)
        self.assertTrue(until(lambda: gateway.request("GET", "/readyz").status == 200, 10))
        second = send()
        self.assertEqual((second.status, second.json()["code"]), (409, "idempotency_key_in_use"))
        self.assert_exits_cleanly(gateway)

    def test_stale_versions_and_taken_names_are_refused_across_gateways(self):
        one, two = self.start_two()
        rows, refused = [], []

        def create(gateway):
            answer = gateway.request("POST", "/mcp/servers", {"name": "same", **HTTP})
            (rows if answer.status == 201 else refused).append(answer)

        for join in [self.in_background(create, gateway) for gateway in (one, two) * 4]:
            join()
        self.assertEqual((len(rows), {answer.status for answer in refused}), (1, {409}))
        path, tag = f"/mcp/servers/{rows[0].json()['id']}", rows[0].headers["ETag"]
        self.assertTrue(until(lambda: two.request("GET", path).status == 200 and one.request("GET", path).status == 200, 5))
        change = lambda gateway: gateway.request("PATCH", path, {"title": "x"}, headers={"If-Match": tag}).status
        statuses = [join() for join in [self.in_background(change, gateway) for gateway in (one, two) * 4]]
        self.assertEqual((statuses.count(200), statuses.count(412)), (1, 7), statuses)
        headers = {"Idempotency-Key": "k"}
        answers = [gateway.request("POST", "/mcp/servers", {"name": "once", **HTTP}, headers=headers) for gateway in (one, two)]
        self.assertEqual([answer.status for answer in answers], [201, 201], answers)
        self.assertEqual(answers[0].json()["id"], answers[1].json()["id"])
        for gateway in (one, two):
            self.assert_exits_cleanly(gateway)

    def test_gateways_that_start_together_migrate_once(self):
        joins = [self.in_background(self.start) for _ in range(3)]
        gateways = [join() for join in joins]
        self.assertEqual({gateway.request("GET", "/readyz", token=None).status for gateway in gateways}, {200})
        names = [sorted(row["name"] for row in gateway.items("/endpoints")) for gateway in gateways]
        self.assertEqual(names, [["default", "discover"]] * 3)
        for gateway in gateways:
            self.assert_exits_cleanly(gateway)


class OutageTest(PostgresTest):
    def outage(self, begin, end, seconds):
        gateway = self.start()
        row = self.add(gateway)
        _, token = self.user(gateway, "ann")
        ready = lambda: gateway.request("GET", "/readyz", token=None)
        with gateway.mcp().listen() as listener, Load(gateway, "toy") as load:
            self.assertTrue(until(lambda: load.calls > 20 or load.problem))
            self.assertEqual(ready().status, 200)
            begin()
            start, calls = time.monotonic(), load.calls
            while time.monotonic() < start + seconds:
                answer = gateway.request("POST", "/mcp/servers", {"name": f"during{int(time.monotonic() * 1000)}", **HTTP})
                self.assert_problem(answer, 503, "database_unavailable")
                self.assertGreater(int(answer.headers["Retry-After"]), 0)
                self.assertEqual(gateway.get(f"/mcp/servers/{row['id']}")["name"], "toy")
            for_user = gateway.request("POST", "/tokens", {"name": "t"}, token=token)
            self.assert_problem(for_user, 503, "database_unavailable")
            self.assertNotIn("fairlead-pg-", for_user.text)  # the directory of the socket
            self.assertEqual(ready().status, 503)
            self.assertIn("database", ready().text)
            self.assertEqual(gateway.request("GET", "/healthz", token=None).status, 200)
            self.assertIsNone(load.problem)
            self.assertGreater(load.calls - calls, 50)
            end()
            self.assertTrue(until(lambda: ready().status == 200, 15), ready())
            created = gateway.create("/mcp/servers", {"name": "after", **HTTP})
            self.assertEqual(gateway.get(f"/mcp/servers/{created['id']}"), created)
            self.assertFalse(listener.ended.is_set())
        self.assertIsNone(load.problem)
        names = self.names(gateway)
        self.assertEqual(len(names), int(self.postgres_rows()), names)
        self.assert_exits_cleanly(gateway)

    def postgres_rows(self):
        return self.postgres.sql("SELECT count(*) FROM servers", database="t" + self.word)[0]

    def test_calls_continue_while_postgresql_is_stopped(self):
        self.outage(self.postgres.stop, self.postgres.start, STOPPED)

    def test_calls_continue_while_postgresql_does_not_answer(self):
        self.outage(self.postgres.suspend, self.postgres.resume, HUNG)

    def test_changes_of_another_gateway_during_the_outage_are_seen_after_it(self):
        one, two = self.start_two()
        # Ends the connections of both; what happens before they are back is not notified.
        self.postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()", database="postgres")
        created = until(lambda: one.request("POST", "/mcp/servers", {"name": "after", **HTTP}).status == 201, 15)
        self.assertTrue(created)
        self.assertTrue(until(lambda: "after" in self.names(two), 7))
        for gateway in (one, two):
            self.assert_exits_cleanly(gateway)

    def test_gateway_whose_database_cannot_be_reached_does_not_start(self):
        self.database = "postgresql://fairlead@/fairlead?host=" + self.path("nothing")
        with self.assertRaises(AssertionError) as refused:
            self.start()
        self.assertIn("did not start", str(refused.exception))


if __name__ == "__main__":
    enter_namespace(__file__)
    unittest.main()
