#!/usr/bin/env python3
"""What each client sees and may use: three servers (hidden, visible, of a user), four clients, and every way to reach a server."""
import json
import sys
import unittest

sys.dont_write_bytecode = True

from harness import ADMIN_TOKEN, LEGACY, MODERN, RegistryTest, RpcError, bearer, enter_namespace, tool, until
from websocket import WebSocket

LISTS = {
    "resources": [{"uri": "toy://NAME/a", "name": "a"}],
    "templates": [{"uriTemplate": "toy://NAME/t/{x}", "name": "t"}],
    "prompts": [{"name": "p"}],
}
SERVERS = ("secret", "shared", "private")
META_TOOLS = {"discover_tools", "get_tool_schema", "execute_tool", "list_tool_domains", "browse_tool_domain"}


def lists_of(name):
    return json.loads(json.dumps(LISTS).replace("NAME", name))


class VisibilityTest(RegistryTest):
    """`secret` is hidden, `shared` is visible, `private` is a user's, whose row the administrator has created for ann."""

    def setUp(self):
        super().setUp()
        self.gateway = gateway = self.start()
        self.ann, ann = self.user(gateway, "ann")
        self.bob, bob = self.user(gateway, "bob")
        _, root = self.user(gateway, "root", "admin")
        self.rows = {}
        for name, members in (("secret", {"visibility": "hidden"}), ("shared", {}), ("private", {"visibility": "user", "owner": self.ann["id"]})):
            self.rows[name] = self.add(gateway, name, lists=lists_of(name), **members)
        self.tokens = {"administrator": ADMIN_TOKEN, "root": root, "ann": ann, "bob": bob}
        # administrators see the rows of users, too
        self.seen = {"administrator": set(SERVERS), "root": set(SERVERS), "ann": {"shared", "private"}, "bob": {"shared"}}

    def tearDown(self):
        self.assert_exits_cleanly(self.gateway)

    def pairs(self):
        """Returns client, token, server, and whether the client may see it."""
        return [(client, token, server, server in self.seen[client]) for client, token in self.tokens.items() for server in SERVERS]

    def owners(self, names):
        return {name.split("__")[0] for name in names if "__" in name}

    def test_lists_have_what_a_client_may_see(self):
        for client, token in self.tokens.items():
            for era in (MODERN, LEGACY):
                with self.subTest(client=client, era=era):
                    mcp = self.gateway.mcp(token=token, era=era)
                    self.assertTrue(until(lambda: self.owners(mcp.tools()) & set(SERVERS) == self.seen[client], 10), mcp.tools())
                    self.assertEqual({uri.split("/")[2] for uri in mcp.resources() if uri.startswith("toy:")}, self.seen[client])
                    self.assertEqual(self.owners(mcp.prompts()) & set(SERVERS), self.seen[client])
                    templates = mcp.list("resources/templates/list", "resourceTemplates")
                    self.assertEqual({entry["uriTemplate"].split("/")[2] for entry in templates if entry["uriTemplate"].startswith("toy:")}, self.seen[client])

    def test_invisible_server_answers_like_one_that_does_not_exist(self):
        for era in (MODERN, LEGACY):
            for client, token, server, visible in self.pairs():
                mcp = self.gateway.mcp(token=token, era=era)
                for method, params, missing in (
                    ("tools/call", {"name": f"{server}__echo", "arguments": {}}, {"name": "nothing__echo", "arguments": {}}),
                    ("prompts/get", {"name": f"{server}__p"}, {"name": "nothing__p"}),
                    ("resources/read", {"uri": f"toy://{server}/a"}, {"uri": "toy://nothing/a"}),
                    ("resources/read", {"uri": f"toy://{server}/t/5"}, {"uri": "toy://nothing/t/5"}),
                    ("completion/complete", {"ref": {"type": "ref/prompt", "name": f"{server}__p"}, "argument": {"name": "x", "value": ""}}, None),
                ):  # fmt: skip
                    with self.subTest(client=client, server=server, era=era, method=method, params=params):
                        if visible and missing:
                            mcp.result(method, **params)
                        if not visible:
                            error = mcp.error(method, **params)
                            unknown = mcp.error(method, **missing) if missing else error
                            self.assertEqual(json.dumps(error).replace(server, "nothing"), json.dumps(unknown).replace(server, "nothing"))

    def test_own_endpoint_of_a_server_is_only_for_those_who_see_it(self):
        for client, token, server, visible in self.pairs():
            path = f"/mcp/{server}"
            if visible:
                mcp = self.gateway.mcp(path, token)
                self.assertEqual(sorted(mcp.tools()), ["echo", "pid", "wait"])
                self.assertEqual(mcp.text("echo", x=1), '{"x": 1}')
                self.assertEqual(self.gateway.mcp(path, token, LEGACY).resources(), [f"toy://{server}/a"])
                continue
            hidden = self.gateway.mcp(path, token).raw("tools/list")
            missing = self.gateway.mcp("/mcp/nothing", token).raw("tools/list")
            self.assertEqual((hidden.status, hidden.text.replace(server, "nothing")), (missing.status, missing.text))
            self.assertEqual(hidden.status, 404)
            for suffix in ("/sse", "/messages"):
                self.assertEqual(self.gateway.request("GET", path + suffix, token=token).status, 404)
            with self.assertRaises(ConnectionRefusedError) as refused:
                WebSocket(self.gateway.port, path, headers=bearer(token))
            self.assertIn(" 404 ", str(refused.exception))

    def test_endpoints_do_not_widen_what_a_client_sees(self):
        self.gateway.create("/endpoints", {"name": "all", "servers": ["*"]})
        for client, token in self.tokens.items():
            mcp = self.gateway.mcp("/mcp/e/all", token)
            self.assertTrue(until(lambda: self.owners(mcp.tools()) & set(SERVERS) == self.seen[client], 10), (client, mcp.tools()))
            for server in set(SERVERS) - self.seen[client]:
                mcp.error("tools/call", name=f"{server}__echo", arguments={})

    def test_meta_tools_find_and_execute_only_what_a_client_sees(self):
        for client, token in self.tokens.items():
            with self.subTest(client=client):
                mcp = self.gateway.mcp("/mcp/e/discover", token)
                self.assertLessEqual(META_TOOLS, set(mcp.tools()))
                found = self.structured(mcp.call("discover_tools", query="echo pid wait", limit=50))["items"]
                self.assertEqual({item["server"] for item in found} & set(SERVERS), self.seen[client])
                domains = json.dumps(self.structured(mcp.call("list_tool_domains")))
                browsed = self.structured(mcp.call("browse_tool_domain", domain_id="testing"))
                self.assertEqual({server for server in SERVERS if server in json.dumps(browsed)}, self.seen[client])
                for server in SERVERS:
                    name = f"{server}__echo"
                    if server in self.seen[client]:
                        self.assertEqual(mcp.text("execute_tool", tool_id=name, params={"a": 1}), '{"a": 1}')
                        self.assertIn("inputSchema", json.dumps(mcp.call("get_tool_schema", tool_id=name)))
                        continue
                    self.assertNotIn(server, domains)
                    for meta_tool, arguments in (("execute_tool", {"tool_id": name, "params": {}}), ("get_tool_schema", {"tool_id": name})):
                        hidden = mcp.post("tools/call", name=meta_tool, arguments=arguments)
                        missing = mcp.post("tools/call", name=meta_tool, arguments={**arguments, "tool_id": "nothing__echo"})
                        self.assertEqual(json.dumps(hidden).replace(server, "nothing"), json.dumps(missing))
                        self.assertTrue("error" in hidden or hidden["result"].get("isError"), hidden)

    def structured(self, result):
        return result["structuredContent"] if "structuredContent" in result else json.loads(result["content"][0]["text"])

    def test_admin_api_shows_what_a_client_may_see(self):
        for client, token, server, visible in self.pairs():
            row = self.rows[server]
            listed = {entry["name"] for entry in self.gateway.items("/mcp/servers", token=token)}
            self.assertEqual(server in listed, visible)
            for suffix in ("", "/tools"):
                answer = self.gateway.request("GET", f"/mcp/servers/{row['id']}{suffix}", token=token)
                self.assertEqual(answer.status, 200 if visible else 404, answer)
            if client in ("ann", "bob"):
                refused = 403 if visible else 404
                for method, suffix, body in (("DELETE", "", None), ("PATCH", "", {"title": "x"}), ("POST", "/restart", None), ("POST", "/stop", None)):
                    if client == "ann" and server == "private":
                        continue  # the owner of a stdio server that an administrator made
                    answer = self.gateway.request(method, f"/mcp/servers/{row['id']}{suffix}", body, token=token)
                    self.assertEqual(answer.status, refused, (method, suffix, answer))

    def test_hidden_names_do_not_leak_through_reports(self):
        self.gateway.mcp().text("secret__pid")
        for client in ("ann", "bob"):
            token = self.tokens[client]
            for path in ("/processes", "/sessions", "/drift", "/endpoints", "/health", "/tools"):
                answer = self.gateway.request("GET", path, token=token)
                for server in set(SERVERS) - self.seen[client]:
                    self.assertNotIn(server, answer.text, (client, path, answer))

    def test_visibility_changes_reach_clients_at_once(self):
        token = self.tokens["bob"]
        mcp = self.gateway.mcp(token=token)
        session = self.gateway.mcp(token=token, era=LEGACY)
        mcp.tools(), session.tools()
        with mcp.listen() as listener, session.listen() as stream:
            self.gateway.patch(f"/mcp/servers/{self.rows['shared']['id']}", {"visibility": "hidden"})
            self.assertTrue(listener.notification("notifications/tools/list_changed", 10))
            self.assertTrue(stream.notification("notifications/tools/list_changed", 10))
        self.assertNotIn("shared__pid", mcp.tools())
        mcp.error("tools/call", name="shared__echo", arguments={})
        session.error("tools/call", name="shared__echo", arguments={})
        self.gateway.patch(f"/mcp/servers/{self.rows['shared']['id']}", {"visibility": "user", "owner": self.bob["id"]})
        self.assertTrue(until(lambda: "shared__pid" in mcp.tools(), 10))
        self.assertTrue(until(lambda: "shared__pid" not in self.gateway.mcp(token=self.tokens["ann"]).tools(), 10))

    def test_changes_of_hidden_servers_notify_nobody_else(self):
        with self.gateway.mcp(token=self.tokens["bob"]).listen() as stranger, self.gateway.mcp().listen() as administrator:
            self.write_state("secret", [tool("pid"), tool("added")], **lists_of("secret"))
            self.gateway.request("POST", f"/mcp/servers/{self.rows['secret']['id']}/refresh")
            self.assertTrue(administrator.notification("notifications/tools/list_changed", 10))
            # A change that everyone sees is the next event of the stranger, and the only one.
            self.write_state("shared", [tool("pid"), tool("added")], **lists_of("shared"))
            self.gateway.request("POST", f"/mcp/servers/{self.rows['shared']['id']}/refresh")
            self.assertTrue(stranger.notification("notifications/tools/list_changed", 10))
            self.assertEqual(sum("tools/list_changed" in event.data for event in stranger.seen), 1, stranger.seen)


