#!/usr/bin/env python3
"""fairlead tools, resources, prompts: arguments on the command line, readable schemas, templates, --env."""
import json
import os
import sys
import unittest

import program
from program import run, stdio

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Where?\nAnd \x1b[31mwhen?"},
        "days": {"type": "integer", "minimum": 1, "maximum": 7, "default": 3},
        "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "ratio": {"type": "number"},
        "exact": {"type": "boolean"},
        "unit": {"enum": ["celsius", "kelvin"]},
        "level": {"enum": [1, 2, 3]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "numbers": {"type": "array", "items": {"$ref": "#/$defs/number"}},
        "either": {"type": ["string", "integer"]},
        "filter": {"$ref": "#/$defs/filter"},
        "list": {"type": "array", "items": {"type": "object", "properties": {"inner": {"type": "string"}}, "required": ["inner"]}},
    },
    "required": ["city", "filter"],
    "$defs": {
        "number": {"type": "integer"},
        "filter": {"type": "object", "properties": {"kind": {"type": "string", "format": "date"}, "again": {"$ref": "#/$defs/filter"}}},
    },
}
CLOSED = {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False}

SERVER = f"""
import json
TOOLS = [{{"name": "echo", "title": "Echo", "description": "Returns its arguments.", "inputSchema": json.loads({json.dumps(json.dumps(SCHEMA))}),
           "annotations": {{"readOnlyHint": True}}}},
         {{"name": "closed", "inputSchema": json.loads({json.dumps(json.dumps(CLOSED))})}},
         {{"name": "plain", "inputSchema": {{"type": "object"}}}}]
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method, params, error = request["method"], request.get("params", {{}}), None
    result = {{}}
    if method == "initialize":
        result = {{"protocolVersion": "2025-11-25", "capabilities": {{"tools": {{}}, "prompts": {{}}, "resources": {{}}}},
                  "serverInfo": {{"name": "t", "version": "1"}}}}
    elif method == "tools/list":
        result = {{"tools": TOOLS}}
    elif method == "resources/templates/list":
        result = {{"resourceTemplates": [{{"name": "file", "uriTemplate": "file:///{{path}}", "description": "A file"}}]}}
    elif method == "tools/call":
        text = os.environ.get("GREETING", "unset") if params["name"] == "plain" and not params.get("arguments") else json.dumps(params.get("arguments"))
        result = {{"content": [{{"type": "text", "text": text}}]}}
    elif method == "prompts/get":
        result = {{"messages": [{{"role": "user", "content": {{"type": "text", "text": json.dumps(params.get("arguments"))}}}}]}}
    elif method != "ping":
        print(json.dumps({{"jsonrpc": "2.0", "id": request["id"], "error": {{"code": -32601, "message": "unknown"}}}}), flush=True)
        continue
    print(json.dumps({{"jsonrpc": "2.0", "id": request["id"], "result": result}}), flush=True)
"""


