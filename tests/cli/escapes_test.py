#!/usr/bin/env python3
"""Control characters that a hostile server sends do not reach the terminal."""
import json
import os
import pty
import re
import subprocess
import threading
import unittest

import program

# Control sequences that clear the screen, set the title, begin an 8-bit CSI, reverse the text and delete.
CONTROL_TEXT = "a\x1b[2J\x1b]0;owned\x07\x9b31m\u202eb\x7f\x08\rc"
SERVER = '''
import json
CONTROL_TEXT = %r
def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "serverInfo": {"name": CONTROL_TEXT, "version": CONTROL_TEXT},
                "capabilities": {"tools": {}, "resources": {}, "prompts": {}, CONTROL_TEXT: {}}}
    if method == "tools/list":
        return {"tools": [{"name": CONTROL_TEXT, "description": CONTROL_TEXT, "title": CONTROL_TEXT, "inputSchema": {"type": "object"}}]}
    if method == "tools/call" and params["name"] == "fail":
        raise ValueError(CONTROL_TEXT)
    if method == "tools/call" and params["name"] == "die":
        sys.stderr.buffer.write(("last line " + CONTROL_TEXT + "\\n").encode() + b"\\xff\\n")
        sys.stderr.flush()
        os._exit(3)
    if method == "tools/call" and params["name"] == "ask":
        schema = {"type": "object", "properties": {"x": {"type": "string", "title": CONTROL_TEXT}}}
        print(json.dumps({"jsonrpc": "2.0", "id": 99, "method": "elicitation/create",
                          "params": {"mode": "form", "message": CONTROL_TEXT, "requestedSchema": schema}}), flush=True)
        while json.loads(sys.stdin.readline()).get("id") != 99: pass
    if method == "tools/call":
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message",
                          "params": {"level": CONTROL_TEXT, "data": CONTROL_TEXT}}, ensure_ascii=False), flush=True)
        return {"content": [{"type": "text", "text": CONTROL_TEXT + "\\n\\tend"}, {"type": CONTROL_TEXT, "mimeType": CONTROL_TEXT},
                            {"type": "resource_link", "uri": CONTROL_TEXT, "name": "n"}]}
    if method == "resources/list":
        return {"resources": [{"uri": CONTROL_TEXT, "name": CONTROL_TEXT, "description": CONTROL_TEXT}]}
    if method == "resources/read":
        return {"contents": [{"uri": params["uri"], "text": CONTROL_TEXT}]}
    if method == "prompts/list":
        return {"prompts": [{"name": CONTROL_TEXT, "description": CONTROL_TEXT}]}
    if method == "prompts/get":
        return {"messages": [{"role": CONTROL_TEXT, "content": {"type": "text", "text": CONTROL_TEXT}}]}
    return {"resourceTemplates": []}
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request: continue
    reply = {"jsonrpc": "2.0", "id": request["id"]}
    try:
        reply["result"] = answer(request["method"], request.get("params", {}))
    except ValueError as error:
        reply["error"] = {"code": -32000, "message": str(error), "data": str(error)}
    print(json.dumps(reply, ensure_ascii=False), flush=True)
''' % CONTROL_TEXT

CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def run_on_terminal(*args, typed_input=b""):
    """Runs the program on a new terminal. Returns its exit status and all text that reached the terminal."""
    main, side = pty.openpty()
    process = subprocess.Popen([program.PROGRAM, *args], stdin=side, stdout=side, stderr=side, env=program.ENVIRONMENT,
                               start_new_session=True,
                               preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0))
    os.close(side)
    output = bytearray()

    def read():
        try:
            while part := os.read(main, 65536):
                output.extend(part)
        except OSError:  # EIO: the program has closed the terminal
            pass
    reader = threading.Thread(target=read)
    reader.start()
    try:
        os.write(main, typed_input)
        status = process.wait(program.DEADLINE)
        reader.join(program.DEADLINE)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(main)
    # The terminal converts LF to CR LF. The progress line of the program itself begins with an escape sequence.
    text = output.decode(errors="surrogateescape").replace("\r\n", "\n").replace("\r\x1b[K", "")
    return status, text


class EscapesTest(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.server = self.script(SERVER)
        self.legacy = ("--revision", "2025-11-25")

    def commands(self):
        return [("inspect",), ("tools",), ("tools", "call"), ("tools", "fail"), ("tools", "die"), ("resources",),
                ("resources", "x"), ("prompts",), ("prompts", "x")]

    def test_terminal_receives_no_control_characters(self):
        for name, *rest in self.commands():
            for options in ((), ("--json",)):
                with self.subTest(command=(name, *rest, *options)):
                    _, text = run_on_terminal(name, self.server, *rest, *self.legacy, *options)
                    if rest == ["die"]:  # the stderr of the child process is not escaped and comes first
                        text = text[text.index("fairlead: "):]
                    self.assertIsNone(CONTROL_CHARACTERS.search(text), repr(text))
                    self.assertNotIn("\udcff", text)
                    if (name, rest, options) not in (("inspect", [], ("--json",)),):
                        self.assertRegex(text, r"\\(x1b|u001b)\[2J", repr(text))

    def test_prompt_of_an_elicitation_has_no_control_characters(self):
        status, text = run_on_terminal("tools", self.server, "ask", *self.legacy, typed_input=b"y\nvalue\n")
        self.assertIn("The server asks: a\\x1b[2J", text)
        self.assertIsNone(CONTROL_CHARACTERS.search(text), repr(text))
        self.assertEqual(status, 0, text)

    def test_lists_and_errors_have_no_control_characters_in_a_pipe(self):
        for name, *rest in (("inspect",), ("tools",), ("resources",), ("prompts",), ("tools", "fail"), ("tools", "die")):
            with self.subTest(command=(name, *rest)):
                result = program.run(name, self.server, *rest, *self.legacy)
                errors = result.stderr if rest != ["die"] else result.stderr[result.stderr.index("fairlead: "):]
                self.assertIsNone(CONTROL_CHARACTERS.search(result.stdout.decode() + errors), repr((result.stdout, errors)))
                if rest != ["die"]:  # its stderr was relayed and is not printed again
                    self.assertIn("\\x1b[2J", result.stdout.decode() + errors)

    def test_results_are_unchanged_in_a_pipe(self):
        result = program.run("tools", self.server, "call", *self.legacy)
        self.assertTrue(result.stdout.startswith((CONTROL_TEXT + "\n\tend\n").encode()), result.stdout)
        self.assertEqual(program.run("resources", self.server, "x", *self.legacy).stdout, (CONTROL_TEXT + "\n").encode())
        listed = json.loads(program.run("tools", self.server, "--json", *self.legacy).stdout)
        self.assertEqual(listed[0]["name"], CONTROL_TEXT)

    def test_json_on_a_terminal_is_equivalent(self):
        status, text = run_on_terminal("tools", self.server, "--json", *self.legacy)
        self.assertEqual((status, json.loads(text)[0]["description"]), (0, CONTROL_TEXT))

    def test_call_prints_no_control_characters(self):
        server = self.server_responding(('{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"%s","data":"\x9b"}}\n' % "\x9b1m").encode())
        _, text = run_on_terminal("call", server, "m")
        self.assertIsNone(CONTROL_CHARACTERS.search(text), repr(text))
        self.assertIn("\\u009b1m", text)


if __name__ == "__main__":
    unittest.main()
