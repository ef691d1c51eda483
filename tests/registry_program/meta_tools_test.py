#!/usr/bin/env python3
"""The meta-tools: search, schemas, domains, and execute_tool on the same path as a direct call."""
import json
import socket
import sys
import unittest

sys.dont_write_bytecode = True

from harness import LEGACY, META, MODERN, EventStream, RegistryTest, enter_namespace, tool, until

DISCOVER = "/mcp/e/discover"
TOOLS = [
    tool("echo", "Returns its arguments."), tool("mixed", "Returns text, an image and a link."), tool("fail", "Does not work."),
    tool("pid", "Returns the number of the process."), tool("wait", "Waits for a file."), tool("die", "Ends the process."),
    tool("progress", "Reports progress."), tool("ask", "Asks the user."),
    tool("convert_currency", "Converts an amount of money from one currency to another.",
         inputSchema={"type": "object", "properties": {"amount": {"type": "number"}, "to": {"type": "string"}}, "required": ["amount", "to"]}),
    tool("play_music", "Plays a song in the living room."),
]  # fmt: skip


def result_text(response):
    """Returns the bytes of the member `result` of a JSON-RPC response."""
    start = response.index('"result":') + len('"result":')
    decoder = json.JSONDecoder()
    _, end = decoder.raw_decode(response, start)
    return response[start:end]


