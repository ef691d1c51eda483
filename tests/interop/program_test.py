#!/usr/bin/env python3
"""The program with servers of other projects. Run as `program_test.py PROGRAM DIRECTORY [TEST…]`; install.sh has installed the
servers in DIRECTORY."""
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
DIRECTORY = os.path.abspath(sys.argv.pop(1))
DEADLINE = 60  # seconds; timeout of every operation that must not hang

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"


def node(script, *args):
    """Returns the address of a script that Node runs."""
    words = [os.path.join(DIRECTORY, "node"), os.path.join(DIRECTORY, script), *args]
    return "stdio:" + " ".join(word.replace("%", "%25").replace(" ", "%20") for word in words)


SERVERS = {
    "v1": (node("servers/v1.mjs"), LEGACY),
    "v2": (node("servers/v2.mjs"), LEGACY + (MODERN,)),
    "everything": (node("node_modules/@modelcontextprotocol/server-everything/dist/index.js", "stdio"), LEGACY),
}


@contextlib.contextmanager
def http_server(script, form):
    """Runs an HTTP server whose responses are event streams (`http`) or JSON (`json`). Yields its URL without a path."""
    words = [os.path.join(DIRECTORY, "node"), os.path.join(DIRECTORY, script), form]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield json.loads(server.stdout.readline())["params"]["said"]
            server.stdin.close()  # the server exits at the end of its stdin
            server.wait(timeout=DEADLINE)
        finally:
            server.kill()


def run(*args):
    # In a new session, which has no terminal, so that the program does not prompt the user.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("FAIRLEAD_")}
    return subprocess.run(
        [PROGRAM, *args], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE, start_new_session=True
    )


class ProgramTest(unittest.TestCase):
    maxDiff = None

    def output(self, *args, status=0):
        """Runs the program and returns its stdout. Checks its exit status."""
        result = run(*args)
        self.assertEqual(result.returncode, status, f"{args}\n{result.stdout}\n{result.stderr}")
        return result.stdout

    def each_revision(self, *names):
        """Yields the address of each server with every revision that it supports."""
        for name in names:
            target, revisions = SERVERS[name]
            for revision in revisions:
                with self.subTest(server=name, revision=revision):
                    yield target, revision

    def test_inspect(self):
        for target, revision in self.each_revision("v1", "v2", "everything"):
            summary = json.loads(self.output("inspect", target, "--json", "--revision", revision))
            self.assertEqual((summary["revision"], summary["era"]), (revision, "modern" if revision == MODERN else "legacy"))
            self.assertGreaterEqual(int(summary["tools"]), 12)
            for kind in ("resources", "resourceTemplates", "prompts"):
                self.assertGreaterEqual(int(summary[kind]), 1, kind)

    def test_revision_is_negotiated(self):
        for name, revision in (("v1", LEGACY[-1]), ("v2", MODERN), ("everything", LEGACY[-1])):
            summary = json.loads(self.output("inspect", SERVERS[name][0], "--json"))
            self.assertEqual((name, summary["revision"]), (name, revision))

    def test_unsupported_revision_is_reported(self):
        result = run("inspect", SERVERS["v1"][0], "--revision", MODERN)
        self.assertEqual(result.returncode, 3)
        self.assertEqual(result.stdout, "")
        self.assertIn(f"does not support revision {MODERN}", result.stderr)

    def test_tool_that_runs_as_a_task_is_awaited(self):
        target = node("servers/tasks.mjs")
        self.assertEqual(self.output("tools", target, "greet", '{"name":"Bob"}'), "Hello, Bob!\n")
        answer = json.loads(self.output("tools", target, "greet", '{"name":"Bob"}', "--json"))
        self.assertEqual(answer["content"], [{"type": "text", "text": "Hello, Bob!"}])

    def test_tools(self):
        for target, revision in self.each_revision("v1", "v2"):
            pin = ("--revision", revision)
            self.assertIn("echo", self.output("tools", target, *pin))
            self.assertEqual(self.output("tools", target, "echo", '{"message":"héllo"}', *pin), "héllo\n")
            answer = json.loads(self.output("tools", target, "add", '{"a":1,"b":2}', "--json", *pin))
            self.assertEqual(answer["structuredContent"], {"sum": 3})
            self.assertEqual(self.output("tools", target, "fail", *pin, status=1), "it does not work\n")

    def test_over_http(self):
        for name, form in (("v1", "http"), ("v1", "json"), ("v2", "http"), ("v2", "json")):
            with self.subTest(server=name, form=form), http_server(f"servers/{name}.mjs", form) as url:
                for revision in SERVERS[name][1]:
                    pin = ("--revision", revision)
                    summary = json.loads(self.output("inspect", url + "/mcp", "--json", *pin))
                    self.assertEqual((summary["revision"], int(summary["tools"])), (revision, 13))
                    self.assertEqual(self.output("tools", url + "/mcp", "echo", '{"message":"héllo"}', *pin), "héllo\n")
                self.assertEqual(self.output("resources", url + "/mcp", "memos://two"), "memo two\n")
                self.assertIn("404", run("inspect", url + "/nothing").stderr)

    def test_over_http_with_sse(self):
        with http_server("servers/v1.mjs", "http") as url:
            for revision in LEGACY:
                summary = json.loads(self.output("inspect", url + "/sse", "--json", "--revision", revision))
                self.assertEqual(summary["revision"], revision)
            self.assertEqual(self.output("tools", url + "/sse", "count", '{"to":3}'), "counted to 3\n")

    def test_resources_and_prompts(self):
        for target, revision in self.each_revision("v1", "v2"):
            pin = ("--revision", revision)
            self.assertIn("memo://one", self.output("resources", target, *pin))
            self.assertEqual(self.output("resources", target, "memos://two", *pin), "memo two\n")
            self.assertIn("greet", self.output("prompts", target, *pin))
            self.assertEqual(self.output("prompts", target, "greet", '{"name":"Ada"}', *pin), "user: Say hello to Ada\n")

    def test_everything(self):
        target, _ = SERVERS["everything"]
        self.assertEqual(self.output("tools", target, "echo", '{"message":"hi"}'), "Echo: hi\n")
        self.assertTrue(self.output("resources", target, "demo://resource/dynamic/text/1"))
        self.assertIn("Bern", self.output("prompts", target, "args-prompt", '{"city":"Bern"}'))

    def test_filesystem(self):
        with tempfile.TemporaryDirectory() as directory:
            directory = os.path.realpath(directory)
            path = os.path.join(directory, "memo.txt")
            with open(path, "w", encoding="utf-8") as file:
                file.write("the first memo")
            target = node("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js", directory)
            self.assertIn("read_text_file", self.output("tools", target))
            self.assertEqual(self.output("tools", target, "list_directory", json.dumps({"path": directory})), "[FILE] memo.txt\n")
            self.assertEqual(self.output("tools", target, "read_text_file", json.dumps({"path": path})), "the first memo\n")


if __name__ == "__main__":
    unittest.main()
