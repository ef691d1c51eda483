#!/usr/bin/env python3
"""What a hostile server says does not reach the terminal as control characters."""
import json
import os
import pty
import re
import subprocess
import threading
import unittest

import program

# Clears the screen, sets the title, 8-bit CSI, reverses the text, deletes; as text and in JSON.
NASTY = "a\x1b[2J\x1b]0;owned\x07\x9b31m\u202eb\x7f\x08\rc"
SERVER = '''
import json
NASTY = %r
def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "serverInfo": {"name": NASTY, "version": NASTY},
                "capabilities": {"tools": {}, "resources": {}, "prompts": {}, NASTY: {}}}
    if method == "tools/list":
        return {"tools": [{"name": NASTY, "description": NASTY, "title": NASTY, "inputSchema": {"type": "object"}}]}
    if method == "tools/call" and params["name"] == "fail":
        raise ValueError(NASTY)
    if method == "tools/call" and params["name"] == "die":
        sys.stderr.buffer.write(("last words " + NASTY + "\\n").encode() + b"\\xff\\n")
        sys.stderr.flush()
        os._exit(3)
    if method == "tools/call" and params["name"] == "ask":
        schema = {"type": "object", "properties": {"x": {"type": "string", "title": NASTY}}}
        print(json.dumps({"jsonrpc": "2.0", "id": 99, "method": "elicitation/create",
                          "params": {"mode": "form", "message": NASTY, "requestedSchema": schema}}), flush=True)
        while json.loads(sys.stdin.readline()).get("id") != 99: pass
    if method == "tools/call":
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message",
                          "params": {"level": NASTY, "data": NASTY}}, ensure_ascii=False), flush=True)
        return {"content": [{"type": "text", "text": NASTY + "\\n\\tend"}, {"type": NASTY, "mimeType": NASTY},
                            {"type": "resource_link", "uri": NASTY, "name": "n"}]}
    if method == "resources/list":
        return {"resources": [{"uri": NASTY, "name": NASTY, "description": NASTY}]}
    if method == "resources/read":
        return {"contents": [{"uri": params["uri"], "text": NASTY}]}
    if method == "prompts/list":
        return {"prompts": [{"name": NASTY, "description": NASTY}]}
    if method == "prompts/get":
        return {"messages": [{"role": NASTY, "content": {"type": "text", "text": NASTY}}]}
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
''' % NASTY

RAW = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def on_terminal(*args, typed=b""):
    """Runs the program on a terminal of its own: status and all that reached the terminal."""
    main, side = pty.openpty()
    process = subprocess.Popen([program.PROGRAM, *args], stdin=side, stdout=side, stderr=side, env=program.ENVIRONMENT,
                               start_new_session=True,
                               preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0))
    os.close(side)
    shown = bytearray()

    def read():
        try:
            while part := os.read(main, 65536):
                shown.extend(part)
        except OSError:  # EIO: the other side is closed
            pass
    reader = threading.Thread(target=read)
    reader.start()
    try:
        os.write(main, typed)
        status = process.wait(program.DEADLINE)
        reader.join(program.DEADLINE)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(main)
    # The terminal makes CR LF of LF. Our own progress line clears its line first.
    text = shown.decode(errors="surrogateescape").replace("\r\n", "\n").replace("\r\x1b[K", "")
    return status, text


class Escapes(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.server = self.script(SERVER)
        self.legacy = ("--revision", "2025-11-25")

    def commands(self):
        return [("inspect",), ("tools",), ("tools", "call"), ("tools", "fail"), ("tools", "die"), ("resources",),
                ("resources", "x"), ("prompts",), ("prompts", "x")]

    def test_terminal_gets_no_control_characters(self):
        for name, *rest in self.commands():
            for options in ((), ("--json",)):
                with self.subTest(command=(name, *rest, *options)):
                    _, text = on_terminal(name, self.server, *rest, *self.legacy, *options)
                    if rest == ["die"]:  # what the child itself wrote to stderr comes first
                        text = text[text.index("fairlead: "):]
                    self.assertIsNone(RAW.search(text), repr(text))
                    self.assertNotIn("\udcff", text)
                    if (name, rest, options) not in (("inspect", [], ("--json",)),):
                        self.assertRegex(text, r"\\(x1b|u001b)\[2J", repr(text))

    def test_prompt_of_an_elicitation_has_no_control_characters(self):
        status, text = on_terminal("tools", self.server, "ask", *self.legacy, typed=b"y\nvalue\n")
        self.assertIn("The server asks: a\\x1b[2J", text)
        self.assertIsNone(RAW.search(text), repr(text))
        self.assertEqual(status, 0, text)

    def test_lists_and_errors_have_none_in_a_pipe_either(self):
        for name, *rest in (("inspect",), ("tools",), ("resources",), ("prompts",), ("tools", "fail"), ("tools", "die")):
            with self.subTest(command=(name, *rest)):
                result = program.run(name, self.server, *rest, *self.legacy)
                errors = result.stderr if rest != ["die"] else result.stderr[result.stderr.index("fairlead: "):]
                self.assertIsNone(RAW.search(result.stdout.decode() + errors), repr((result.stdout, errors)))
                self.assertIn("\\x1b[2J", result.stdout.decode() + errors)

    def test_results_are_exact_in_a_pipe(self):
        result = program.run("tools", self.server, "call", *self.legacy)
        self.assertTrue(result.stdout.startswith((NASTY + "\n\tend\n").encode()), result.stdout)
        self.assertEqual(program.run("resources", self.server, "x", *self.legacy).stdout, (NASTY + "\n").encode())
        listed = json.loads(program.run("tools", self.server, "--json", *self.legacy).stdout)
        self.assertEqual(listed[0]["name"], NASTY)

    def test_json_on_a_terminal_is_equivalent(self):
        status, text = on_terminal("tools", self.server, "--json", *self.legacy)
        self.assertEqual((status, json.loads(text)[0]["description"]), (0, NASTY))

    def test_call_prints_none(self):
        server = self.answering(('{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"%s","data":"\x9b"}}\n' % "\x9b1m").encode())
        _, text = on_terminal("call", server, "m")
        self.assertIsNone(RAW.search(text), repr(text))
        self.assertIn("\\u009b1m", text)


if __name__ == "__main__":
    unittest.main()