class ArgumentTest(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.server = self.script(SERVER)

    def sent(self, *words, tool="echo"):
        """Returns the arguments that the server receives."""
        result = run("tools", self.server, tool, *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_values_are_converted_to_the_type_in_the_schema(self):
        for words, sent in (
            (["city=5"], {"city": "5"}),
            (["city=a=b:=c"], {"city": "a=b:=c"}),
            (["city="], {"city": ""}),
            (["days=5", "exact=true"], {"days": 5, "exact": True}),
            (["exact=no"], {"exact": False}),
            (["ratio=1.5e3"], {"ratio": 1500}),
            (["limit=null"], {"limit": None}),
            (["limit=9"], {"limit": 9}),
            (["unit=kelvin", "level=2"], {"unit": "kelvin", "level": 2}),
            (["either=5"], {"either": "5"}),
            (["tags=a", "tags=b"], {"tags": ["a", "b"]}),
            (["tags=a,b"], {"tags": ["a,b"]}),
            (["numbers=1"], {"numbers": [1]}),
            (["numbers=[1,2]"], {"numbers": [1, 2]}),
            (['filter={"kind":"x"}'], {"filter": {"kind": "x"}}),
            (["city:=5", "tags:=[]"], {"city": 5, "tags": []}),
            (["other=5"], {"other": "5"}),
            (['{"city": "x"}'], {"city": "x"}),
        ):
            self.assertEqual(self.sent(*words), sent, words)

    def test_order_and_spelling_of_json_values_are_kept(self):
        result = run("tools", self.server, "plain", "b:=1.0", "a:={\"z\": 1}")
        self.assertEqual(json.loads(result.stdout, object_pairs_hook=list), [("b", 1.0), ("a", [("z", 1)])])

    def test_arguments_from_stdin(self):
        result = run("tools", self.server, "echo", "-", input=b'{"city": "x"}')
        self.assertEqual(json.loads(result.stdout), {"city": "x"})

    def test_value_that_does_not_fit_is_rejected(self):
        for words, message in (
            (["days=five"], "argument `days` is `five`, but the tool wants integer"),
            (["days=1.5"], "argument `days` is `1.5`, but the tool wants integer"),
            (["days=5", "days=6"], "argument `days` is given more than once"),
            (["exact=maybe"], "but the tool wants boolean"),
            (["numbers=x"], "argument `numbers` is `x`, but the tool wants integer"),
            (["numbers=[1"], "but the tool wants array"),
            (["cty=Bern"], "argument `cty` is unknown (did you mean `city`?)"),
            (["city:=Bern"], "argument `city` is not JSON"),
            (["city", "days=5"], "argument `city` is neither key=value nor key:=json"),
            (["=5"], "is neither key=value"),
        ):
            result = run("tools", self.server, "echo", *words)
            self.assert_exited(result, 2, b"", message)
        self.assert_exited(run("tools", self.server, "closed", "x=1"), 2, b"", "argument `x` is unknown\n")
        self.assertEqual(self.sent("x:=1", tool="closed"), {"x": 1})

    def test_unknown_tool_is_named_with_a_suggestion(self):
        self.assert_exited(run("tools", self.server, "ecko", "a=1"), 2, b"", "the server has no tool `ecko` (did you mean `echo`?)")

    def test_prompt_gets_strings(self):
        result = run("prompts", self.server, "greet", "name=5", 'other:="x"')
        self.assertEqual(result.stdout, b'user: {"name": "5", "other": "x"}\n', result.stderr)
        self.assert_exited(run("prompts", self.server, "greet", "name:=5"), 2, b"", "the arguments of a prompt are strings")

    def test_schema_is_readable(self):
        result = run("tools", self.server, "echo", "--schema")
        self.assertEqual(result.returncode, 0, result.stderr)
        text = result.stdout.decode()
        for line in (
            "echo (Echo)\n  Returns its arguments.\nThe server says that it is: read-only.\n\nArguments:\n",
            "  city (string, required)\n      Where?\n      And \\x1b[31mwhen?\n",
            "  days (integer, 1 to 7, default 3)\n",
            "  limit (integer or null)\n",
            '  unit ("celsius" or "kelvin")\n',
            "  level (1, 2 or 3)\n",
            "  numbers (array of integer)\n",
            "  either (integer or string)\n",
            "  filter (object, required)\n    kind (string (date))\n    again (object)\n      kind (string (date))\n",
            "  list (array of object)\n    inner (string, required)\n",
            " echo city=VALUE filter:=JSON\n",
        ):
            self.assertIn(line, text)
        self.assertEqual(run("tools", self.server, "echo", "--help-tool").stdout, result.stdout)
        self.assertIn("plain\n\nIt takes no arguments.\n", run("tools", self.server, "--schema").stdout.decode())
        self.assertEqual(json.loads(run("tools", self.server, "plain", "--schema", "--json").stdout)[0]["name"], "plain")

    def test_templates_are_listed(self):
        self.assert_exited(run("resources", self.server, "--templates"), 0, b"file:///{path}  A file\n")
        self.assertEqual(json.loads(run("resources", self.server, "--templates", "--json").stdout)[0]["name"], "file")
        self.assertEqual(run("resources", self.server, "x:y", "--templates").returncode, 2)

    def test_variables_are_set_for_the_server(self):
        self.assert_exited(run("tools", self.server, "plain", "--env", "GREETING=a=b", "--env", "X="), 0, b"a=b\n")
        self.assert_exited(run("tools", self.server, "plain"), 0, b"unset\n")
        self.assert_exited(run("tools", self.server, "--env", "=x"), 2, b"", "is not a variable such as NAME=value")
        self.assert_exited(run("tools", "tcp:127.0.0.1:1", "--env", "A=b"), 2, b"", "--env is allowed only for a `stdio:` server")
        child = stdio(sys.executable, "-c", "import os;os.read(0,1);print('{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"'+os.environ['A']+'\"}',flush=True)")
        self.assert_exited(run("call", child, "m", "--env", "A=b"), 0, b'"b"\n')

    def test_hostile_schema_is_bounded(self):
        deep = {"type": "object"}
        for _ in range(25):
            deep = {"type": "object", "properties": {"x" * 30: deep, "\x1b]0;": {"type": ["\x1b", 5], "enum": ["\x1b"] * 100}}}
        loop = {"type": "object", "properties": {"a": {"$ref": "#/properties/b"}, "b": {"$ref": "#/properties/a"}},
                "anyOf": [{"$ref": "#"}] * 10}
        wide = {"type": "object", "properties": {f"k{i}": {"type": "string", "description": "d" * 100} for i in range(1500)}}
        for schema in (deep, loop, wide):
            server = self.script(SERVER.replace("TOOLS = [", "TOOLS = [{'name': 'bad', 'inputSchema': json.loads(%r)}," % json.dumps(schema), 1), "bad.py")
            result = run("tools", server, "bad", "--schema")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertNotIn(b"\x1b", result.stdout)
            self.assertLess(len(result.stdout), 200_000)
            run("tools", server, "bad", "a=5")


if __name__ == "__main__":
    unittest.main()
