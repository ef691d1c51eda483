#!/usr/bin/env python3
"""Hostile requests to the admin API: each is answered with a 4xx that names the member, nothing is stored, and the gateway lives. Also
run in the address-sanitizer build."""
import contextlib
import http.client
import json
import socket
import sys
import unittest

sys.dont_write_bytecode = True

from harness import ADMIN_TOKEN, DEADLINE, SANITIZED, UNKNOWN_ID, RegistryTest, enter_namespace, until

URL = {"transport": "http", "url": "http://127.0.0.1:9/mcp"}
SERVER = {"name": "victim", "transport": "http", "config": URL, "enabled": False}
METACHARACTERS = (
    "'; DROP TABLE servers; --", "\\' OR 1=1 --", "$1", "%s%n", "?", '"', "`", "a'||(SELECT 1)||'", "\\", "E'\\\\x00'", "{}", "${HOME}", "<script>alert(1)</script>",
    "\u202e", "\ufeff", "\U0001f600" * 20, "line\nbreak\r\n: x", "\x01\x1f\x7f",
)  # fmt: skip
COLLECTIONS = {"/mcp/servers": SERVER, "/endpoints": {"name": "victim"}, "/users": {"name": "victim", "role": "user"}, "/groups": {"name": "victim"}}
WRONG = {
    "text": (5, True, [], {}, ["a"]), "boolean": ("true", 1, [], {}), "object": ("x", 5, True, []), "texts": ("x", 5, {}, [1], ["a", None], [[]]),
    "map": ("x", 5, [], {"a": 1}, {"a": []}),
}  # fmt: skip


