#!/usr/bin/env python3
"""The program against servers that others have written. Run as `program_test.py PROGRAM DIRECTORY [TEST…]`, where DIRECTORY is what
install.sh has filled."""
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
DIRECTORY = os.path.abspath(sys.argv.pop(1))
DEADLINE = 60  # seconds, for whatever must not hang

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"


def node(script, *args):
    """The address of a script that Node runs."""
    words = [os.path.join(DIRECTORY, "node"), os.path.join(DIRECTORY, script), *args]
    return "stdio:" + " ".join(word.replace("%", "%25").replace(" ", "%20") for word in words)


SERVERS = {
    "v1": (node("servers/v1.mjs"), LEGACY),
    "v2": (node("servers/v2.mjs"), LEGACY + (MODERN,)),
    "everything": (node("node_modules/@modelcontextprotocol/server-everything/dist/index.js", "stdio"), LEGACY),
}


@contextlib.contextmanager
def listening(script, form):
    """A server over HTTP, whose answers are events (`http`) or JSON (`json`); its address, without a path."""
    words = [os.path.join(DIRECTORY, "node"), os.path.join(DIRECTORY, script), form]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield json.loads(server.stdout.readline())["params"]["said"]
            server.stdin.close()  # it ends with it
            server.wait(timeout=DEADLINE)
        finally:
            server.kill()


def run(*args):
    # In a session of its own: without a terminal, so that nobody is asked.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("FAIRLEAD_")}
    return subprocess.run(
        [PROGRAM, *args], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE, start_new_session=True
    )


class Program(unittest.TestCase):
    maxDiff = None

    def out(self, *args, status=0):
        result = run(*args)
        self.assertEqual(result.returncode, status, f"{args}\n{result.stdout}\n{result.stderr}")
        return result.stdout

    def each(self, *names):
        """Every server in every revision it speaks."""
        for name in names:
            target, revisions = SERVERS[name]
            for revision in revisions:
                with self.subTest(server=name, revision=revision):
                    yield target, revision

    def test_inspect(self):
        for target, revision in self.each("v1", "v2", "everything"):
            told = json.loads(self.out("inspect", target, "--json", "--revision", revision))
            self.assertEqual((told["revision"], told["era"]), (revision, "modern" if revision == MODERN else "legacy"))
            self.assertGreaterEqual(int(told["tools"]), 12)
            for what in ("resources", "resourceTemplates", "prompts"):
                self.assertGreaterEqual(int(told[what]), 1, what)

    def test_the_revision_is_found(self):
        for name, revision in (("v1", LEGACY[-1]), ("v2", MODERN), ("everything", LEGACY[-1])):
            told = json.loads(self.out("inspect", SERVERS[name][0], "--json"))
            self.assertEqual((name, told["revision"]), (name, revision))

    def test_a_revision_that_the_server_does_not_speak(self):
        result = run("inspect", SERVERS["v1"][0], "--revision", MODERN)
        self.assertEqual(result.returncode, 3)
        self.assertEqual(result.stdout, "")
        self.assertIn(f"does not speak revision {MODERN}", result.stderr)

    def test_a_tool_that_runs_as_a_task(self):
        target = node("servers/tasks.mjs")
        self.assertEqual(self.out("tools", target, "greet", '{"name":"Bob"}'), "Hello, Bob!\n")
        answer = json.loads(self.out("tools", target, "greet", '{"name":"Bob"}', "--json"))
        self.assertEqual(answer["content"], [{"type": "text", "text": "Hello, Bob!"}])

    def test_tools(self):
        for target, revision in self.each("v1", "v2"):
            pin = ("--revision", revision)
            self.assertIn("echo", self.out("tools", target, *pin))
            self.assertEqual(self.out("tools", target, "echo", '{"message":"héllo"}', *pin), "héllo\n")
            answer = json.loads(self.out("tools", target, "add", '{"a":1,"b":2}', "--json", *pin))
            self.assertEqual(answer["structuredContent"], {"sum": 3})
            self.assertEqual(self.out("tools", target, "fail", *pin, status=1), "it does not work\n")

    def test_over_http(self):
        for name, form in (("v1", "http"), ("v1", "json"), ("v2", "http"), ("v2", "json")):
            with self.subTest(server=name, form=form), listening(f"servers/{name}.mjs", form) as url:
                for revision in SERVERS[name][1]:
                    pin = ("--revision", revision)
                    told = json.loads(self.out("inspect", url + "/mcp", "--json", *pin))
                    self.assertEqual((told["revision"], int(told["tools"])), (revision, 13))
                    self.assertEqual(self.out("tools", url + "/mcp", "echo", '{"message":"héllo"}', *pin), "héllo\n")
                self.assertEqual(self.out("resources", url + "/mcp", "memos://two"), "memo two\n")
                self.assertIn("404", run("inspect", url + "/nothing").stderr)

    def test_over_the_pair(self):
        with listening("servers/v1.mjs", "http") as url:
            for revision in LEGACY:
                told = json.loads(self.out("inspect", url + "/sse", "--json", "--revision", revision))
                self.assertEqual(told["revision"], revision)
            self.assertEqual(self.out("tools", url + "/sse", "count", '{"to":3}'), "counted to 3\n")

    def test_resources_and_prompts(self):
        for target, revision in self.each("v1", "v2"):
            pin = ("--revision", revision)
            self.assertIn("memo://one", self.out("resources", target, *pin))
            self.assertEqual(self.out("resources", target, "memos://two", *pin), "memo two\n")
            self.assertIn("greet", self.out("prompts", target, *pin))
            self.assertEqual(self.out("prompts", target, "greet", '{"name":"Ada"}', *pin), "user: Say hello to Ada\n")

    def test_everything(self):
        target, _ = SERVERS["everything"]
        self.assertEqual(self.out("tools", target, "echo", '{"message":"hi"}'), "Echo: hi\n")
        self.assertTrue(self.out("resources", target, "demo://resource/dynamic/text/1"))
        self.assertIn("Bern", self.out("prompts", target, "args-prompt", '{"city":"Bern"}'))

    def test_filesystem(self):
        with tempfile.TemporaryDirectory() as directory:
            directory = os.path.realpath(directory)
            path = os.path.join(directory, "memo.txt")
            with open(path, "w", encoding="utf-8") as file:
                file.write("the first memo")
            target = node("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js", directory)
            self.assertIn("read_text_file", self.out("tools", target))
            self.assertEqual(self.out("tools", target, "list_directory", json.dumps({"path": directory})), "[FILE] memo.txt\n")
            self.assertEqual(self.out("tools", target, "read_text_file", json.dumps({"path": path})), "the first memo\n")


if __name__ == "__main__":
    unittest.main()