class MetaToolsTest(RegistryTest):
    def setUp(self):
        super().setUp()
        self.gateway = self.start()
        self.row = self.add(self.gateway, "toy", TOOLS, domain="everyday")
        self.other = self.add(self.gateway, "files", [tool("read_file", "Reads the content of a file.")], domain="storage")
        self.direct = self.gateway.mcp()
        self.client = self.gateway.mcp(DISCOVER)
        self.assertTrue(until(lambda: self.items("read a file")))

    def tearDown(self):
        self.assert_exits_cleanly(self.gateway)

    def structured(self, name, client=None, **arguments):
        result = (client or self.client).call(name, **arguments)
        self.assertFalse(result.get("isError"), result)
        self.assertEqual(json.loads(result["content"][0]["text"]), result["structuredContent"], "text and structured content differ")
        return result["structuredContent"]

    def items(self, query, **arguments):
        return self.structured("discover_tools", query=query, **arguments)["items"]

    def execute(self, tool_id, client=None, **params):
        return (client or self.client).call("execute_tool", tool_id=tool_id, params=params)

    def test_search_finds_the_tool_for_a_task(self):
        for query, wanted in (("convert ten dollars to another currency", "toy__convert_currency"), ("put on a song", "toy__play_music"),
                              ("open a document and show its content", "files__read_file")):  # fmt: skip
            with self.subTest(query=query):
                items = self.items(query)
                self.assertIn(wanted, [item["tool_id"] for item in items[:5]])
                for item in items:
                    self.assertLessEqual({"tool_id", "server", "tool", "description", "score"}, set(item))
                self.assertEqual([item["score"] for item in items], sorted((item["score"] for item in items), reverse=True))
        self.assertEqual([item["tool_id"] for item in self.items("file", domain="storage")], ["files__read_file"])
        returning = self.items("returns", limit=50)
        self.assertGreater(len(returning), 1)
        self.assertEqual(self.items("returns", limit=1), returning[:1])

    def test_strange_queries_are_answered(self):
        queries = ("", " ", '"', "'", "* OR 1=1", 'NEAR("a" "b")', "name:x", "-", "(", "\x00", "é" * 1000, "a" * 100_000, "\U0001f600", "SELECT * FROM x; --", "AND OR NOT")
        for query in queries:
            with self.subTest(query=query[:20]):
                response = self.client.post("tools/call", name="discover_tools", arguments={"query": query})
                self.assertTrue("result" in response or response["error"]["code"] == -32602, response)
        for arguments in ({}, {"query": 5}, {"query": "a", "limit": 0}, {"query": "a", "limit": "x"}, {"query": "a", "limit": 10**12}, {"query": "a", "more": 1}):
            response = self.client.post("tools/call", name="discover_tools", arguments=arguments)
            self.assertTrue("error" in response or response["result"].get("isError"), (arguments, response))

    def test_schema_is_the_one_that_the_server_lists(self):
        schema = self.structured("get_tool_schema", tool_id="toy__convert_currency")
        listed = next(entry for entry in self.direct.tool_entries() if entry["name"] == "toy__convert_currency")
        self.assertEqual(schema["inputSchema"], listed["inputSchema"])
        self.assertEqual(schema["description"], listed["description"])

    def test_domains_are_listed_and_browsed(self):
        domains = self.structured("list_tool_domains")
        self.assertIn("everyday", json.dumps(domains))
        self.assertIn("storage", json.dumps(domains))
        found, cursor = [], {}
        while True:
            page = self.structured("browse_tool_domain", domain_id="everyday", **cursor)
            found += [item["tool_id"] for item in page["items"]]
            if not page.get("nextCursor"):
                break
            cursor = {"cursor": page["nextCursor"]}
        self.assertEqual(sorted(found), sorted(f"toy__{entry['name']}" for entry in TOOLS))

    def test_result_is_byte_identical_to_the_direct_call(self):
        for era in (MODERN, LEGACY):
            direct, discover = self.gateway.mcp(era=era), self.gateway.mcp(DISCOVER, era=era)
            for name, arguments in (("mixed", {}), ("echo", {"a": [1, 2.50, "\u00e9\u2028"], "b": None}), ("fail", {}), ("convert_currency", {"amount": 1, "to": "EUR"})):
                with self.subTest(era=era, name=name):
                    wanted = direct.post_text("tools/call", name=f"toy__{name}", arguments=arguments)
                    found = discover.post_text("tools/call", name="execute_tool", arguments={"tool_id": f"toy__{name}", "params": arguments})
                    self.assertEqual(result_text(found), result_text(wanted))

    def test_error_is_that_of_the_direct_call(self):
        self.gateway.patch(f"/mcp/servers/{self.row['id']}", {"tools": {"deny": ["play_music"]}})
        self.assertTrue(until(lambda: "toy__play_music" not in self.direct.tools()))
        wanted = self.direct.error("tools/call", name="toy__die", arguments={})
        found = self.client.error("tools/call", name="execute_tool", arguments={"tool_id": "toy__die", "params": {}})
        self.assertEqual((found["code"], found["data"]["code"]), (wanted["code"], wanted["data"]["code"]))
        # An unknown tool is an error for the model, which can correct it.
        self.assertEqual(self.direct.error("tools/call", name="toy__play_music", arguments={})["data"]["code"], "unknown_name")
        denied = self.execute("toy__play_music")
        self.assertTrue(denied["isError"], denied)
        self.assertTrue(denied["content"][0]["text"].startswith("Unknown tool: toy__play_music."), denied)
        self.assertTrue(self.direct.text("toy__pid").isdigit())

    def test_arguments_of_execute_tool_are_checked(self):
        for arguments in ({}, {"tool_id": 5, "params": {}}, {"tool_id": "toy__echo", "params": []}, {"tool_id": "toy__echo", "params": {}, "x": 1},
                          {"tool_id": "execute_tool", "params": {"tool_id": "toy__echo", "params": {}}}, {"tool_id": "", "params": {}}):  # fmt: skip
            response = self.client.post("tools/call", name="execute_tool", arguments=arguments)
            self.assertTrue("error" in response or response["result"].get("isError"), (arguments, response))

    def test_unlisted_tools_can_be_called_directly_at_the_discover_endpoint(self):
        self.assertNotIn("toy__echo", self.client.tools())
        wanted = self.direct.post_text("tools/call", name="toy__echo", arguments={"a": 1})
        found = self.client.post_text("tools/call", name="toy__echo", arguments={"a": 1})
        self.assertEqual(result_text(found), result_text(wanted))

    def stream_of(self, name, arguments, **params):
        params = {"name": name, "arguments": arguments, **params, "_meta": {**META, "progressToken": "mine"}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        headers = {**self.client.headers("tools/call", params), "Accept": "application/json, text/event-stream"}
        return EventStream(self.gateway.port, DISCOVER, headers, "POST", body)

    def test_progress_of_an_executed_tool_reaches_the_client(self):
        with self.stream_of("execute_tool", {"tool_id": "toy__progress", "params": {}}) as stream:
            self.assertEqual(stream.status, 200, stream.body)
            numbers = []
            while len(numbers) < 3:
                message = stream.notification("notifications/progress")
                self.assertEqual(message["params"]["progressToken"], "mine")
                numbers.append(message["params"]["progress"])
            self.assertEqual(numbers, [1, 2, 3])
            self.assertEqual(stream.response(1)["result"]["content"][0]["text"], "progress")

    def test_elicitation_of_an_executed_tool_reaches_the_client(self):
        session = self.gateway.mcp(DISCOVER)
        session.era = LEGACY
        params = {"protocolVersion": LEGACY, "capabilities": {"elicitation": {}}, "clientInfo": {"name": "t", "version": "1"}}
        session.session = session.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).headers["Mcp-Session-Id"]
        session.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        body = json.dumps(session.message("tools/call", {"name": "execute_tool", "arguments": {"tool_id": "toy__ask", "params": {}}}))
        with EventStream(self.gateway.port, DISCOVER, session.headers(), "POST", body) as stream:
            question = stream.wait_for(lambda event: '"elicitation/create"' in event.data)
            self.assertTrue(question, stream.seen)
            answer = {"jsonrpc": "2.0", "id": json.loads(question.data)["id"], "result": {"action": "accept", "content": {}}}
            status = self.gateway.request("POST", DISCOVER, answer, headers=session.headers()).status
            self.assertEqual(status // 100, 2)
            self.assertIn("accept", stream.response(1)["result"]["content"][0]["text"])

    def test_cancelled_execution_is_cancelled_at_the_server(self):
        calls = lambda: next(server["calls"] for server in self.gateway.get("/health")["servers"] if server["name"] == "toy")
        params = {"name": "execute_tool", "arguments": {"tool_id": "toy__wait", "params": {"path": self.path("never")}}}
        body = json.dumps(self.client.message("tools/call", params))
        headers = {"Host": "localhost", "Content-Length": len(body), **self.client.headers("tools/call", params)}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        with socket.create_connection(("127.0.0.1", self.gateway.port)) as connection:
            connection.sendall(f"POST {DISCOVER} HTTP/1.1\r\n{head}\r\n{body}".encode())
            self.assertTrue(until(lambda: calls() == 1))
        self.assertTrue(until(lambda: calls() == 0), "the call was not cancelled")
        with open(self.path("never"), "w", encoding="utf-8"):
            pass

    def test_index_follows_changes_of_lists_and_servers(self):
        self.write_state("files", [tool("shrink_picture", "Makes photographs smaller.")])
        self.gateway.request("POST", f"/mcp/servers/{self.other['id']}/refresh")
        self.assertTrue(until(lambda: "files__shrink_picture" in [item["tool_id"] for item in self.items("make a photograph smaller")], 10))
        self.assertFalse([item for item in self.items("reads the content of a file", limit=50) if item["tool_id"] == "files__read_file"])
        self.gateway.request("DELETE", f"/mcp/servers/{self.other['id']}")
        self.assertTrue(until(lambda: not [item for item in self.items("photograph", limit=50) if item["server"] == "files"], 10))

    def test_large_result_is_returned(self):
        text = "x" * (1 << 20)
        self.assertEqual(json.loads(self.execute("toy__echo", text=text)["content"][0]["text"]), {"text": text})

    def test_result_over_max_frame_bytes_is_refused_like_a_direct_call(self):
        self.gateway.set_config("mcp.max_frame_bytes", 65536)
        self.assert_exits_cleanly(self.gateway)
        self.gateway = self.start()
        self.direct, self.client = self.gateway.mcp(), self.gateway.mcp(DISCOVER)
        text = "\u00e9" * 16384  # three times as many bytes in the result
        wanted = self.direct.error("tools/call", name="toy__echo", arguments={"text": text})
        found = self.client.error("tools/call", name="execute_tool", arguments={"tool_id": "toy__echo", "params": {"text": text}})
        self.assertEqual((found["code"], found["data"]["code"]), (wanted["code"], wanted["data"]["code"]))
        self.assertEqual(wanted["data"]["code"], "frame_too_large")


if __name__ == "__main__":
    enter_namespace(__file__)
    unittest.main()