class SessionBindingTest(RegistryTest):
    def test_session_works_only_for_its_principal_and_endpoint(self):
        gateway = self.start()
        self.add(gateway, "shared")
        _, ann = self.user(gateway, "ann")
        _, bob = self.user(gateway, "bob")
        session = gateway.mcp(token=ann, era=LEGACY)
        session.tools()
        stolen = gateway.mcp(token=bob, era=LEGACY)
        stolen.session = session.session
        for path, token in (("/mcp", bob), ("/mcp", ADMIN_TOKEN), ("/mcp/shared", ann), ("/mcp/e/discover", ann)):
            with self.subTest(path=path):
                stolen.path, stolen.token = path, token
                self.assertEqual(stolen.raw("tools/list").status, 404)
                with stolen.listen() as stream:
                    self.assertEqual(stream.status, 404)
                self.assertEqual(gateway.request("DELETE", path, token=token, headers={"Mcp-Session-Id": session.session}).status, 404)
        self.assertTrue(session.tools())
        self.assert_exits_cleanly(gateway)

    def test_sse_pair_works_only_for_its_principal_and_endpoint(self):
        gateway = self.start()
        self.add(gateway, "shared")
        _, ann = self.user(gateway, "ann")
        _, bob = self.user(gateway, "bob")
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        for base in ("", "/mcp/shared", "/mcp/e/discover"):
            with self.subTest(endpoint=base), gateway.stream(base + "/sse", token=ann) as stream:
                self.assertEqual(stream.status, 200, stream.body)
                address = stream.next().data
                self.assertTrue(address.startswith(base + "/messages"), address)
                self.assertIn(gateway.request("POST", address, ping, token=bob).status, (401, 403, 404))
                elsewhere = ("/mcp/e/discover" if base != "/mcp/e/discover" else "") + "/messages" + address.partition("/messages")[2]
                self.assertIn(gateway.request("POST", elsewhere, ping, token=ann).status, (401, 403, 404))
                self.assertEqual(gateway.request("POST", address, ping, token=ann).status // 100, 2)
                self.assertEqual(stream.response(1, 10)["id"], 1)
        self.assert_exits_cleanly(gateway)


if __name__ == "__main__":
    enter_namespace(__file__)
    unittest.main()
