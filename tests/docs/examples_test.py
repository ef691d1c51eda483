#!/usr/bin/env python3
"""Every example in README.md and docs/*.md runs as printed: shell blocks are run in order, each file in a sandbox of its own;
configurations are read by the program. exceptions.py names what is not run, and why.

    examples_test.py PROGRAM BUILD INTEROP [TEST…]

PROGRAM is the built program, BUILD the build directory with the examples, INTEROP the directory of the packages from npm."""
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

import exceptions
from examples import find_examples

PROGRAM, BUILD, INTEROP = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DEADLINE = 60
# The start of a package from npm by the copy in INTEROP. Like npx, it writes to the cache of npm.
NPX = """#!/bin/sh
set -e
[ "$1" = -y ] && shift
cache=${npm_config_cache:-$HOME/.npm}
mkdir -p "$cache/_logs" && : > "$cache/_logs/$$.log"
package=${1#@modelcontextprotocol/}
shift
exec %(node)s %(interop)s/node_modules/.bin/mcp-$package "$@"
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def pages():
    return ["README.md", *sorted(os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, "docs", "*.md")))]


def examples_of(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return find_examples(page, file.read())


class Sandbox:
    """The files, the environment and the port of the examples of one page."""

    def __init__(self, page):
        self.page = page
        self.directory = tempfile.mkdtemp(prefix="fairlead-docs-")
        self.port = free_port()
        self.gateway = None
        self.left_running = []  # the sessions of examples that have left a gateway in the background
        self.used = set()  # the exceptions that matched
        for name in ("home", "bin", "tmp", "work/build"):
            os.makedirs(os.path.join(self.directory, name))
        self.work = os.path.join(self.directory, "work")
        os.symlink(os.path.join(ROOT, "examples"), os.path.join(self.work, "examples"))
        os.symlink(BUILD, os.path.join(self.work, "build", "release"))
        os.symlink(PROGRAM, os.path.join(self.directory, "bin", "fairlead"))
        npx = os.path.join(self.directory, "bin", "npx")
        with open(npx, "w", encoding="utf-8") as file:
            file.write(NPX % {"node": os.path.join(INTEROP, "node"), "interop": INTEROP})
        os.chmod(npx, 0o755)
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(("FAIRLEAD_", "XDG_"))}
        self.environment.update(
            HOME=os.path.join(self.directory, "home"), TMPDIR=os.path.join(self.directory, "tmp"),
            PATH=os.path.join(self.directory, "bin") + ":" + os.environ["PATH"], FAIRLEAD_LISTEN=f"127.0.0.1:{self.port}")

    def close(self):
        self.stop_gateway()
        self.end_left_running()
        shutil.rmtree(self.directory, ignore_errors=True)

    def adapted(self, text):
        """Returns the text with the sandbox's port and temporary directory."""
        return re.sub(r":8808\b", f":{self.port}", text).replace("/tmp/", os.path.join(self.directory, "tmp", ""))

    def script(self, command):
        """Returns the lines to run."""
        lines = []
        for line in command.splitlines():
            skipped = [key for key in exceptions.NOT_RUN.get(self.page, {}) if line.startswith(key)]
            self.used.update(skipped)
            if skipped and line:
                continue
            serves = re.match(r"^((?:\w+=\S+ )*)(fairlead serve\b[^&]*)$", line)
            lines.append(f"{serves[1]}_serve_and_stop {serves[2]}" if serves else line)
        return self.adapted("\n".join(lines))

    def start_gateway(self):
        """Starts the gateway that an example expects to run. $TOKEN is the administrator's token."""
        if self.gateway or self.left_running:
            return
        variables = os.path.join(self.directory, "variables")
        self.gateway = subprocess.Popen(["bash", "-c", f". {variables} 2>/dev/null; exec fairlead serve"], cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for line in self.gateway.stderr:
            if b"endpoint=" in line:
                break
        else:
            raise AssertionError("the gateway did not start")
        threading.Thread(target=self.gateway.stderr.read, daemon=True).start()
        self.read_token()

    def read_token(self):
        token = os.path.join(self.environment["HOME"], ".local/state/fairlead/admin.token")
        if os.path.exists(token):
            with open(token, encoding="utf-8") as file:
                self.environment["TOKEN"] = file.read().strip()

    def stop_gateway(self):
        if not self.gateway:
            return
        self.gateway.terminate()
        self.gateway.wait(DEADLINE)
        self.gateway.stderr.close()
        self.gateway = None

    def write_configuration(self, example):
        """A configuration on the page is the file `servers.toml` of the examples that follow."""
        with open(os.path.join(self.work, "servers.toml"), "w", encoding="utf-8") as file:
            file.write(example.text)

    def run(self, example):
        """Runs a shell example. Returns a description of what is wrong, or None."""
        expects_gateway = "127.0.0.1:8808" in example.text or re.search(r"\$TOKEN\b", example.text)
        starts_gateway = re.search(r"fairlead serve\b", example.text)
        if expects_gateway and not starts_gateway:
            self.start_gateway()
        if starts_gateway:
            self.stop_gateway()
            self.end_left_running()
        marker = "----- end of command -----"
        variables = os.path.join(self.directory, "variables")
        script = f". {HERE}/prelude.sh\n. {variables} 2>/dev/null || true\ntrap '_save_variables {variables}' EXIT\n"
        commands = example.commands()
        for command, _ in commands:
            script += self.script(command) + f"\n_status=$?; echo '{marker}'; (exit $_status)\n"
            if len(commands) == 1:
                script = script.replace("\n" + self.script(command), "\nset -e\n" + self.script(command))
        with tempfile.TemporaryFile("w+", dir=self.directory, encoding="utf-8", errors="replace") as out:
            # A session of its own, so that whatever the example leaves behind can be ended.
            process = subprocess.Popen(["bash", "-c", script], cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                status = process.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                status = f"no end after {DEADLINE} s"
            if process.poll() is None:
                process.kill()
                process.wait()
            if re.search(r"fairlead serve\b.*&", example.text) and "kill %1" not in example.text:
                self.left_running.append(process.pid)
                self.read_token()
            else:
                self.end_session(process.pid)
            out.seek(0)
            output = out.read()
        return self.problem(commands, status, output, marker)

    def end_left_running(self):
        while self.left_running:
            self.end_session(self.left_running.pop())

    @staticmethod
    def end_session(session):
        """Ends the processes that an example has left, and waits for their end."""
        def processes():
            for entry in filter(str.isdigit, os.listdir("/proc")):
                try:
                    if os.getsid(int(entry)) == session:
                        yield int(entry)
                except (ProcessLookupError, PermissionError):
                    pass

        deadline = time.monotonic() + DEADLINE
        sent = set()
        while (found := set(processes())) and time.monotonic() < deadline:
            for pid in found - sent:
                try:
                    os.kill(pid, signal.SIGTERM)
                except ProcessLookupError:
                    pass
            sent |= found
            time.sleep(0.02)

    def problem(self, commands, status, output, marker):
        parts = output.split(marker + "\n")
        printed = [text for text in re.findall(r"# prints (.*)", "\n".join(self.script(command) for command, _ in commands))]
        missing = [text for text in printed if not matches(text, output)]
        for (command, expected), actual in zip(commands, parts):
            if expected and not matches(self.adapted(expected).strip(), actual):
                missing.append(expected)
        if missing:
            return f"it does not print {missing}, but:\n{output}"
        is_transcript = any(expected is not None for _, expected in commands)
        return None if status == 0 or is_transcript and len(parts) > len(commands) else f"status {status}:\n{output}"


def commands_of(example):
    """Returns the lines that are commands, whatever the language of the block is."""
    return [line for line in example.text.splitlines() if re.match(r"(\$ )?(fairlead|cmake|ctest|curl|make|npx|sqlite3) ", line)]


def matches(expected, output):
    """Returns whether the output has the expected text. `…` stands for any text, and times differ."""
    pattern = re.escape(expected.strip()).replace("…", ".*").replace(re.escape("..."), ".*")
    pattern = re.sub(r"\d+(?:\\\.\d+)?\\ (?:ms|s)\b", r"\\d+(?:\\.\\d+)? (?:ms|s)", pattern)
    return re.search(pattern, output, re.S) is not None


def is_configuration(example):
    if example.language == "toml":
        return True
    return example.language in ("json", "jsonc") and ('"mcpServers"' in example.text or re.match(r'\s*"[\w-]+": \{ "(command|url|type)"', example.text))


def completed(example):
    """Returns the configuration with what a fragment needs."""
    text = example.text
    if example.language != "toml":
        return text if text.lstrip().startswith(("{", "/")) else '{"mcpServers": {' + text + "}}"
    for name in sorted(set(re.findall(r"^\[servers\.([\w-]+)\.", text, re.M))):
        if not re.search(rf"^\[servers\.{name}\]", text, re.M):
            text = f'[servers.{name}]\ncommand = "x"\n' + text
    return text


def problem_of_configuration(path, home):
    """Returns why the program rejects the file, or None."""
    checked = subprocess.run([PROGRAM, "config", "check", path], capture_output=True, text=True, timeout=DEADLINE,
                             env={**os.environ, "HOME": home})
    if checked.returncode == 2 and "unknown command" in checked.stderr:  # without that command: look up a server that the file lacks
        checked = subprocess.run([PROGRAM, "tools", "no-such-server", "--config", path], capture_output=True, text=True, timeout=DEADLINE)
        return None if "has no server of this name" in checked.stderr else checked.stderr
    return None if checked.returncode == 0 and "warning" not in checked.stderr else checked.stdout + checked.stderr


class ExampleTest(unittest.TestCase):
    def test_shell_examples_run_as_printed(self):
        def run_page(page):
            sandbox = Sandbox(page)
            problems = []
            try:
                for example in examples_of(page):
                    if example.language == "toml" and re.search(r"^(command|url) = ", example.text, re.M):
                        sandbox.write_configuration(example)
                    if not example.is_shell():
                        continue
                    problem = sandbox.run(example)
                    if problem:
                        problems.append(f"{example.place}\n{example.text}\n{problem}")
            finally:
                sandbox.close()
            for example in examples_of(page):
                if not example.is_shell():
                    sandbox.used.update(key for line in commands_of(example) for key in exceptions.NOT_RUN.get(page, {}) if line.startswith(key))
            unused = set(exceptions.NOT_RUN.get(page, {})) - sandbox.used
            problems += [f"{page}: no line begins with {key!r}, which exceptions.py names" for key in unused]
            return problems

        with ThreadPoolExecutor(4) as threads:
            results = list(threads.map(run_page, pages()))
        problems = [problem for page in results for problem in page]
        self.assertEqual(len(problems), 0, "\n\n".join(problems))

    def test_every_command_is_in_a_block_that_runs(self):
        """A block of another language must have no commands, except for those that exceptions.py names."""
        problems = []
        for page in pages():
            for example in examples_of(page):
                if not example.is_shell():
                    problems += [f"{example.place}: {line}" for line in commands_of(example)
                                 if not any(line.startswith(key) for key in exceptions.NOT_RUN.get(page, {}))]  # fmt: skip
        self.assertEqual(problems, [], "\n".join(problems))

    def test_every_command_is_on_the_page_of_the_command_line(self):
        with open(os.path.join(ROOT, "docs/cli.md"), encoding="utf-8") as file:
            text = file.read()

        def commands(*words):
            def run(*arguments):
                return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=DEADLINE)

            names = [line.split("\t")[0] for line in run("__complete", *words, "").stdout.splitlines()]
            return [name for name in names if run("help", *words, name).returncode == 0]  # others are names of clients or servers

        found = commands()
        self.assertGreater(len(found), 20)
        for command in found:
            rows = [line for line in text.splitlines() if line.startswith("|") and re.search(rf"`{command}\b", line)]
            self.assertTrue(rows, f"`{command}` is not in a table of docs/cli.md")
            for nested in commands(command) if command != "help" else ():
                self.assertTrue(any(re.search(rf"`(?:{command} )?{nested}\b", row) for row in rows), f"`{command} {nested}` is not in a table of docs/cli.md")

    def test_every_page_is_listed_in_the_readme(self):
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            text = file.read()
        self.assertEqual([page for page in pages()[1:] if f"| [{page}]({page}) |" not in text], [])

    def test_pages_in_the_exceptions_exist(self):
        for table in (exceptions.NOT_RUN, exceptions.NOT_CONFIGURATIONS):
            self.assertEqual(set(table) - set(pages()), set())

    def test_configurations_are_valid(self):
        problems = []
        count = 0
        with tempfile.TemporaryDirectory() as scratch:
            for page in pages():
                for example in filter(is_configuration, examples_of(page)):
                    first = next((line for line in example.text.splitlines() if line.strip()), "")
                    if any(first.startswith(key) for key in exceptions.NOT_CONFIGURATIONS.get(page, {})):
                        continue
                    count += 1
                    path = os.path.join(scratch, "file." + example.language)
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(completed(example))
                    problem = problem_of_configuration(path, scratch)
                    if problem:
                        problems.append(f"{example.place}: {problem}")
        self.assertEqual(problems, [], "\n".join(problems))
        self.assertGreater(count, 3)

    def test_server_by_npx_runs_under_landlock_as_documented(self):
        sandbox = Sandbox("docs/processes.md")
        try:
            text = next(e.text for e in examples_of("docs/processes.md") if e.language == "toml" and "landlock" in e.text)
            cache = os.path.join(sandbox.directory, "cache")
            os.mkdir(cache)
            # The packages are in the build directory instead of the cache of npm.
            text = text.replace("/var/cache/fairlead-npm", cache)
            text = re.sub(r"(?m)^execute = \[", f"execute = [{json.dumps(INTEROP)}, {json.dumps(sandbox.directory)}, ", text)
            path = os.path.join(sandbox.work, "servers.toml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            result = subprocess.run([PROGRAM, "tools", "files", "list_directory", "path=/srv", "--config", path], capture_output=True,
                                    text=True, env=sandbox.environment, timeout=DEADLINE)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(os.listdir(cache), ["_logs"])
        finally:
            sandbox.close()

    def test_json_is_valid(self):
        for page in pages():
            for example in examples_of(page):
                if example.language == "json" and "…" not in example.text and not is_configuration(example):
                    with self.subTest(example.place):
                        json.loads(example.text)


class ToolTest(unittest.TestCase):
    """The test itself: it must see an example that does not work."""

    def run_text(self, text):
        (example,) = find_examples("x.md", text)
        sandbox = Sandbox("x.md")
        try:
            return sandbox.run(example)
        finally:
            sandbox.close()

    def test_blocks_are_found(self):
        text = "Text:\n\n    cat one\n\n    two\n\n- item\n\n    cat this\n\n```sh\nthree\n```\n```toml\na = 1\n```\n\n    int x;\n"
        self.assertEqual([(e.line, e.language, e.text) for e in find_examples("f", text)],
                         [(3, "sh", "cat one\n\ntwo\n"), (11, "sh", "three\n"), (14, "toml", "a = 1\n"), (18, "", "int x;\n")])

    def test_commands_in_other_blocks_are_found(self):
        for text, commands in (("```text\nfairlead servers list\n  | x |\n```\n", 1), ("```\n$ curl x\nfairlead is a word\n```\n", 2),
                               ("```cpp\nfairlead::Loop loop;\n```\n", 0)):  # fmt: skip
            (example,) = find_examples("x.md", text)
            self.assertFalse(example.is_shell())
            self.assertEqual(len(commands_of(example)), commands, text)

    def test_failures_are_found(self):
        self.assertIsNone(self.run_text("```sh\ntrue\n```\n"))
        self.assertIn("status", self.run_text("```sh\nfalse\ntrue\n```\n"))
        self.assertIn("does not print", self.run_text("```sh\necho 1    # prints 2\n```\n"))
        self.assertIsNone(self.run_text("    $ echo a; echo 1.6 s; echo b\n    a\n    99 ms\n    …\n    $ false\n    $ echo $?\n    1\n"))
        self.assertIn("does not print", self.run_text("    $ echo a\n    b\n"))

    def test_gateway_in_the_background_runs_until_the_next_one(self):
        sandbox = Sandbox("x.md")
        try:
            for text in ("fairlead serve &\nsleep 1\n", "fairlead tools demo add a=1 b=2   # prints 3\n",
                         "fairlead serve & sleep 1\nfairlead tools demo\nkill %1\n"):
                (example,) = find_examples("x.md", f"```sh\n{text}```\n")
                self.assertIsNone(sandbox.run(example))
        finally:
            sandbox.close()

    def test_unknown_options_are_found(self):
        self.assertIn("status", self.run_text("```sh\nfairlead serve --confg x\n```\n"))


if __name__ == "__main__":
    unittest.main()
