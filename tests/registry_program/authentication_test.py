#!/usr/bin/env python3
"""Who is let in: the modes of authentication, the file of the administrator's token, tokens of users with scopes, expiry and
revocation, also of streams that are open, and the rules for users' own rows."""
import json
import os
import stat
import sys
import time
import unittest

sys.dont_write_bytecode = True

from harness import ADMIN_TOKEN, LEGACY, MODERN, RegistryTest, bearer, enter_namespace, request, until
from websocket import WebSocket

OPEN_PATHS = ("/healthz", "/readyz")
CLOSED_PATHS = ("/mcp/servers", "/api/v1/mcp/servers", "/users", "/tokens", "/config", "/processes", "/sessions", "/events", "/health", "/endpoints",
                "/groups", "/drift", "/config/mcp.max_stdio_processes")  # fmt: skip
REMOTE = {"transport": "http", "config": {"transport": "http", "url": "https://mcp.example.com/mcp"}}
GARBAGE = ("x", "Bearer", "a b", "' OR '1'='1", "x" * 5000, "fl_" + "0" * 40)


class TokenModeTest(RegistryTest):
    def setUp(self):
        super().setUp()
        self.gateway = self.start()

    def tearDown(self):
        self.assert_exits_cleanly(self.gateway)

    def status(self, path, token=None, method="GET", body=None):
        return self.gateway.request(method, path, body, token=token).status

    def test_only_probes_are_answered_without_a_token(self):
        for path in OPEN_PATHS:
            self.assertEqual(self.status(path), 200, path)
        for path in CLOSED_PATHS:
            with self.subTest(path=path):
                answer = self.gateway.request("GET", path, token=None)
                self.assertEqual(answer.status, 401, answer)
                self.assertIn("Bearer", answer.headers["WWW-Authenticate"])
        initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
        for path in ("/mcp", "/mcp/toy", "/mcp/e/discover", "/sse", "/messages", "/mcp/no-such-server"):
            with self.subTest(path=path):
                self.assertEqual(self.status(path, method="POST", body=initialize), 401)
                self.assertEqual(self.status(path), 401)

    def test_garbage_instead_of_a_token_is_refused(self):
        for token in GARBAGE:
            with self.subTest(token=token[:20]):
                self.assertIn(self.status("/mcp/servers", token), (400, 401, 431))
        for header in ("Basic dXNlcjpwYXNz", "bearer", f"Bearer  {ADMIN_TOKEN}x", f"Token {ADMIN_TOKEN}", f"Bearer {ADMIN_TOKEN[:-1]}"):
            answer = request(self.gateway.port, "GET", "/mcp/servers", headers={"Authorization": header})
            self.assertIn(answer.status, (400, 401), header)
        # A token in the query would end up in logs.
        self.assertEqual(request(self.gateway.port, "GET", f"/mcp/servers?access_token={ADMIN_TOKEN}").status, 401)

    def test_token_is_shown_once_and_is_recognisable(self):
        user, _ = self.user(self.gateway, "ann")
        answer = self.gateway.request("POST", "/tokens", {"user": user["id"], "name": "laptop"})
        self.assertEqual(answer.status, 201, answer)
        row = answer.json()
        secret = row.pop("token")
        self.assertGreaterEqual(len(secret), 43, "256 bits do not fit")
        self.assertEqual(answer.headers.get("Cache-Control"), "no-store")
        listed = self.gateway.request("GET", "/tokens")
        self.assertNotIn(secret, listed.text)
        self.assertNotIn("sha256", listed.text.lower())
        stored = next(entry for entry in listed.json()["items"] if entry["id"] == row["id"])
        self.assertTrue(secret.startswith(stored["prefix"]) and len(stored["prefix"]) < 16, stored)
        with open(self.path("fairlead.db"), "rb") as file:
            self.assertNotIn(secret.encode(), file.read())
        self.assertEqual(stat.S_IMODE(os.stat(self.path("fairlead.db")).st_mode), 0o600)
        other = self.gateway.create("/tokens", {"user": user["id"]})["token"]
        self.assertNotEqual(secret, other)
        common = os.path.commonprefix([secret, other])
        self.assertTrue(2 <= len(common) < 16, common)  # the prefix for scanners of secrets
        self.assertFalse(any(secret in line for line in self.gateway.log))

    def test_last_use_of_a_token_is_recorded(self):
        user, token = self.user(self.gateway, "ann")
        self.gateway.mcp(token=token).tools()
        mine = lambda: next(row for row in self.gateway.items("/tokens") if row["user"] == user["id"])
        self.assertTrue(until(lambda: mine().get("lastUsedAt")), mine())

    def test_revoked_token_ends_its_streams_and_sessions(self):
        self.add(self.gateway)
        user, token = self.user(self.gateway, "ann")
        _, other = self.user(self.gateway, "bob")
        mine = next(row for row in self.gateway.items("/tokens") if row["user"] == user["id"])
        client = self.gateway.mcp(token=token)
        session = self.gateway.mcp(token=token, era=LEGACY)
        listener, session_stream = client.listen(), session.listen()
        pair = self.gateway.stream("/sse", token=token)
        socket = WebSocket(self.gateway.port, headers=bearer(token))
        events = self.gateway.stream("/events", token=token)
        bystander = self.gateway.mcp(token=other).listen()
        streams = {"listen": listener, "session": session_stream, "sse": pair}
        for name, stream in streams.items():
            self.assertEqual(stream.status, 200, name)
        release = self.path("release")
        waiting = self.in_background(lambda: client.raw("tools/call", name="toy__wait", arguments={"path": release}))
        self.assertTrue(until(lambda: any(server["calls"] for server in self.gateway.get("/health")["servers"])))
        answer = self.gateway.request("DELETE", f"/tokens/{mine['id']}")
        self.assertIn(answer.status, (200, 204), answer)
        for name, stream in streams.items():
            with self.subTest(stream=name):
                self.assertTrue(stream.ends(10), "the stream is still open")
            stream.close()
        if events.status == 200:
            self.assertTrue(events.ends(10))
        events.close()
        self.assertIsNone(socket.receive())
        socket.__exit__()
        for path in ("/mcp/servers", "/health"):
            self.assertEqual(self.status(path, token), 401)
        self.assertEqual(session.raw("tools/list").status, 401)
        self.assertEqual(client.raw("tools/list").status, 401)
        with open(release, "w", encoding="utf-8"):
            pass
        waiting()  # ends, in whichever way
        self.assertFalse(bystander.ended.is_set(), "a stream of another user was ended")
        bystander.close()

    def test_expired_token_is_refused(self):
        user, _ = self.user(self.gateway, "ann")
        soon = time.time() + 10
        text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(soon)) + f".{int(soon % 1 * 1000):03}Z"
        token = self.token(self.gateway, user, expires=text)
        listener = self.gateway.mcp(token=token).listen()
        self.assertEqual(listener.status, 200)
        self.assertTrue(until(lambda: self.status("/mcp/servers", token) == 401, 30))
        self.assertGreaterEqual(time.time(), soon - 0.01)
        self.assertTrue(listener.ends(10), "the stream of an expired token is still open")
        listener.close()
        for expires in ("yesterday", "2020-01-01T00:00:00Z", 5, "", "2026-13-45T00:00:00Z"):
            with self.subTest(expires=expires):
                answer = self.gateway.request("POST", "/tokens", {"user": user["id"], "expires": expires})
                self.assertEqual(answer.status, 422, answer)

    def test_disabled_and_deleted_users_are_refused(self):
        user, token = self.user(self.gateway, "ann")
        listener = self.gateway.mcp(token=token).listen()
        self.gateway.patch(f"/users/{user['id']}", {"enabled": False})
        self.assertEqual(self.status("/mcp/servers", token), 401)
        self.assertTrue(listener.ends(10))
        listener.close()
        self.gateway.patch(f"/users/{user['id']}", {"enabled": True})
        self.assertEqual(self.status("/mcp/servers", token), 200)
        self.assertEqual(self.gateway.request("DELETE", f"/users/{user['id']}").status, 204)
        self.assertEqual(self.status("/mcp/servers", token), 401)
        self.assertFalse([row for row in self.gateway.items("/tokens") if row["user"] == user["id"] and not row.get("revokedAt")])

    def test_scopes_restrict_what_a_token_may_do(self):
        self.add(self.gateway, "one")
        self.add(self.gateway, "two")
        admin, everything = self.user(self.gateway, "root", "admin")
        initialize = lambda path, token: self.gateway.mcp(path, token).raw("tools/list").status
        reading = self.token(self.gateway, admin, scopes=["admin:servers:read"])
        self.assertEqual(self.status("/mcp/servers", reading), 200)
        self.assertEqual(self.status("/mcp/servers", reading, "POST", {"name": "x", **REMOTE}), 403)
        self.assertIn(self.status("/users", reading), (403, 404))
        self.assertIn(initialize("/mcp", reading), (401, 403, 404))
        calling = self.token(self.gateway, admin, scopes=["mcp"])
        self.assertEqual(initialize("/mcp", calling), 200)
        self.assertEqual(initialize("/mcp/e/discover", calling), 200)
        self.assertIn(self.status("/mcp/servers", calling), (403, 404))
        one = self.token(self.gateway, admin, scopes=["server:one"])
        self.assertEqual(initialize("/mcp/one", one), 200)
        for path in ("/mcp/two", "/mcp", "/mcp/e/discover"):
            self.assertIn(initialize(path, one), (403, 404), path)
        discover = self.token(self.gateway, admin, scopes=["endpoint:discover"])
        self.assertEqual(initialize("/mcp/e/discover", discover), 200)
        self.assertIn(initialize("/mcp", discover), (403, 404))
        for scopes in (["no-such-scope"], "mcp", [5], ["admin:nothing"], [""]):
            answer = self.gateway.request("POST", "/tokens", {"user": admin["id"], "scopes": scopes})
            self.assertEqual(answer.status, 422, (scopes, answer))
        self.assertEqual(self.status("/users", everything), 200)

    def test_token_cannot_grant_more_than_it_has(self):
        admin, _ = self.user(self.gateway, "root", "admin")
        restricted = self.token(self.gateway, admin, scopes=["admin:tokens"])
        answer = self.gateway.request("POST", "/tokens", {"user": admin["id"]}, token=restricted)
        self.assertIn(answer.status, (403, 422), answer)
        answer = self.gateway.request("POST", "/tokens", {"user": admin["id"], "scopes": ["admin"]}, token=restricted)
        self.assertIn(answer.status, (403, 422), answer)

    def test_users_may_not_administer(self):
        ann, token = self.user(self.gateway, "ann")
        bob, _ = self.user(self.gateway, "bob")
        for method, path, body in (
            ("POST", "/users", {"name": "eve", "role": "admin"}), ("PATCH", f"/users/{ann['id']}", {"role": "admin"}),
            ("DELETE", f"/users/{bob['id']}", None), ("POST", "/tokens", {"user": bob["id"]}), ("POST", "/groups", {"name": "g"}),
            ("POST", "/endpoints", {"name": "x"}), ("PUT", "/config/mcp.max_stdio_processes", {"value": 1}),
        ):  # fmt: skip
            with self.subTest(method=method, path=path):
                answer = self.gateway.request(method, path, body, token=token)
                self.assertIn(answer.status, (403, 404), answer)
        for path in (f"/users/{bob['id']}",):
            self.assertIn(self.status(path, token), (403, 404))

    def test_users_may_create_http_servers_only(self):
        ann, token = self.user(self.gateway, "ann")
        answer = self.gateway.request("POST", "/mcp/servers", self.toy("mine"), token=token)
        self.assert_problem(answer, 403, "forbidden")
        row = self.gateway.create("/mcp/servers", {"name": "mine", **REMOTE}, token=token)
        self.assertEqual((row["visibility"], row["owner"]), ("user", ann["id"]))
        path = f"/mcp/servers/{row['id']}"
        for change in (
            {"visibility": "visible"}, {"owner": None}, {"config": {"headers": {"X": "${env:HOME}"}}}, {"config": {"headers": {"X": "${HOME}"}}},
            {"config": {"headers": {"X": "${file:/etc/passwd}"}}}, {"config": {"url": "https://x.example/${env:HOME}"}}, {"config": {"keep_running": True}},
            {"transport": "stdio", "config": {"transport": "stdio", "command": "sh", "args": ["-c", "id"], "url": None}},
            {"config": {"url": "http://127.0.0.1:1/mcp"}}, {"config": {"url": "http://10.0.0.1/mcp"}}, {"config": {"url": "http://[::1]/mcp"}},
            {"config": {"url": "http://169.254.169.254/latest"}}, {"config": {"url": "unix:/run/x.sock"}}, {"config": {"url": "stdio:sh"}},
        ):  # fmt: skip
            with self.subTest(change=change):
                self.assertIn(self.gateway.request("PATCH", path, change, token=token).status, (403, 422))
                body = {"name": "next", "transport": change.get("transport", "http"),
                        "config": {**REMOTE["config"], **change.get("config", {})}, **{key: change[key] for key in ("visibility",) if key in change}}  # fmt: skip
                if "owner" not in change:
                    self.assertIn(self.gateway.request("POST", "/mcp/servers", body, token=token).status, (403, 422))
        self.assertEqual(self.gateway.get(path)["version"], 1)
        self.assertEqual(self.gateway.patch(path, {"title": "T"}, token=token)["title"], "T")

    def test_loopback_address_behind_a_name_is_refused_at_connect(self):
        _, token = self.user(self.gateway, "ann")
        config = {"transport": "http", "url": f"http://localhost.localdomain:{self.gateway.port}/mcp"}
        answer = self.gateway.request("POST", "/mcp/servers", {"name": "inside", "transport": "http", "config": config}, token=token)
        if answer.status == 201:
            report = self.gateway.request("POST", f"/mcp/servers/{answer.json()['id']}/test", token=token).json()
            self.assertIs(report["ok"], False)
        else:
            self.assertIn(answer.status, (403, 422), answer)


