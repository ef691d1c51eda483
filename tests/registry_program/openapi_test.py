#!/usr/bin/env python3
"""The OpenAPI document: two validators from npm accept it, every path that it documents answers as documented, and every answer of the
tests here has a documented status."""
import json
import os
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True

from harness import DEADLINE, LEGACY, TOOLS, UNKNOWN_ID, RegistryTest, enter_namespace, request

INTEROP = os.environ["FAIRLEAD_TEST_INTEROP"]
METHODS = ("get", "put", "post", "delete", "patch")
CONTRACT = (
    ("get", "/mcp/servers"), ("post", "/mcp/servers"), ("get", "/mcp/servers/{id}"), ("patch", "/mcp/servers/{id}"), ("delete", "/mcp/servers/{id}"),
    ("post", "/mcp/servers/{id}/test"), ("post", "/mcp/servers/{id}/refresh"), ("post", "/mcp/servers/{id}/restart"), ("post", "/mcp/servers/{id}/stop"),
    ("get", "/mcp/servers/{id}/tools"), ("get", "/mcp/servers/{id}/logs"), ("get", "/processes"), ("get", "/sessions"), ("get", "/config"),
    ("get", "/config/{key}"), ("put", "/config/{key}"), ("get", "/users"), ("post", "/users"), ("post", "/tokens"), ("get", "/tokens"), ("get", "/groups"),
    ("get", "/endpoints"), ("post", "/endpoints"), ("get", "/drift"), ("get", "/events"), ("get", "/tools"),
)  # fmt: skip


class OpenApiTest(RegistryTest):
    def setUp(self):
        super().setUp()
        self.gateway = self.start()
        self.document = self.gateway.get("/openapi.json")

    def tearDown(self):
        self.assert_exits_cleanly(self.gateway)

    def operations(self):
        for path, item in self.document["paths"].items():
            for method in METHODS:
                if method in item:
                    yield method, path, item[method]

    def prefix(self):
        servers = self.document.get("servers", [{"url": ""}])
        return re.sub(r"^https?://[^/]+", "", servers[0]["url"]).rstrip("/")

    def without_prefix(self, path):
        return (self.prefix() + path).removeprefix("/api/v1")

    def schema(self, node):
        """Resolves a reference in the document."""
        while "$ref" in node:
            target = self.document
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part.replace("~1", "/").replace("~0", "~")]
            node = target
        return node

    def test_validators_accept_the_document(self):
        file = self.path("openapi.json")
        with open(file, "w", encoding="utf-8") as output:
            json.dump(self.document, output)
        command = [os.path.join(INTEROP, "node"), os.path.join(INTEROP, "clients", "openapi.mjs"), file]
        result = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual(result.returncode, 0, result.stderr[-2000:])
        self.assertEqual(json.loads(result.stdout), [], result.stdout[:4000])

    def test_paths_of_the_contract_are_documented(self):
        documented = {(method, re.sub(r"\{\w+\}", "{}", self.without_prefix(path))) for method, path, _ in self.operations()}
        for method, path in CONTRACT:
            self.assertIn((method, re.sub(r"\{\w+\}", "{}", path)), documented)
        names = [operation["operationId"] for _, _, operation in self.operations()]
        self.assertEqual(len(names), len(set(names)))

    def test_every_operation_answers_with_a_documented_status_on_both_paths(self):
        for method, path, operation in self.operations():
            path = self.without_prefix(path)
            if path in ("/events", "/openapi.json", "/docs"):
                continue
            filled = path.replace("{key}", "mcp.max_stdio_processes")
            filled = re.sub(r"\{\w+\}", UNKNOWN_ID, filled)
            body = {} if "requestBody" in operation else None
            answers = [self.gateway.request(method.upper(), prefix + filled, body) for prefix in ("", "/api/v1")]
            with self.subTest(operation=f"{method} {path}"):
                for answer in answers:
                    self.assertNotIn(answer.status, (404, 405) if "{" not in path else (405,), answer)
                    documented = operation["responses"]
                    key = next((key for key in (str(answer.status), f"{answer.status // 100}XX", "default") if key in documented), None)
                    self.assertTrue(key, (answer, sorted(documented)))
                    content = self.schema(documented[key]).get("content", {})
                    if answer.body:
                        self.assertIn(answer.headers.get_content_type(), content, answer)
                self.assertEqual(answers[0].status, answers[1].status)
                unauthenticated = self.gateway.request(method.upper(), filled, body, token=None)
                self.assertEqual(unauthenticated.status, 401, unauthenticated)

    def test_members_of_rows_are_documented(self):
        secret = self.gateway.create("/secrets", {"name": "KEY", "value": "hunter2-hunter2"})
        row = self.add(self.gateway, tags=["a"], metadata={"x": 1}, drift="flag", config={"env": {"KEY": "${secret:KEY}"}})
        self.write_state("toy", [{**entry, "description": "changed"} for entry in TOOLS])
        self.assertEqual(self.gateway.request("POST", f"/mcp/servers/{row['id']}/refresh").status, 200)
        user, _ = self.user(self.gateway, "ann")
        group = self.gateway.create("/groups", {"name": "team", "members": [user["id"]]})
        endpoint = self.gateway.create("/endpoints", {"name": "team", "groups": [group["id"]]})
        session = self.gateway.mcp(era=LEGACY)
        session.text("toy__pid")
        for path in ("/mcp/servers", f"/mcp/servers/{row['id']}", f"/mcp/servers/{row['id']}/tools", "/users", "/groups", "/tokens", "/endpoints",
                     f"/endpoints/{endpoint['id']}", "/config", "/processes", "/config/mcp.max_stdio_processes", "/tools", "/sessions", "/drift",
                     "/secrets", f"/secrets/{secret['id']}", "/secrets/status", f"/mcp/servers/{row['id']}/secrets"):  # fmt: skip
            template = min((known for method, known, _ in self.operations() if method == "get" and self.matches(self.without_prefix(known), path)),
                           key=lambda known: known.count("{"))  # fmt: skip
            content = self.document["paths"][template]["get"]["responses"]["200"]["content"]
            answer = self.gateway.get(path)
            self.assertNotEqual(answer.get("items"), [], path)
            self.assert_documented(content["application/json"]["schema"], answer, path)

    def matches(self, template, path):
        return re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template)), path)

    def assert_documented(self, schema, value, where):
        schema = self.schema(schema)
        if isinstance(value, dict) and "properties" in schema:
            missing = set(schema.get("required", [])) - set(value)
            self.assertFalse(missing, (where, missing, value))
            for member, inner in value.items():
                if member in schema["properties"]:
                    self.assert_documented(schema["properties"][member], inner, f"{where}.{member}")
                else:
                    self.assertIsNot(schema.get("additionalProperties"), False, f"{where}.{member} is not documented")
        if isinstance(value, list) and "items" in schema:
            for inner in value:
                self.assert_documented(schema["items"], inner, f"{where}[]")

    def test_documentation_page_has_no_external_assets(self):
        answer = self.gateway.request("GET", "/docs")
        self.assertEqual((answer.status, answer.headers.get_content_type()), (200, "text/html"), answer)
        self.assertNotRegex(answer.text, r"""(src|href|url)\s*[=(]\s*["']?(https?:)?//""")
        self.assertIn("openapi.json", answer.text)

    def test_options_are_answered_without_a_token(self):
        answer = request(self.gateway.port, "OPTIONS", "/mcp/servers")
        self.assertEqual(answer.status, 204, answer)


if __name__ == "__main__":
    enter_namespace(__file__)
    unittest.main()
