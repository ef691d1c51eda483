#!/usr/bin/env python3
"""What is acknowledged is kept: SIGKILL during changes on both databases, and a disk without space. FAIRLEAD_TEST_LONG=1: more
moments."""
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import unittest

sys.dont_write_bytecode = True

from harness import RegistryTest, enter_namespace, until
from postgres import PostgresServer

MOMENTS = 100 if os.environ.get("FAIRLEAD_TEST_LONG") == "1" else 5  # of each database
HTTP = {"transport": "http", "config": {"transport": "http", "url": "http://127.0.0.1:9/mcp"}, "enabled": False}


class Writer(threading.Thread):
    """Creates, changes and deletes rows until the gateway is gone. Records what was acknowledged, and what is undecided."""

    def __init__(self, gateway, label):
        super().__init__(daemon=True)
        self.gateway, self.label = gateway, label
        self.rows = {}  # id -> the acknowledged row, None if deleted
        self.pending = None  # (id or name, "create" | "patch" | "delete") of the request without an answer
        self.problem = None

    def run(self):
        try:
            for number in range(10_000):
                name = f"{self.label}-{number}"
                row = self.send(name, "create", "POST", "/mcp/servers", {"name": name, "metadata": {"step": 0}, **HTTP}, 201)
                self.rows[row["id"]] = row
                path = f"/mcp/servers/{row['id']}"
                change = {"title": name, "metadata": {"step": 1}}
                self.rows[row["id"]] = self.send(row["id"], "patch", "PATCH", path, change, 200)
                if number % 3 == 0:
                    self.send(row["id"], "delete", "DELETE", path, None, 204)
                    self.rows[row["id"]] = None
        except (OSError, EOFError, ConnectionError):
            pass  # killed
        except Exception as problem:
            if "RemoteDisconnected" not in repr(problem) and "IncompleteRead" not in repr(problem):
                self.problem = problem

    def send(self, key, operation, method, path, body, status):
        self.pending = (key, operation)
        answer = self.gateway.request(method, path, body)
        if answer.status != status:
            raise AssertionError(answer)
        self.pending = None
        return answer.json() if answer.body else None


class KillTest(RegistryTest):
    def kill_and_compare(self):
        random_source = random.Random(13)
        rows, undecided = {}, []
        gateway = self.start()
        initial = {row["id"] for row in gateway.items("/mcp/servers")}
        for moment in range(MOMENTS):
            writers = [Writer(gateway, f"m{moment}w{number}") for number in range(3)]
            for writer in writers:
                writer.start()
            goal = random_source.randint(1, 40)
            self.assertTrue(until(lambda: sum(len(writer.rows) for writer in writers) >= goal or any(writer.problem for writer in writers)))
            gateway.end(signal.SIGKILL)
            for writer in writers:
                writer.join(30)
                self.assertIsNone(writer.problem)
                rows.update(writer.rows)
                if writer.pending:
                    undecided.append(writer.pending)
            gateway = self.start()
            self.compare({row["id"]: row for row in gateway.items("/mcp/servers?limit=500") if row["id"] not in initial}, rows, undecided)
        self.assertTrue(any(row is None for row in rows.values()) and sum(row is not None for row in rows.values()) > MOMENTS)
        self.assert_exits_cleanly(gateway)

    def compare(self, found, rows, undecided):
        keys = dict(undecided)
        for id, row in rows.items():
            operation = keys.get(id)
            if operation == "delete" and id not in found:
                continue
            if row is None:
                self.assertNotIn(id, found, "a deleted row is back")
            elif operation == "patch" and found[id] != row:
                self.assertEqual((found[id]["title"], found[id]["metadata"], found[id]["version"]), (found[id]["name"], {"step": 1}, 2), "half a change")
            else:
                self.assertEqual(found[id], row)
        for id, row in found.items():
            if id not in rows:
                self.assertEqual(keys.get(row["name"]), "create", row)
                self.assertEqual((row["metadata"], row["version"]), ({"step": 0}, 1))

    def test_killed_gateway_keeps_every_acknowledged_change_in_sqlite(self):
        self.kill_and_compare()

    def test_killed_gateway_keeps_every_acknowledged_change_in_postgresql(self):
        with PostgresServer() as postgres:
            self.database = postgres.address
            self.kill_and_compare()


