#!/usr/bin/env python3
"""The program with HTTP servers: call, tools and inspect accept http: addresses; headers, and failures."""
import http.server
import json
import threading
import unittest

import program
from program import run

DISCOVERED = {
    "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "web", "version": "9"}},
}
RESULTS = {
    "server/discover": DISCOVERED,
    "tools/list": {"resultType": "complete", "tools": [{"name": "echo", "inputSchema": {"type": "object"}}], "ttlMs": 0, "cacheScope": "private"},
    "tools/call": {"resultType": "complete", "content": [{"type": "text", "text": "hello from the web"}]},
    "plain": {"ok": True},
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((message, dict(self.headers)))
        status, kind, body = 200, "application/json", {"jsonrpc": "2.0", "id": message.get("id"), "result": RESULTS.get(message["method"])}
        if "id" not in message:
            status, body = 202, None
        elif self.path == "/page":
            kind = "text/html"
        elif self.path == "/locked":
            status, body = 401, None
        elif self.path == "/problem":
            status, kind = 401, "application/problem+json"
            body = {"type": "about:blank", "title": "x" * 300, "detail": "the request has no bearer token", "remedy": "Send an API token."}
        elif self.path == "/moved":
            status, body = 308, None
        payload = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(payload)))
        if status == 308:
            self.send_header("Location", "/mcp")
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_):
        pass


class HttpTest(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.requests = []
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def url(self, path="/mcp"):
        return f"http://127.0.0.1:{self.server.server_port}{path}"

    def test_call_prints_the_result(self):
        self.assert_exited(run("call", self.url(), "plain", "{}"), 0, b'{"ok": true}\n', "")

    def test_headers_are_sent(self):
        result = run("call", self.url(), "plain", "--header", "Authorization: Bearer x", "--header", "X-Y:z")
        self.assertEqual(result.returncode, 0, result.stderr)
        headers = self.server.requests[0][1]
        self.assertEqual((headers["Authorization"], headers["X-Y"]), ("Bearer x", "z"))

    def test_invalid_header_is_a_usage_error(self):
        self.assert_exited(run("call", self.url(), "plain", "--header", "nonsense"), 2, b"", "is not a header")

    def test_token_of_a_file_is_sent(self):
        with open(self.path("token"), "w", encoding="utf-8") as file:
            file.write("a-token\n")
        for command in (["tools", self.url()], ["inspect", self.url()]):
            self.server.requests.clear()
            result = run(*command, "--token-file", self.path("token"))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual({headers.get("Authorization") for _, headers in self.server.requests}, {"Bearer a-token"})
        self.assert_exited(run("tools", self.url(), "--token-file", self.path("absent")), 2, b"", "--token-file")
        header = ["--header", "Authorization: Bearer x"]
        self.assert_exited(run("tools", self.url(), "--token-file", self.path("token"), *header), 2, b"", "exclude each other")

    def test_problem_document_is_printed_as_text(self):
        result = run("tools", self.url("/problem"))
        self.assert_exited(result, 3, b"", "the request has no bearer token. Send an API token.")
        self.assertNotIn("xxx", result.stderr)

    def test_notification_is_accepted(self):
        self.assert_exited(run("call", "--notify", self.url(), "hello"), 0, b"")
        self.assertEqual(len(self.server.requests), 1)

    def test_mcp_commands_accept_http_addresses(self):
        result = run("tools", self.url())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(b"echo", result.stdout)
        result = run("tools", self.url(), "echo", "{}")
        self.assertEqual(result.stdout, b"hello from the web\n")
        self.assertEqual(self.server.requests[-1][1]["Mcp-Name"], "echo")
        result = run("inspect", self.url())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(b"web", result.stdout)

    def test_each_failure_has_its_own_exit_status(self):
        self.assert_exited(run("call", self.url("/page"), "plain"), 5, b"", "invalid content type")
        self.assert_exited(run("call", self.url("/locked"), "plain"), 3, b"", "not authorized")
        self.assert_exited(run("call", self.url("/moved"), "plain"), 3, b"", "redirects are not followed")
        self.assert_exited(run("call", "http://127.0.0.1:1/mcp", "plain"), 3, b"", "connection failed")
        self.assert_exited(run("call", "--notify", "http://127.0.0.1:1/mcp", "plain"), 3, b"", "connection failed")
        self.assert_exited(run("call", "http://a b/", "plain"), 2, b"", "is not a URL")


if __name__ == "__main__":
    unittest.main()