class HostileBodiesTest(RegistryTest):
    def setUp(self):
        super().setUp()
        self.gateway = self.start()
        self.before = self.snapshot()

    def tearDown(self):
        self.assertEqual(self.snapshot(), self.before, "a refused request has changed something")
        if not SANITIZED:
            self.assertLessEqual(self.gateway.get("/health")["loop"]["longest_turn_ms"], 50)
        self.assert_exits_cleanly(self.gateway)

    def snapshot(self):
        return {path: self.gateway.items(path) for path in (*COLLECTIONS, "/config")}

    def post(self, body, path="/mcp/servers", **options):
        return self.gateway.request("POST", path, body, **options)

    def assert_refused(self, answer, *pointers, statuses=(422,)):
        document = self.assert_problem(answer, answer.status)
        self.assertIn(answer.status, statuses, answer)
        if pointers:
            named = [error["pointer"] for error in document.get("errors", [])]
            self.assertTrue(set(named) & set(pointers), (pointers, answer))
        return document

    def test_wrong_types_name_the_member(self):
        members = {"name": "text", "title": "text", "description": "text", "domain": "text", "tags": "texts", "transport": "text", "config": "object",
                   "visibility": "text", "enabled": "boolean", "tools": "object", "drift": "text", "metadata": "object"}  # fmt: skip
        for member, kind in members.items():
            for value in WRONG[kind]:
                with self.subTest(member=member, value=value):
                    prefix = f"/{member}"
                    document = self.assert_refused(self.post({**SERVER, member: value}))
                    self.assertTrue(document["errors"][0]["pointer"].startswith(prefix), document)
        for member, kind in {"url": "text", "headers": "map", "command": "text", "args": "texts", "env": "map", "cwd": "text", "clocks": "object"}.items():
            for value in WRONG[kind]:
                with self.subTest(member=f"config/{member}", value=value):
                    stdio = member in ("command", "args", "env", "cwd")
                    config = {"transport": "stdio", "command": "true"} if stdio else dict(URL)
                    body = {**SERVER, "transport": config["transport"], "config": {**config, member: value}}
                    document = self.assert_refused(self.post(body))
                    self.assertTrue(document["errors"][0]["pointer"].startswith(f"/config/{member}"), document)

    def test_unknown_and_server_controlled_members_are_refused(self):
        for path, body in COLLECTIONS.items():
            for member, value in {"surprise": 1, "Name": "x", "": 1, "__proto__": {}, "a/b~c": 1, "id": UNKNOWN_ID, "version": 9, "createdAt": "2020-01-01T00:00:00Z"}.items():
                with self.subTest(path=path, member=member):
                    pointer = "/" + member.replace("~", "~0").replace("/", "~1")
                    self.assert_refused(self.post({**body, member: value}, path), pointer)
        for config in ({**URL, "surprise": 1}, {**URL, "command": "sh"}, {"transport": "stdio", "command": "sh", "url": "http://x"}, {**URL, "transport": "stdio"},
                       {"transport": "http"}, {"transport": "stdio"}, {}):  # fmt: skip
            with self.subTest(config=config):
                document = self.assert_refused(self.post({**SERVER, "config": config}))
                self.assertTrue(document["errors"][0]["pointer"].startswith(("/config", "/transport")), document)

    def test_malformed_json_is_refused(self):
        texts = {
            "empty": b"", "not json": b"x", "half": b'{"name":"x"', "two documents": b"{}{}", "trailing comma": b'{"name":"x",}', "single quotes": b"{'name':'x'}",
            "array": b"[]", "string": b'"x"', "null": b"null", "number": b"5", "invalid utf-8": b'{"name":"\xff\xfe"}', "overlong": b'{"name":"\xc0\x80"}',
            "utf-8 surrogate": b'{"name":"\xed\xa0\x80"}', "lone surrogate": b'{"name":"\\ud800"}', "nul": b'{"name":"a\\u0000b"}', "raw nul": b'{"name":"a\x00b"}',
            "utf-16": '{"name":"x"}'.encode("utf-16"), "bom": b"\xef\xbb\xbf{}", "control": b'{"name":"a\nb"}', "nan": b'{"name":NaN}', "comment": b'{"name":"x"/*c*/}',
        }  # fmt: skip
        for path in COLLECTIONS:
            for name, text in texts.items():
                with self.subTest(path=path, body=name):
                    self.assert_refused(self.post(text, path), statuses=(400, 422))
            for name in ("invalid utf-8", "overlong", "utf-8 surrogate", "raw nul", "control", "nan"):
                with self.subTest(path=path, named=name):
                    self.assert_refused(self.post(texts[name], path), "/name", statuses=(400,))

    def test_deep_nesting_is_refused(self):
        for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
            for depth in (200, 100_000):
                with self.subTest(opening=opening, depth=depth):
                    text = b'{"name":"x","metadata":{"m":' + opening * depth + b"1" + closing * depth + b"}}"
                    self.assert_refused(self.post(text), statuses=(400, 413, 422))
                    self.assert_refused(self.post(b'{"metadata":' + opening * depth), statuses=(400, 413, 422))

    def test_repeated_members_are_refused(self):
        config = json.dumps(URL)
        for text, pointer in (
            ('{"name":"a","name":"b","transport":"http","config":%s}' % config, "/name"),
            ('{"name":"a","n\\u0061me":"b","transport":"http","config":%s}' % config, "/name"),
            ('{"name":"a","transport":"http","config":{"url":"http://127.0.0.1:9/a","url":"http://127.0.0.1:9/b"}}', "/config/url"),
            ('{"name":"a","transport":"http","config":%s,"visibility":"hidden","visibility":"visible"}' % config, "/visibility"),
        ):  # fmt: skip
            with self.subTest(text=text):
                self.assert_refused(self.post(text.encode()), pointer, statuses=(400, 422))

    def test_long_values_are_refused(self):
        mebibyte = "x" * (1 << 20)
        for member in ("name", "title", "description", "domain", "visibility", "drift", "transport"):
            with self.subTest(member=member):
                self.assert_refused(self.post({**SERVER, member: mebibyte}), f"/{member}", statuses=(413, 422))
        for path in ("/endpoints", "/users", "/groups"):
            self.assert_refused(self.post({**COLLECTIONS[path], "name": mebibyte}, path), "/name", statuses=(413, 422))
        self.assert_refused(self.post({**SERVER, mebibyte: 1}), statuses=(413, 422))
        self.assert_refused(self.post({**SERVER, "tags": ["x"] * 200_000}), statuses=(413, 422))

    def test_ten_mebibyte_bodies_are_refused(self):
        for body in (b'{"name":"' + b"x" * (10 << 20) + b'"}', b" " * (10 << 20), b"[" * (10 << 20)):
            answer = self.post(body)
            self.assert_refused(answer, statuses=(400, 413, 422))
        answer = self.post({**SERVER, "metadata": {"fill": "x" * (10 << 20)}})
        self.assertEqual(answer.status, 413, answer.text[:200])

    def test_metacharacters_are_stored_as_they_are_or_refused_with_the_member(self):
        for text in METACHARACTERS:
            with self.subTest(text=text):
                for path, body in COLLECTIONS.items():
                    self.assert_refused(self.post({**body, "name": text}, path), "/name")
                members = {"title": text, "description": text, "metadata": {text: [text]}}
                answer = self.post({**SERVER, **members})
                if answer.status != 201:
                    self.assert_refused(answer)
                    continue
                row = answer.json()
                self.assertEqual({member: row.get(member) for member in members}, members)
                self.assertEqual(self.gateway.get(f"/mcp/servers/{row['id']}"), row)
                changed = self.gateway.request("PATCH", f"/mcp/servers/{row['id']}", {"tags": [text]})
                if changed.status == 200:
                    self.assertEqual(changed.json()["tags"], [text])
                self.assertEqual(self.gateway.request("DELETE", f"/mcp/servers/{row['id']}").status, 204)

    def test_hostile_patches_are_refused(self):
        row = self.gateway.create("/mcp/servers", SERVER)
        path = f"/mcp/servers/{row['id']}"
        for body, pointer in (({"name": None}, "/name"), ({"config": None}, "/config"), ({"config": {"url": None}}, "/config"), ({"id": UNKNOWN_ID}, "/id"),
                              ({"version": 7}, "/version"), ({"surprise": {}}, "/surprise"), ({"config": {"surprise": 1}}, "/config/surprise"),
                              ({"transport": "stdio"}, "/transport"), ({"owner": UNKNOWN_ID}, "/owner"), ({"tags": "x"}, "/tags")):  # fmt: skip
            with self.subTest(body=body):
                document = self.assert_refused(self.gateway.request("PATCH", path, body))
                self.assertTrue(document["errors"][0]["pointer"].startswith(pointer) or pointer == "/transport", document)
        for body in (b"[]", b"null", b'"x"', b"", b'[{"op":"remove","path":"/name"}]'):
            self.assert_refused(self.gateway.request("PATCH", path, body), statuses=(400, 422))
        self.assertEqual(self.gateway.get(path), row)
        self.assertEqual(self.gateway.request("DELETE", path).status, 204)

    def test_wrong_content_types_and_methods_are_refused(self):
        body = json.dumps(SERVER).encode()
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp", "x" * 2000):
            self.assert_refused(self.post(body, headers={"Content-Type": kind}), statuses=(400, 415))
        for method, path in (("PUT", "/mcp/servers"), ("DELETE", "/mcp/servers"), ("POST", f"/mcp/servers/{UNKNOWN_ID}"), ("PATCH", "/config/mcp.max_stdio_processes"),
                             ("TRACE", "/users"), ("BREW", "/users")):  # fmt: skip
            answer = self.gateway.request(method, path, {} if method != "TRACE" else None)
            self.assertIn(answer.status, (400, 404, 405, 501), (method, path, answer))

    def test_hostile_headers_are_refused_or_ignored(self):
        row = self.gateway.create("/mcp/servers", SERVER)
        path = f"/mcp/servers/{row['id']}"
        for value in ('"', "W/", '"1", "2"', "x" * 4000, '"-1"', '"99999999999999999999999"', "", '"1'):
            with self.subTest(if_match=value[:20]):
                answer = self.gateway.request("PATCH", path, {"title": "x"}, headers={"If-Match": value})
                self.assertIn(answer.status, (200, 400, 412, 431), answer)
        for value in ("x" * 4000, "", "\t", "a b", "'--", "\x7f"):
            with self.subTest(key=value[:20]):
                answer = self.post({**SERVER, "name": "victim"}, headers={"Idempotency-Key": value})
                self.assertIn(answer.status, (400, 409, 422, 431), answer)
        self.assertEqual(self.gateway.request("DELETE", path).status, 204)

    def test_broken_http_is_refused(self):
        head = f"POST /mcp/servers HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\nContent-Type: application/json\r\n"
        for rest in ("Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}", "Content-Length: -1\r\n\r\n", "Content-Length: 99999999999999999999\r\n\r\n",
                     "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}", "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", "X: " + "y" * 200_000 + "\r\n\r\n",
                     "Content-Length: 99999999999\r\n\r\n{"):  # fmt: skip
            with self.subTest(rest=rest[:40]), socket.create_connection(("127.0.0.1", self.gateway.port), DEADLINE) as client:
                with contextlib.suppress(ConnectionError):
                    client.sendall((head + rest).encode())
                    answer = client.recv(4096)
                    self.assertTrue(not answer or answer.startswith(b"HTTP/1.1 4"), answer)

    def test_abandoned_requests_leave_nothing(self):
        body = json.dumps(SERVER)
        head = f"POST /mcp/servers HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\nContent-Type: application/json\r\n"
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", self.gateway.port), DEADLINE) as client:
                client.sendall(f"{head}Content-Length: {len(body) + 1}\r\n\r\n{body}".encode())
        self.assertTrue(until(lambda: self.gateway.request("GET", "/healthz", token=None).status == 200))

    def test_many_parallel_hostile_requests_do_not_disturb_others(self):
        bodies = [b"[" * 100_000, json.dumps({**SERVER, "name": "x" * 100_000}).encode(), b'{"name":', json.dumps({**SERVER, "config": {}}).encode()]

        def attack():
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=DEADLINE)) as connection:
                for number in range(20 if SANITIZED else 100):
                    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "Content-Type": "application/json"}
                    connection.request("POST", "/mcp/servers", bodies[number % len(bodies)], headers)
                    response = connection.getresponse()
                    response.read()
                    self.assertEqual(response.status // 100, 4)

        joins = [self.in_background(attack) for _ in range(8)]
        for _ in range(10):
            self.assertEqual(self.gateway.request("GET", "/mcp/servers").status, 200)
        for join in joins:
            join()


if __name__ == "__main__":
    enter_namespace(__file__)
    unittest.main()
