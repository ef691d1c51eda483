#!/usr/bin/env python3
"""A stdio MCP server for the tests of the registry: toy_server.py STATE. The file STATE has its lists as a JSON object with the
members `tools`, `resources`, `templates` and `prompts`, each an array of entries; it is read for every list request, so a test
changes the lists by writing it. The PID of each process is appended to STATE.starts.

What a tool does follows from its name: `pid` returns the PID, `variable` a variable of the environment, `echo` its arguments, `wait` returns when the file `path` of its
arguments exists, `die` ends the process, `announce` sends notifications of changed lists, `progress` three progress notifications,
`ask` an elicitation, `mixed` a result with many kinds of content, `fail` a result with isError. Any other tool returns its name."""
import json
import os
import sys
import time

STATE = sys.argv[1]
LISTS = {
    "tools/list": ("tools", "tools"),
    "resources/list": ("resources", "resources"),
    "resources/templates/list": ("templates", "resourceTemplates"),
    "prompts/list": ("prompts", "prompts"),
}
MIXED = {
    "content": [
        {"type": "text", "text": "a \u00e9 \U0001f600 \"quoted\" \\ / \u2028"},
        {"type": "image", "data": "AAEC/w==", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "toy://linked", "name": "linked"},
    ],
    "structuredContent": {"numbers": [0, -0.0, 1e300, 12345678901234567890, 0.1], "empty": {}, "null": None},
    "_meta": {"vendor/x": [1, 2, {"deep": True}]},
}


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def lists():
    with open(STATE, encoding="utf-8") as file:
        return json.load(file)


def text(value):
    return {"content": [{"type": "text", "text": value}]}


def ask():
    """Sends an elicitation and returns the client's answer."""
    send({"id": "ask", "method": "elicitation/create", "params": {"message": "go on?", "requestedSchema": {"type": "object", "properties": {}}}})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "ask":
            return text(json.dumps(message.get("result", message.get("error"))))
    sys.exit(0)


def call(params):
    name, arguments = params["name"], params.get("arguments", {})
    if name == "pid":
        return text(str(os.getpid()))
    if name == "variable":
        return text(os.environ.get(arguments["name"], ""))
    if name == "echo":
        return text(json.dumps(arguments, sort_keys=True))
    if name == "wait":
        while not os.path.exists(arguments["path"]):
            time.sleep(0.01)
        return text("waited")
    if name == "die":
        os._exit(3)
    if name == "announce":
        for kind in ("tools", "resources", "prompts"):
            send({"method": f"notifications/{kind}/list_changed"})
    if name == "progress":
        token = params.get("_meta", {}).get("progressToken")
        for number in range(3):
            send({"method": "notifications/progress", "params": {"progressToken": token, "progress": number + 1, "total": 3}})
    if name == "ask":
        return ask()
    if name == "mixed":
        return MIXED
    if name == "fail":
        return {**text("it does not work"), "isError": True}
    return text(name)


def read(uri):
    entries = lists()
    known = [entry["uri"] for entry in entries.get("resources", [])]
    prefixes = [entry["uriTemplate"].partition("{")[0] for entry in entries.get("templates", [])]
    if uri not in known and not uri.startswith(tuple(prefixes) or ("\0",)):
        raise LookupError("Resource not found: " + uri)
    return {"contents": [{"uri": uri, "text": "content of " + uri}]}


def answer(message):
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}, "resources": {"listChanged": True}, "prompts": {"listChanged": True}}
        return {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": {"name": "toy", "version": "1"}}
    if method in LISTS:
        key, member = LISTS[method]
        return {member: lists().get(key, [])}
    if method == "tools/call":
        return call(params)
    if method == "resources/read":
        return read(params["uri"])
    if method == "prompts/get":
        return {"messages": [{"role": "user", "content": {"type": "text", "text": "prompt " + params["name"]}}]}
    return {}


def main():
    with open(STATE + ".starts", "a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            try:
                send({"id": message["id"], "result": answer(message)})
            except LookupError as problem:
                send({"id": message["id"], "error": {"code": -32002, "message": str(problem)}})


if __name__ == "__main__":
    main()
