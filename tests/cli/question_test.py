#!/usr/bin/env python3
"""Questions of a server on the terminal (elicitation): other work continues, --timeout and Ctrl-C end them."""
import os
import select
import signal
import unittest

import program
from terminal import TerminalProgram

# `ask` asks for a name. Until it is answered, it sends progress, so that the call itself does not time out. With the
# argument `talk` it also sends a log message, and with `url` it asks to open a URL. Its result is the answer.
SERVER = """
import json, threading
lock = threading.Lock()
answered = threading.Event()
answers = []

def send(message):
    with lock:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def call(request):
    params = request["params"]
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
    question = {"mode": "form", "message": "who are you?", "requestedSchema": schema}
    if params["arguments"].get("url"):
        question = {"mode": "url", "message": "sign\\x1b[8m in", "elicitationId": "1", "url": "https://example.com/\\x1b[31m?a=1"}
    send({"id": 99, "method": "elicitation/create", "params": question})
    if params["arguments"].get("talk"):
        send({"method": "notifications/message", "params": {"level": "info", "data": "still working"}})
    token = params.get("_meta", {}).get("progressToken")
    step = 0
    while not answered.wait(0.1):
        step += 1
        send({"method": "notifications/progress", "params": {"progressToken": token, "progress": step}})
    send({"id": request["id"], "result": {"content": [{"type": "text", "text": json.dumps(answers[0])}]}})

open(os.path.dirname(os.path.abspath(__file__)) + "/pid", "w").write(str(os.getpid()))
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if message.get("id") == 99:
        answers.append(message["result"])
        answered.set()
    elif method == "initialize":
        send({"id": message["id"], "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "logging": {}},
                                              "serverInfo": {"name": "t", "version": "1"}}})
    elif method == "tools/call":
        threading.Thread(target=call, args=(message,), daemon=True).start()
    elif "id" in message and method:
        send({"id": message["id"], "error": {"code": -32601, "message": "unknown"}})
"""


class QuestionTest(program.ProgramTest):
    def ask(self, *args, arguments="{}"):
        return TerminalProgram("tools", self.script(SERVER), "ask", arguments, *args)

    def test_answers_are_sent(self):
        with self.ask() as terminal:
            terminal.read_until("Answer? [y/N] ")
            terminal.type("y\n")
            terminal.read_until("name (string): ")
            terminal.type("Bob\n")
            terminal.read_until("age (integer): ")
            terminal.type("many\n")  # is asked for again
            terminal.type("42\n")
            self.assertEqual(terminal.finish(), 0, terminal.output)
        self.assertIn('{"action": "accept", "content": {"name": "Bob", "age": 42}}', terminal.output)
        self.assertEqual(terminal.output.count("age (integer): "), 2)

    def test_server_is_heard_while_the_question_waits(self):
        with self.ask(arguments='{"talk":true}') as terminal:
            terminal.read_until("Answer? [y/N] ")
            terminal.read_until("server info: \"still working\"")
            terminal.type("n\n")
            self.assertEqual(terminal.finish(), 0, terminal.output)
        self.assertIn('{"action": "decline"}', terminal.output)

    def test_url_is_shown_and_the_answer_is_sent(self):
        for answer, action in (("y\n", "accept"), ("n\n", "decline"), ("\x04", "cancel")):
            with self.ask(arguments='{"url":true}') as terminal:
                terminal.read_until("Opened it? [y/N] ")
                terminal.type(answer)
                self.assertEqual(terminal.finish(), 0, terminal.output)
            shown = terminal.output.replace("\r\n", "\n")
            self.assertIn("The server asks: sign\\x1b[8m in\nIt wants you to open https://example.com/\\x1b[31m?a=1\n", shown)
            self.assertIn('{"action": "%s"}' % action, shown)

    def test_url_is_not_waited_for_after_the_timeout(self):
        with self.ask("--timeout", "1s", arguments='{"url":true}') as terminal:
            terminal.read_until("Opened it? [y/N] ")
            self.assertEqual(terminal.finish(), 0, terminal.output)
        self.assertIn("No answer in time (--timeout).", terminal.output)
        self.assertIn('{"action": "cancel"}', terminal.output)

    def test_question_ends_after_the_timeout(self):
        with self.ask("--timeout", "1s") as terminal:
            terminal.read_until("Answer? [y/N] ")
            self.assertEqual(terminal.finish(), 0, terminal.output)
        self.assertIn("No answer in time (--timeout).", terminal.output)
        self.assertIn('{"action": "cancel"}', terminal.output)

    def test_timeout_of_zero_is_no_limit(self):
        with self.ask("--timeout", "0") as terminal:
            terminal.read_until("Answer? [y/N] ")
            terminal.type("n\n")
            self.assertEqual(terminal.finish(), 0, terminal.output)

    def test_ctrl_c_ends_the_command_and_its_server(self):
        with self.ask() as terminal:
            terminal.read_until("Answer? [y/N] ")
            with open(self.path("pid"), encoding="utf-8") as file:
                server = os.pidfd_open(int(file.read()))
            terminal.type("\x03")
            self.assertEqual(terminal.finish(), -signal.SIGINT, terminal.output)
        poll = select.poll()
        poll.register(server)
        self.assertTrue(poll.poll(1000 * program.DEADLINE), "the server still runs")
        os.close(server)


class NoTimeoutTest(program.ProgramTest):
    def test_timeout_of_zero_is_no_limit_for_every_command(self):
        demo = program.stdio(program.PROGRAM, "demo")
        for args in (["inspect", demo], ["tools", demo], ["tools", demo, "add", '{"a":1,"b":2}'],
                     ["call", program.stdio(program.PROGRAM, "rpc"), "system.ping"]):
            result = program.run(*args, "--timeout", "0")
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assert_exited(program.run("inspect", demo, "--timeout", "soon"), 2, stderr="0: no limit")


if __name__ == "__main__":
    unittest.main()