class DatabaseFileTest(RegistryTest):
    def assert_survives_full_disk(self, make_full, make_room, codes):
        """Fills the disk with rows until a change fails. Reads and calls go on, nothing acknowledged is lost, and changes are
        possible again when there is room."""
        gateway = self.start()
        row = self.add(gateway)
        make_full(gateway)
        answers = []
        for number in range(400):
            answers.append(gateway.request("POST", "/mcp/servers", {"name": f"fill{number}", "metadata": {"fill": "x" * 20_000}, **HTTP}))
            if answers[-1].status != 201:
                break
        self.assertIn(self.assert_problem(answers[-1], answers[-1].status)["code"], codes)
        self.assertIn(answers[-1].status, (503, 507))
        self.assertIsNone(gateway.process.poll(), gateway.log[-10:])
        self.assertEqual(gateway.get(f"/mcp/servers/{row['id']}")["name"], "toy")
        client = gateway.mcp()
        self.assertIn("toy__pid", client.tools())
        client.text("toy__echo")
        again = gateway.request("PATCH", f"/mcp/servers/{row['id']}", {"metadata": {"fill": "x" * 100_000}})
        self.assertIn(self.assert_problem(again, again.status)["code"], codes)
        kept = {answer.json()["name"] for answer in answers[:-1]}
        make_room(gateway)
        after = lambda: gateway.request("POST", "/mcp/servers", {"name": "after", **HTTP}).status in (201, 409)
        self.assertTrue(until(after, 15), gateway.log[-10:])
        self.assertEqual(gateway.end(), 0, gateway.log[-10:])
        gateway = self.start()
        self.assertLessEqual(kept | {"after", "toy"}, {row["name"] for row in gateway.items("/mcp/servers?limit=500")})
        self.assert_exits_cleanly(gateway)

    def test_full_disk_is_a_clear_error_and_reads_and_calls_go_on(self):
        disk = self.path("disk")
        os.mkdir(disk)
        mount = ["mount", "-t", "tmpfs", "-o", "size=3M", "tmpfs", disk]
        if os.getpid() != 1 and os.getppid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
            self.skipTest("a small file system cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", disk])
        self.database = "sqlite:" + os.path.join(disk, "fairlead.db")
        full = lambda gateway: None
        room = lambda gateway: subprocess.run(["mount", "-o", "remount,size=64M", disk], check=True)
        self.assert_survives_full_disk(full, room, {"database_full"})

    def test_limit_of_the_size_of_files_is_a_clear_error_and_reads_and_calls_go_on(self):
        def full(gateway):
            size = max(os.path.getsize(self.path(name)) for name in os.listdir(self.scratch) if name.startswith("fairlead.db"))
            resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, (size + 100_000, resource.RLIM_INFINITY))

        room = lambda gateway: resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        self.assert_survives_full_disk(full, room, {"database_full", "database_unavailable"})

    def test_second_gateway_on_one_file_is_refused(self):
        gateway = self.start()
        with self.assertRaises(AssertionError) as refused:
            self.start()
        self.assertIn("another", str(refused.exception))
        self.assertEqual(gateway.request("GET", "/readyz").status, 200)
        self.assert_exits_cleanly(gateway)

    def test_file_that_is_not_a_database_is_refused_and_kept(self):
        for content in (b"not a database" * 1000, b"SQLite format 3\x00" + os.urandom(8192)):
            with open(self.path("fairlead.db"), "wb") as file:
                file.write(content)
            with self.assertRaises(AssertionError):
                self.start()
            with open(self.path("fairlead.db"), "rb") as file:
                self.assertEqual(file.read(), content)

    def test_newer_schema_is_refused(self):
        gateway = self.start()
        self.assertEqual(gateway.end(), 0)
        with sqlite3.connect(self.path("fairlead.db")) as database:
            tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            [table] = [name for name in tables if "migration" in name or "schema_version" in name]
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            newest = database.execute(f"SELECT * FROM {table} ORDER BY version DESC LIMIT 1").fetchone()
            values = [9999 if column == "version" else value for column, value in zip(columns, newest)]
            database.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(values))})", values)
        database.close()
        with self.assertRaises(AssertionError) as refused:
            self.start()
        self.assertIn("schema_too_new", str(refused.exception))

    def test_copy_of_the_files_of_a_killed_gateway_opens(self):
        gateway = self.start()
        row = gateway.create("/mcp/servers", {"name": "kept", **HTTP})
        gateway.end(signal.SIGKILL)
        os.mkdir(self.path("copy"))
        for name in os.listdir(self.scratch):
            if name.startswith("fairlead.db"):
                shutil.copy(self.path(name), os.path.join(self.path("copy"), name))
        gateway = self.start(database="sqlite:" + os.path.join(self.path("copy"), "fairlead.db"))
        self.assertEqual(gateway.get(f"/mcp/servers/{row['id']}"), row)
        self.assert_exits_cleanly(gateway)


if __name__ == "__main__":
    enter_namespace(__file__)
    unittest.main()
