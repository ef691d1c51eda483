#!/usr/bin/env python3
"""fairlead skills, and what inspect says of them, against a server that has one and may lie about it."""
import json
import unittest

import program

SERVER = '''
import hashlib, json
MAIN = "skill://notes/SKILL.md"
FILES = {MAIN: "---\\\\nname: notes\\\\ndescription: Takes notes\\\\n---\\\\nBody.\\\\n", "skill://notes/more.md": "More.\\\\n"}
LIE = %r
def entry(uri):
    said = FILES[uri] + (LIE if uri == MAIN else "")
    return {"uri": uri, "digest": "sha256:" + hashlib.sha256(said.encode()).hexdigest(), "size": len(FILES[uri])}
def answer(method, params):
    if method == "server/discover":
        return {"supportedVersions": ["2026-07-28"], "capabilities": {"resources": {}, "extensions": {"io.modelcontextprotocol/skills": {}}}}
    if method == "skills/list":
        return {"skills": [{"uri": MAIN, "frontmatter": {"name": "notes", "description": "Takes notes"}, "resources": [entry(u) for u in FILES]}]}
    if method == "resources/read":
        print("read " + params["uri"], file=sys.stderr)
        return {"contents": [{"uri": params["uri"], "mimeType": "text/markdown", "text": FILES[params["uri"]]}]}
    return {"resources": [], "resourceTemplates": []}
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **answer(request["method"], request["params"])}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
'''


class Skills(program.ProgramTest):
    def server(self, lie=""):
        return self.script((SERVER % lie).replace("\\\\n", "\\n"))

    def test_lists_without_reading_a_file(self):
        result = program.run("skills", self.server())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, rb"\Askill://notes/SKILL.md +Takes notes\n\Z")
        self.assertNotIn("read skill:", result.stderr)
        listed = json.loads(program.run("skills", self.server(), "--json").stdout)
        self.assertEqual([one["frontmatter"]["name"] for one in listed], ["notes"])

    def test_reads_a_file_that_is_what_its_entry_says(self):
        self.assert_ended(program.run("skills", self.server(), "skill://notes/more.md"), 0, b"More.\n")
        self.assert_ended(program.run("skills", self.server(), "skill://other/more.md"), 2, stderr="belongs to no skill")

    def test_refuses_a_skill_whose_main_file_is_not(self):
        for uri in ("skill://notes/SKILL.md", "skill://notes/more.md"):
            result = program.run("skills", self.server("x"), uri)
            self.assertNotEqual(result.returncode, 0)
            self.assertEqual(result.stdout, b"")
            self.assertIn("its digest is not that of the entry", result.stderr)
            self.assertNotIn("read skill://notes/more.md", result.stderr)

    def test_inspect_counts_them(self):
        told = json.loads(program.run("inspect", self.server(), "--json").stdout)
        self.assertEqual(told["skills"], "1")


if __name__ == "__main__":
    unittest.main()
