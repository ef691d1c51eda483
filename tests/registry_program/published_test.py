#!/usr/bin/env python3
"""The servers that are published at /v0.1/servers: what everybody reads, without a token, and what nobody does."""
import json
import sys
import unittest
import urllib.parse

sys.dont_write_bytecode = True

from harness import RegistryTest, request

OFFICIAL = "io.modelcontextprotocol.registry/official"
SECRET = "s3cret-value-of-the-test"


def row(name, published=None, **members):
    """A row of a server whose program does not exist."""
    config = {"command": "/nonexistent/npx", "args": ["-y", f"@acme/{name}@1.0.0", "--root", SECRET], "env": {"ACME_KEY": SECRET}}
    body = {"name": name, "description": f"The server {name}", "config": config, **members}
    if published:
        body["published"] = {"name": f"io.example/{name}", "version": "1.0.0", **(published if isinstance(published, dict) else {})}
    return body


class PublishedTest(RegistryTest):
    def setUp(self):
        super().setUp()
        self.gateway = self.start()

    def read(self, path="", method="GET", **headers):
        return request(self.gateway.port, method, "/v0.1/servers" + path, None, headers)

    def names(self, path=""):
        answer = self.read(path)
        self.assertEqual(answer.status, 200, answer)
        return [entry["server"]["name"] for entry in answer.json()["servers"]]

    def publish(self, *names, **members):
        return [self.gateway.create("/mcp/servers", row(name, True, **members)) for name in names]

    def test_everybody_reads_published_servers_without_their_values(self):
        self.publish("notes")
        self.assertEqual(self.gateway.request("GET", "/mcp/servers", token=None).status, 401)
        answer = self.read()
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.headers["Content-Type"], "application/json")
        document = answer.json()
        self.assertEqual(document["metadata"], {"count": 1})
        entry = document["servers"][0]
        self.assertEqual(entry["server"]["name"], "io.example/notes")
        self.assertEqual(entry["server"]["packages"][0]["identifier"], "@acme/notes")
        self.assertEqual(entry["server"]["packages"][0]["environmentVariables"], [{"name": "ACME_KEY", "isRequired": True, "isSecret": True}])
        self.assertEqual(entry["_meta"][OFFICIAL]["status"], "active")
        self.assertIs(entry["_meta"][OFFICIAL]["isLatest"], True)
        self.assertNotIn(SECRET, answer.text)
        name = urllib.parse.quote("io.example/notes", safe="")
        for path in (f"/{name}/versions/latest", f"/{name}/versions/1.0.0", "/io.example/notes/versions/latest"):
            self.assertEqual(self.read(path).json(), entry, path)
        self.assertEqual(self.read(f"/{name}/versions").json()["servers"], [entry])

    def test_hidden_disabled_and_other_servers_never_appear(self):
        user, _ = self.user(self.gateway, "ann")
        shown, = self.publish("shown")
        self.publish("hidden", visibility="hidden")
        self.publish("owned", visibility="user", owner=user["id"])
        self.publish("off", enabled=False)
        self.gateway.create("/mcp/servers", row("plain"))
        self.assertEqual(self.names(), ["io.example/shown"])
        for name in ("hidden", "owned", "off", "plain"):
            for path in (f"/io.example%2F{name}/versions", f"/io.example%2F{name}/versions/latest"):
                answer = self.read(path)
                self.assertEqual((answer.status, answer.json()), (404, {"error": "Server not found"}))
        self.gateway.patch(f"/mcp/servers/{shown['id']}", {"visibility": "hidden"})
        self.assertEqual(self.names(), [])
        self.gateway.patch(f"/mcp/servers/{shown['id']}", {"visibility": "visible"})
        self.assertEqual(self.names(), ["io.example/shown"])
        self.gateway.patch(f"/mcp/servers/{shown['id']}", {"published": None})
        self.assertEqual(self.names(), [])
        self.gateway.patch(f"/mcp/servers/{shown['id']}", {"published": {"name": "io.example/renamed", "version": "2.0.0"}})
        self.assertEqual(self.names(), ["io.example/renamed"])
        self.assertEqual(self.gateway.request("DELETE", f"/mcp/servers/{shown['id']}").status, 204)
        self.assertEqual(self.names(), [])

    def test_pages_have_every_server_once(self):
        self.publish(*(f"s{number:02}" for number in range(7)))
        found, cursor, pages = [], "", 0
        while True:
            page = self.read(f"?limit=3&cursor={cursor}").json()
            found += [entry["server"]["name"] for entry in page["servers"]]
            self.assertEqual(page["metadata"]["count"], len(page["servers"]))
            cursor, pages = page["metadata"].get("nextCursor", ""), pages + 1
            if not cursor:
                break
        self.assertEqual(found, [f"io.example/s{number:02}" for number in range(7)])
        self.assertEqual(pages, 3)

    def test_versions_of_one_name_are_listed_from_the_newest(self):
        for number, version in enumerate(("1.9.0", "1.10.0", "1.10.0-rc.2", "1.10.0-rc.10")):
            self.gateway.create("/mcp/servers", row(f"v{number}", {"name": "io.example/many", "version": version}))
        ordered = ["1.10.0", "1.10.0-rc.10", "1.10.0-rc.2", "1.9.0"]
        entries = self.read("/io.example%2Fmany/versions").json()["servers"]
        self.assertEqual([entry["server"]["version"] for entry in entries], ordered)
        self.assertEqual([entry["_meta"][OFFICIAL]["isLatest"] for entry in entries], [True, False, False, False])
        self.assertEqual(self.read("/io.example%2Fmany/versions/latest").json()["server"]["version"], "1.10.0")
        self.assertEqual(self.read("/io.example%2Fmany/versions/1.9.0").json(), entries[3])
        self.assertEqual([entry["server"]["version"] for entry in self.read("?version=latest").json()["servers"]], ["1.10.0"])
        self.assertEqual([entry["server"]["version"] for entry in self.read("?version=1.9.0").json()["servers"]], ["1.9.0"])
        answer = self.read("/io.example%2Fmany/versions/3.0.0")
        self.assertEqual((answer.status, answer.json()), (404, {"error": "Server version not found"}))
        listed, cursor = [], ""
        for _ in ordered:
            page = self.read(f"?limit=1&cursor={cursor}").json()
            listed += [entry["server"]["version"] for entry in page["servers"]]
            cursor = page["metadata"].get("nextCursor", "")
        self.assertEqual((listed, cursor), (ordered, ""))

    def test_search_and_changes_select_servers(self):
        first, second = self.publish("notes", "files")
        self.assertEqual(self.names("?search=NOTE"), ["io.example/notes"])
        self.assertEqual(self.names("?search=the%20server%20f"), ["io.example/files"])
        self.assertEqual(self.names("?search=nothing"), [])
        changed = self.gateway.patch(f"/mcp/servers/{first['id']}", {"description": "Changed"})
        self.assertEqual(self.names("?updated_since=" + changed["updatedAt"]), ["io.example/notes"])
        self.assertEqual(self.names("?updated_since=2000-01-01T00:00:00Z"), ["io.example/files", "io.example/notes"])
        self.assertGreater(changed["updatedAt"], second["updatedAt"])

    def test_web_pages_of_every_origin_may_read(self):
        self.publish("notes")
        for origin in ("https://other.example", "null"):
            answer = self.read("", Origin=origin)
            self.assertEqual((answer.status, answer.headers["Access-Control-Allow-Origin"]), (200, "*"), answer)
            preflight = self.read("", method="OPTIONS", Origin=origin, **{"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"})
            self.assertEqual(preflight.status, 204, preflight)
            self.assertEqual(preflight.headers["Access-Control-Allow-Origin"], "*")
            self.assertEqual(preflight.headers["Access-Control-Allow-Methods"], "GET, OPTIONS")
            self.assertEqual(preflight.headers["Access-Control-Allow-Headers"], "Authorization, Content-Type")
        self.assertEqual(self.read("/io.example%2Fnotes/versions/latest", Origin="https://other.example").headers["Access-Control-Allow-Origin"], "*")
        for path in ("/api/v1/mcp/servers", "/mcp", "/v0.10/servers"):
            self.assertEqual(request(self.gateway.port, "GET", path, None, {"Origin": "https://other.example"}).status, 403, path)

    def test_tokens_are_neither_needed_nor_checked(self):
        self.publish("notes")
        for credentials in ("Bearer wrong", "Basic eDp5", "Bearer " + self.gateway.token):
            self.assertEqual(self.read("", Authorization=credentials).status, 200)

    def test_wrong_requests_are_errors_of_the_registry(self):
        for path, status in (("?limit=0", 400), ("?limit=x", 400), ("?cursor=x", 400), ("?updated_since=yesterday", 400), ("?search=%ff", 400), ("/x", 404),
                             ("/a%2Fb/versions", 404), ("/a%2Fb/other", 404), ("/a/b/versions/1/2", 404), ("/%ff/versions", 404), ("/%00/versions", 404)):  # fmt: skip
            answer = self.read(path)
            self.assertEqual(answer.status, status, (path, answer))
            self.assertEqual(list(answer.json()), ["error"], path)
        for method, path, status in (("POST", "/v0.1/publish", 501), ("DELETE", "/v0.1/servers/a%2Fb/versions/1", 405), ("PUT", "/v0.1/servers", 405),
                                     ("GET", "/v0.1", 404), ("GET", "/v0.1/other", 404)):  # fmt: skip
            answer = request(self.gateway.port, method, path, b"", {"Content-Length": "0"})
            self.assertEqual((answer.status, list(answer.json())), (status, ["error"]), (path, answer))
        self.assertEqual(self.names("?limit=1000&unknown=1"), [])

    def test_only_administrators_publish(self):
        _, token = self.user(self.gateway, "ann")
        body = {"name": "mine", "config": {"url": "https://e.example/mcp"}, "published": {"name": "io.example/mine", "version": "1.0.0"}}
        self.assert_problem(self.gateway.request("POST", "/mcp/servers", body, token=token), 403, "forbidden", "/published")
        del body["published"]
        mine = self.gateway.create("/mcp/servers", body, token=token)
        patch = {"published": {"name": "io.example/mine", "version": "1.0.0"}}
        self.assert_problem(self.gateway.request("PATCH", f"/mcp/servers/{mine['id']}", patch, token=token), 403, "forbidden", "/published")
        self.gateway.patch(f"/mcp/servers/{mine['id']}", patch)
        self.gateway.patch(f"/mcp/servers/{mine['id']}", {"description": "Mine"}, token=token)
        self.assert_problem(self.gateway.request("PATCH", f"/mcp/servers/{mine['id']}", {"published": None}, token=token), 403, "forbidden", "/published")
        self.assertEqual(self.names(), [])

    def test_too_many_requests_are_refused_for_a_minute(self):
        statuses = [self.read("/a%2Fb/versions").status for _ in range(605)]
        self.assertEqual(statuses[:600], [404] * 600)
        self.assertIn(429, statuses)
        answer = self.read()
        self.assertEqual((answer.status, answer.headers["Retry-After"]), (429, "60"))
        self.assertIn("max_published_requests", answer.json()["error"])

    def test_servers_are_published_again_after_a_restart(self):
        self.publish("notes")
        before = self.read().json()
        self.assert_exits_cleanly(self.gateway)
        self.gateway = self.start()
        self.assertEqual(self.read().json(), before)


if __name__ == "__main__":
    unittest.main()
