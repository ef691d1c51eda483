#!/usr/bin/env python3
"""fairlead inspect: counts, failed lists, instructions and times."""
import json
import unittest

import program

SERVER = """
import json
info = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "shop", "version": "1.2"}, "instructions": "Call find first.\\n\\x1b[31mThen buy.",
        "capabilities": {"tools": {}, "resources": {}}}
tools = [{"name": "find", "inputSchema": {"type": "object"}}, {"name": "buy", "inputSchema": {"type": "object"}}]
errors = {"resources/templates/list": -32601, FAILING: -32603}
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request: continue
    reply = {"jsonrpc": "2.0", "id": request["id"]}
    method = request["method"]
    if method in errors:
        reply["error"] = {"code": errors[method], "message": "the shelf fell over"}
    elif method == "initialize":
        reply["result"] = info
    elif method.endswith("/list"):
        reply["result"] = {"tools": tools, "resources": [{"uri": "a:b", "name": "b"}]}
    else:
        reply["error"] = {"code": -32601, "message": "unknown"}
    print(json.dumps(reply), flush=True)
"""


class InspectTest(program.ProgramTest):
    def server(self, failing="nothing"):
        return self.script(SERVER.replace("FAILING", repr(failing)))

    def test_json_has_counts_as_numbers_and_null_for_missing_capabilities(self):
        result = program.run("inspect", self.server(), "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        summary = json.loads(result.stdout)
        self.assertEqual({key: summary[key] for key in ("tools", "resources", "resourceTemplates", "prompts", "skills")},
                         {"tools": 2, "resources": 1, "resourceTemplates": None, "prompts": None, "skills": None})
        self.assertEqual(summary["instructions"], "Call find first.\n\x1b[31mThen buy.")
        self.assertNotIn("errors", summary)

    def test_table_has_counts_times_and_instructions(self):
        result = program.run("inspect", self.server())
        self.assertEqual(result.returncode, 0, result.stderr)
        text = result.stdout.decode()
        self.assertRegex(text, r"(?m)^tools +2$")
        self.assertRegex(text, r"(?m)^templates +-$")
        self.assertRegex(text, r"(?m)^connected in +(\d{1,3} ms|\d+\.\d s)$")
        self.assertTrue(text.endswith("\ninstructions:\nCall find first.\n\\x1b[31mThen buy.\n"), text)

    def test_failed_list_fails_the_command_and_the_other_counts_are_printed(self):
        for method, key, label in (("tools/list", "tools", "tools"), ("resources/list", "resources", "resources")):
            result = program.run("inspect", self.server(method), "--json")
            self.assertEqual(result.returncode, 1, result.stderr)
            summary = json.loads(result.stdout)
            self.assertIsNone(summary[key])
            self.assertEqual(list(summary["errors"]), [key])
            self.assertIn("the shelf fell over", summary["errors"][key])
            self.assertIn(f"cannot list the {label} of the server", result.stderr)
            self.assertIn("the shelf fell over", result.stderr)
            result = program.run("inspect", self.server(method))
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertRegex(result.stdout.decode(), rf"(?m)^{label} +failed: the shelf fell over")


if __name__ == "__main__":
    unittest.main()
