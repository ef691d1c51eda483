#!/usr/bin/env python3
"""Lists of a server as tables: on a terminal they fit its width, and elsewhere nothing is shortened."""
import unittest

import program
from terminal import TerminalProgram, shown

TOOLS = [{"name": "a_tool_with_a_long_name_that_is_needed", "description": "日本語 " * 8},
         {"name": "b", "description": "plain \x1b[31m text"}]  # fmt: skip
SERVER = f"""
import json
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = {{}}
    if request["method"] == "initialize":
        result = {{"protocolVersion": "2025-11-25", "capabilities": {{"tools": {{}}}}, "serverInfo": {{"name": "t", "version": "1"}}}}
    elif request["method"] == "tools/list":
        result = {{"tools": [{{**tool, "inputSchema": {{"type": "object"}}}} for tool in {TOOLS!r}]}}
    print(json.dumps({{"jsonrpc": "2.0", "id": request["id"], "result": result}}), flush=True)
"""


def width(text):
    return sum(2 if ord(c) > 0x2E80 else 1 for c in text)


class TableTest(program.ProgramTest):
    def test_a_list_fits_the_terminal_and_keeps_the_names(self):
        with TerminalProgram("tools", self.script(SERVER), columns=60) as terminal:
            self.assertEqual(terminal.finish(), 0, terminal.output)
        lines = [line for line in shown(terminal.output) if line.strip()]
        self.assertEqual(len(lines), 2, terminal.output)
        for line, tool in zip(lines, TOOLS):
            self.assertTrue(line.startswith(tool["name"] + " "), line)
            self.assertLessEqual(width(line), 60, line)
        self.assertTrue(lines[0].endswith("…"), lines[0])
        self.assertEqual(width(lines[0][: lines[0].index("日")]), lines[1].index("plain"))

    def test_a_list_in_a_pipe_is_whole(self):
        lines = program.run("tools", self.script(SERVER)).stdout.decode().splitlines()
        self.assertEqual(lines[0], TOOLS[0]["name"] + "  " + TOOLS[0]["description"].strip())
        self.assertEqual(lines[1].split(), ["b", "plain", "\\x1b[31m", "text"])


if __name__ == "__main__":
    unittest.main()
