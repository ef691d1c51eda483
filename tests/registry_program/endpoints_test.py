#!/usr/bin/env python3
"""Endpoints: selection by servers, tags and tools, renames, who may use them, every transport, and changes at run time."""
import json
import sys
import unittest

sys.dont_write_bytecode = True

from harness import LEGACY, MODERN, RegistryTest, bearer, enter_namespace, tool, until
from websocket import WebSocket

META_TOOLS = {"discover_tools", "get_tool_schema", "execute_tool", "list_tool_domains", "browse_tool_domain"}
LISTS = {"resources": [{"uri": "toy://r", "name": "r"}], "prompts": [{"name": "p"}]}


class EndpointsTest(RegistryTest):
    def setUp(self):
        super().setUp()
        self.gateway = self.start()
        self.rows = {name: self.add(self.gateway, name, tags=tags) for name, tags in (("one", ["red"]), ("two", ["red", "blue"]), ("three", []))}

    def tearDown(self):
        self.assert_exits_cleanly(self.gateway)

    def names(self, path, token=None, **options):
        client = self.gateway.mcp(path, token or self.gateway.token, **options)
        return {name for name in client.tools() if name.partition("__")[0] in self.rows}

    def assert_tools(self, path, *wanted):
        self.assertTrue(until(lambda: self.names(path) == set(wanted), 10), (self.names(path), wanted))

    def test_default_endpoints_exist(self):
        rows = {row["name"]: row for row in self.gateway.items("/endpoints")}
        self.assertEqual((rows["default"]["mode"], rows["discover"]["mode"]), ("direct", "discover"))
        self.assertGreater(len(self.names("/mcp")), 8)
        self.assertLessEqual(META_TOOLS, set(self.gateway.mcp("/mcp/e/discover").tools()))
        self.assertFalse(META_TOOLS & set(self.gateway.mcp("/mcp").tools()))
        self.assertEqual(self.gateway.request("DELETE", f"/endpoints/{rows['default']['id']}").status // 100, 4)

    def test_rows_are_created_changed_and_deleted(self):
        row = self.gateway.create("/endpoints", {"name": "team", "servers": ["one"], "description": "D"})
        path = f"/endpoints/{row['id']}"
        self.assertEqual((row["version"], row["mode"], row["enabled"]), (1, "direct", True))
        self.assertEqual(self.gateway.get(path), row)
        self.assert_problem(self.gateway.request("POST", "/endpoints", {"name": "team"}), 409, "name_taken")
        changed = self.gateway.patch(path, {"servers": ["two"]})
        self.assertEqual((changed["version"], changed["servers"]), (2, ["two"]))
        for body, pointer in (({"name": "a/b"}, "/name"), ({"name": "x", "mode": "other"}, "/mode"), ({"name": "x", "servers": "one"}, "/servers"),
                              ({"name": "x", "tags": [1]}, "/tags/0"), ({"name": "x", "surprise": 1}, "/surprise"), ({}, "/name")):  # fmt: skip
            with self.subTest(body=body):
                self.assert_problem(self.gateway.request("POST", "/endpoints", body), 422, pointer=pointer)
        self.assertEqual(self.gateway.request("DELETE", path).status, 204)
        self.assertEqual(self.gateway.mcp("/mcp/e/team").raw("tools/list").status, 404)

    def test_servers_tags_and_tools_select(self):
        tools = ("pid", "echo", "wait")
        every = lambda *servers: {f"{server}__{name}" for server in servers for name in tools}
        for name, members, wanted in (
            ("byname", {"servers": ["one"]}, every("one")), ("bypattern", {"servers": ["t*"]}, every("two", "three")),
            ("bytag", {"tags": ["red"]}, every("one", "two")), ("union", {"servers": ["three"], "tags": ["blue"]}, every("two", "three")),
            ("bytool", {"tools": ["*__pid", "one__*"]}, every("one") | {"two__pid", "three__pid"}),
            ("denied", {"servers": ["one"], "deny": ["*__wait"]}, {"one__pid", "one__echo"}), ("nothing", {"servers": ["absent"]}, set()),
        ):  # fmt: skip
            with self.subTest(endpoint=name):
                self.gateway.create("/endpoints", {"name": name, **members})
                self.assert_tools(f"/mcp/e/{name}", *wanted)
                client = self.gateway.mcp(f"/mcp/e/{name}")
                for server in self.rows:
                    if f"{server}__echo" in wanted:
                        self.assertEqual(client.text(f"{server}__echo"), "{}")
                    else:
                        client.error("tools/call", name=f"{server}__echo", arguments={})

    def test_renamed_tools_are_called_by_the_new_name_only(self):
        self.gateway.create("/endpoints", {"name": "team", "servers": ["one"], "rename": {"one__echo": "say"}})
        client = self.gateway.mcp("/mcp/e/team")
        self.assertTrue(until(lambda: "say" in client.tools(), 10))
        self.assertNotIn("one__echo", client.tools())
        self.assertEqual(client.text("say", x=1), '{"x": 1}')
        client.error("tools/call", name="one__echo", arguments={})
        self.assertEqual(self.gateway.mcp().text("one__echo"), "{}")  # at /mcp nothing has changed

    def test_users_and_groups_of_an_endpoint_may_use_it(self):
        ann, ann_token = self.user(self.gateway, "ann")
        bob, bob_token = self.user(self.gateway, "bob")
        _, eve_token = self.user(self.gateway, "eve")
        group = self.gateway.create("/groups", {"name": "team", "members": [bob["id"]]})
        row = self.gateway.create("/endpoints", {"name": "team", "servers": ["one"], "users": [ann["id"]], "groups": [group["id"]]})
        status = lambda token: self.gateway.mcp("/mcp/e/team", token).raw("tools/list").status
        self.assertEqual([status(token) for token in (ann_token, bob_token, self.gateway.token)], [200, 200, 200])
        missing = self.gateway.mcp("/mcp/e/absent", eve_token).raw("tools/list")
        refused = self.gateway.mcp("/mcp/e/team", eve_token).raw("tools/list")
        self.assertEqual((refused.status, refused.text.replace("team", "absent")), (missing.status, missing.text))
        self.assertEqual(missing.status, 404)
        self.assertNotIn('"team"', self.gateway.request("GET", "/endpoints", token=eve_token).text)
        session = self.gateway.mcp("/mcp/e/team", bob_token, LEGACY)
        with session.listen() as stream:
            self.gateway.patch(f"/groups/{group['id']}", {"members": []})
            self.assertTrue(until(lambda: status(bob_token) == 404, 5))
            self.assertIn(session.raw("tools/list").status, (401, 403, 404))
            self.assertTrue(stream.ends(10), "the stream of a client that may no longer use the endpoint is still open")
        self.gateway.patch(f"/endpoints/{row['id']}", {"users": [], "groups": []})
        self.assertTrue(until(lambda: status(eve_token) == 200, 5))

    def test_status_has_the_servers_that_the_scopes_of_the_token_name(self):
        ann, everything = self.user(self.gateway, "ann")
        self.gateway.create("/endpoints", {"name": "team", "servers": ["one"]})
        self.gateway.create("/endpoints", {"name": "others", "users": [self.user(self.gateway, "bob")[0]["id"]]})
        both = {"one", "two"}
        expected = [
            (["endpoint:team"], {"one"}), (["server:two"], {"two"}), (["endpoint:team", "server:two"], both), (["endpoint:default"], both),
            (["endpoint:others"], set()), (["endpoint:absent"], set()), (["server:absent"], set()), (["mcp"], both), (["admin:users:read"], set()),
        ]  # fmt: skip
        for scopes, servers in expected:
            report = self.gateway.request("GET", "/health", token=self.token(self.gateway, ann, scopes=scopes))
            self.assertEqual({server["name"] for server in report.json()["servers"]} & both, servers, (scopes, report))
            for hidden in both - servers:
                self.assertNotIn(f'"{hidden}"', report.text, scopes)
        report = self.gateway.request("GET", "/health", token=everything).json()
        self.assertEqual({server["name"] for server in report["servers"]} & both, both)

    def test_server_has_an_endpoint_with_its_own_names(self):
        self.gateway.create("/mcp/servers", self.toy("own", lists=LISTS))
        for era in (MODERN, LEGACY):
            self.assertTrue(until(lambda: self.gateway.mcp("/mcp/own", era=era).tools() == ["pid", "echo", "wait"], 10))
            client = self.gateway.mcp("/mcp/own", era=era)
            self.assertEqual(client.text("echo", x=1), '{"x": 1}')
            self.assertEqual((client.prompts(), client.resources()), (["p"], ["toy://r"]))
            self.assertIn("prompt p", json.dumps(client.result("prompts/get", name="p")))
            client.error("tools/call", name="own__echo", arguments={})
            client.error("tools/call", name="one__echo", arguments={})
        self.assertEqual(self.gateway.mcp("/mcp/absent").raw("tools/list").status, 404)

    def test_every_transport_serves_every_endpoint(self):
        self.gateway.create("/endpoints", {"name": "team", "servers": ["one"]})
        params = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        for base, name in (("/mcp", "one__echo"), ("/mcp/e/team", "one__echo"), ("/mcp/one", "echo")):
            with self.subTest(endpoint=base):
                initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
                call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": name, "arguments": {"via": base}}}
                initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
                with WebSocket(self.gateway.port, base, headers=bearer(self.gateway.token)) as socket:
                    for message in (initialize, initialized, call):
                        socket.send(**message)
                    self.assertEqual(self.receive(socket, 2)["result"]["content"][0]["text"], json.dumps({"via": base}))
                with self.gateway.stream("/sse" if base == "/mcp" else base + "/sse") as stream:
                    self.assertEqual(stream.status, 200, stream.body)
                    address = stream.next().data
                    for message in (initialize, initialized, call):
                        self.assertEqual(self.gateway.request("POST", address, message).status // 100, 2)
                    self.assertEqual(stream.response(2)["result"]["content"][0]["text"], json.dumps({"via": base}))

    def receive(self, socket, id):
        while (message := socket.receive()) is not None:
            if message.get("id") == id:
                return message
        self.fail("the connection was closed")

    def test_changed_selection_notifies_clients_of_that_endpoint_only(self):
        row = self.gateway.create("/endpoints", {"name": "team", "servers": ["one"]})
        self.assert_tools("/mcp/e/team", "one__pid", "one__echo", "one__wait")
        with self.gateway.mcp("/mcp/e/team").listen() as member, self.gateway.mcp().listen() as other:
            self.gateway.patch(f"/endpoints/{row['id']}", {"servers": ["two"]})
            self.assertTrue(member.notification("notifications/tools/list_changed", 10))
            self.assert_tools("/mcp/e/team", "two__pid", "two__echo", "two__wait")
            self.write_state("three", [tool("pid"), tool("later")])
            self.gateway.request("POST", f"/mcp/servers/{self.rows['three']['id']}/refresh")
            self.assertTrue(other.notification("notifications/tools/list_changed", 10))
            self.assertEqual(sum("list_changed" in event.data for event in other.seen), 1, other.seen)

    def test_disabled_endpoint_is_not_found_and_its_streams_end(self):
        row = self.gateway.create("/endpoints", {"name": "team", "servers": ["one"]})
        with self.gateway.mcp("/mcp/e/team").listen() as stream:
            self.gateway.patch(f"/endpoints/{row['id']}", {"enabled": False})
            self.assertTrue(until(lambda: self.gateway.mcp("/mcp/e/team").raw("tools/list").status == 404, 5))
            self.assertTrue(stream.ends(10))
        self.gateway.patch(f"/endpoints/{row['id']}", {"enabled": True})
        self.assert_tools("/mcp/e/team", "one__pid", "one__echo", "one__wait")

    def test_pinned_tools_are_listed_beside_the_meta_tools(self):
        self.gateway.create("/endpoints", {"name": "some", "mode": "discover", "servers": ["one"], "pinned": ["one__echo"]})
        client = self.gateway.mcp("/mcp/e/some")
        self.assertTrue(until(lambda: "one__echo" in client.tools(), 10))
        self.assertEqual(set(client.tools()), META_TOOLS | {"one__echo"})
        found = client.call("discover_tools", query="pid", limit=50)
        self.assertNotIn("two__", json.dumps(found))

    def test_sessions_are_listed_with_their_endpoint(self):
        session = self.gateway.mcp("/mcp/one", era=LEGACY)
        session.tools()
        rows = self.gateway.items("/sessions")
        self.assertTrue(any("one" in json.dumps(row) for row in rows), rows)
        self.assertNotIn(session.session, json.dumps(rows), "the id of a session is a credential")


if __name__ == "__main__":
    enter_namespace(__file__)
    unittest.main()
