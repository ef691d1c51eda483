#!/usr/bin/env python3
"""fairlead skills, and the count of skills in inspect, with a server whose entries may not match its files."""
import json
import unittest

import program

SERVER = '''
import hashlib, json
MAIN = "skill://notes/SKILL.md"
FILES = {MAIN: "---\\\\nname: notes\\\\ndescription: Takes notes\\\\n---\\\\nBody.\\\\n", "skill://notes/more.md": "More.\\\\n"}
APPENDED = %r
def entry(uri):
    claimed = FILES[uri] + (APPENDED if uri == MAIN else "")
    return {"uri": uri, "digest": "sha256:" + hashlib.sha256(claimed.encode()).hexdigest(), "size": len(FILES[uri])}
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


class SkillsTest(program.ProgramTest):
    def server(self, appended=""):
        """Returns the address of a server. `appended` is text that its entry of SKILL.md has and the file has not."""
        return self.script((SERVER % appended).replace("\\\\n", "\\n"))

    def test_list_reads_no_file(self):
        result = program.run("skills", self.server())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, rb"\Askill://notes/SKILL.md +Takes notes\n\Z")
        self.assertNotIn("read skill:", result.stderr)
        listed = json.loads(program.run("skills", self.server(), "--json").stdout)
        self.assertEqual([skill["frontmatter"]["name"] for skill in listed], ["notes"])

    def test_file_that_matches_its_entry_is_printed(self):
        self.assert_exited(program.run("skills", self.server(), "skill://notes/more.md"), 0, b"More.\n")
        self.assert_exited(program.run("skills", self.server(), "skill://other/more.md"), 2, stderr="belongs to no skill")

    def test_skill_whose_main_file_differs_from_its_entry_is_rejected(self):
        for uri in ("skill://notes/SKILL.md", "skill://notes/more.md"):
            result = program.run("skills", self.server("x"), uri)
            self.assertNotEqual(result.returncode, 0)
            self.assertEqual(result.stdout, b"")
            self.assertIn("its digest differs from the entry", result.stderr)
            self.assertNotIn("read skill://notes/more.md", result.stderr)

    def test_inspect_counts_skills(self):
        counts = json.loads(program.run("inspect", self.server(), "--json").stdout)
        self.assertEqual(counts["skills"], 1)


if __name__ == "__main__":
    unittest.main()