class OpenModeTest(RegistryTest):
    def token_file(self):
        return os.path.join(self.path("state"), "fairlead", "admin.token")

    def test_without_authentication_the_admin_api_needs_the_token_of_the_file(self):
        gateway = self.start(token=None)
        self.assertEqual(gateway.mcp(token=None).raw("tools/list").status, 200)
        self.assertEqual(gateway.request("GET", "/health").status, 200)
        body = self.toy()
        for token in (None, "x"):
            self.assertEqual(gateway.request("POST", "/mcp/servers", body, token=token).status, 401)
            self.assertEqual(gateway.request("GET", "/mcp/servers", token=token).status, 401)
        self.assertEqual(stat.S_IMODE(os.stat(self.token_file()).st_mode), 0o600)
        with open(self.token_file(), encoding="ascii") as file:
            token = file.read().strip()
        self.assertGreaterEqual(len(token), 43)
        gateway.create("/mcp/servers", body, token=token)
        self.assertTrue(until(lambda: "toy__pid" in gateway.mcp(token=None).tools()))
        self.assertEqual(gateway.end(), 0)
        gateway = self.start(token=None)
        with open(self.token_file(), encoding="ascii") as file:
            self.assertEqual(file.read().strip(), token)
        self.assertEqual(gateway.request("GET", "/mcp/servers", token=token).status, 200)
        self.assert_exits_cleanly(gateway)

    def test_first_user_switches_to_tokens(self):
        gateway = self.start(token=None)
        with open(self.token_file(), encoding="ascii") as file:
            gateway.token = file.read().strip()
        self.assertEqual(gateway.mcp(token=None).raw("tools/list").status, 200)
        _, token = self.user(gateway, "ann")
        self.assertTrue(until(lambda: gateway.mcp(token=None).raw("tools/list").status == 401, 5))
        self.assertEqual(gateway.mcp(token=token).raw("tools/list").status, 200)
        self.assert_exits_cleanly(gateway)

    def test_explicit_mode_wins(self):
        gateway = self.start("--auth-mode", "none")  # although FAIRLEAD_ADMIN_TOKEN is set
        self.assertEqual(gateway.mcp(token=None).raw("tools/list").status, 200)
        self.assertEqual(gateway.request("GET", "/mcp/servers", token=None).status, 401)
        self.assertEqual(gateway.request("GET", "/mcp/servers").status, 200)
        self.assertEqual(gateway.end(), 0)
        gateway = self.start("--auth-mode", "token", token=None)
        self.assertEqual(gateway.mcp(token=None).raw("tools/list").status, 401)
        self.assert_exits_cleanly(gateway)

    def test_web_pages_cannot_use_the_open_mode(self):
        gateway = self.start(token=None)
        for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
            answer = request(gateway.port, "GET", "/mcp/servers", headers=headers)
            self.assertIn(answer.status, (401, 403), headers)
            answer = request(gateway.port, "POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}), headers)
            self.assertEqual(answer.status, 403, headers)
        self.assert_exits_cleanly(gateway)


if __name__ == "__main__":
    enter_namespace(__file__)
    unittest.main()
