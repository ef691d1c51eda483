"""RegistryTest: a test case with a gateway that has a database, its admin API, and servers that are toy_server.py. Import this
module first: it removes the first argument of the test, `NAME_test.py PROGRAM [TEST…]`."""
import json
import os
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))

from gateway import DEADLINE, META, PROGRAM, SANITIZED, Gateway, GatewayTest, enter_namespace, until  # also imported from here by the tests
from client import LEGACY, MODERN, Answer, EventStream, McpClient, RpcError, bearer, request  # likewise

ADMIN_TOKEN = "administrator-of-the-tests-5c0ffee5"
UNKNOWN_ID = "01890a5d-ac96-774b-bcce-b302099a8057"
ANY = object()  # the token of the administrator


def tool(name, description="A tool.", **members):
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **members}


TOOLS = [tool("pid", annotations={"readOnlyHint": True}), tool("echo"), tool("wait")]


class RegistryGateway(Gateway):
    """A gateway with a database. `token` is the administrator's, or None to start without FAIRLEAD_ADMIN_TOKEN."""

    def __init__(self, word, *args, token=ADMIN_TOKEN, environment=None):
        self.token = token
        environment = {**(environment or {}), **({"FAIRLEAD_ADMIN_TOKEN": token} if token else {})}
        super().__init__(None, word, *args, environment=environment)

    def request(self, method, path, body=None, token=ANY, headers=None, timeout=DEADLINE):
        """Sends a request of the admin API, with `body` as JSON unless it is bytes."""
        headers = {**bearer(self.token if token is ANY else token), **(headers or {})}
        if body is not None:
            headers.setdefault("Content-Type", "application/merge-patch+json" if method == "PATCH" else "application/json")
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        return request(self.port, method, path, data, headers, timeout)

    def get(self, path, **options):
        """Returns the JSON of a successful GET."""
        answer = self.request("GET", path, **options)
        if answer.status != 200:
            raise AssertionError(f"GET {path}: {answer}")
        return answer.json()

    def items(self, path, **options):
        """Returns the items of all pages of a list."""
        found, cursor = [], ""
        while True:
            page = self.get(path + (("&" if "?" in path else "?") + "cursor=" + cursor if cursor else ""), **options)
            found += page["items"]
            cursor = page.get("nextCursor")
            if not cursor:
                return found

    def create(self, path, body, **options):
        """Returns the row that a POST has created."""
        answer = self.request("POST", path, body, **options)
        if answer.status != 201:
            raise AssertionError(f"POST {path}: {answer}")
        return answer.json()

    def patch(self, path, body, **options):
        answer = self.request("PATCH", path, body, **options)
        if answer.status != 200:
            raise AssertionError(f"PATCH {path}: {answer}")
        return answer.json()

    def set_config(self, key, value):
        answer = self.request("PUT", f"/config/{key}", {"value": value})
        if answer.status != 200:
            raise AssertionError(f"PUT {key}: {answer}")
        return answer.json()

    def mcp(self, path="/mcp", token=ANY, era=MODERN):
        return McpClient(self.port, path, self.token if token is ANY else token, era)

    def stream(self, path, token=ANY, headers=None, **options):
        """Opens a stream of events."""
        return EventStream(self.port, path, {**bearer(self.token if token is ANY else token), **(headers or {})}, **options)

    def server_processes(self, name):
        """Returns the PIDs of the processes of a server, from the list of processes."""
        return [row["pid"] for row in self.items("/processes") if row.get("server") == name and row.get("pid")]


class RegistryTest(GatewayTest):
    database = None  # the address of the database; None: a new SQLite file

    def start(self, *args, token=ADMIN_TOKEN, environment=None, database=None):
        """Starts a gateway with the database of this test."""
        state = {"XDG_STATE_HOME": self.path("state"), "PYTHONDONTWRITEBYTECODE": "1"}
        address = database or self.database or "sqlite:" + self.path("fairlead.db")
        gateway = RegistryGateway(self.word, "--db", address, *args, token=token, environment={**state, **(environment or {})})
        self.gateways.append(gateway)
        return gateway

    def state_file(self, name="toy"):
        return self.path(f"{name}.json")

    def write_state(self, name="toy", tools=TOOLS, **lists):
        """Sets the lists of a toy server."""
        path = self.state_file(name)
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump({"tools": tools, **lists}, file)
        os.replace(path + ".new", path)

    def starts(self, name="toy"):
        """Returns how often processes of a toy server have been started."""
        path = self.state_file(name) + ".starts"
        if not os.path.exists(path):
            return 0
        with open(path, encoding="utf-8") as file:
            return len(file.readlines())

    def toy(self, name="toy", listed=TOOLS, lists=None, config=None, **members):
        """Returns the body of a POST that adds a toy server."""
        self.write_state(name, listed, **(lists or {}))
        arguments = [os.path.join(HERE, "toy_server.py"), self.state_file(name)]
        return {
            "name": name, "description": f"The server {name}.", "domain": "testing", "transport": "stdio",
            "config": {"transport": "stdio", "command": sys.executable, "args": arguments, "env": {}, **(config or {})}, **members,
        }  # fmt: skip

    def add(self, gateway, name="toy", listed=TOOLS, lists=None, config=None, **members):
        """Adds a toy server, and waits until its first tool that is shown is listed to administrators."""
        row = gateway.create("/mcp/servers", self.toy(name, listed, lists, config, **members))
        if row["enabled"]:
            self.wait_until_listed(gateway, row)
        return row

    def wait_until_listed(self, gateway, row):
        path = f"/mcp/servers/{row['id']}/tools"
        self.assertTrue(until(lambda: gateway.request("GET", path).json().get("items")), gateway.log[-10:])

    def user(self, gateway, name, role="user", **token):
        """Creates a user and a token. Returns the row of the user, and the token."""
        row = gateway.create("/users", {"name": name, "role": role})
        return row, self.token(gateway, row, **token)

    def token(self, gateway, user, **members):
        return gateway.create("/tokens", {"user": user["id"], **members})["token"]

    def assert_problem(self, answer, status, code=None, pointer=None):
        """Checks that the response is a problem document with this status, code, and pointer to a member of the request."""
        self.assertEqual(answer.status, status, answer)
        self.assertEqual(answer.headers.get_content_type(), "application/problem+json", answer)
        document = answer.json()
        self.assertEqual(document["status"], status)
        for member in ("type", "title"):
            self.assertIsInstance(document.get(member), str, answer)
        self.assertTrue(document.get("code"), answer)
        if code is not None:
            self.assertEqual(document["code"], code, answer)
        if pointer is not None:
            self.assertIn(pointer, [error["pointer"] for error in document["errors"]], answer)
        return document

    def assert_row_equal(self, answer, row):
        self.assertEqual({**answer, "updatedAt": None}, {**row, "updatedAt": None})

    def in_background(self, function, *args):
        """Runs the function in a thread. Returns a function that waits for it, and returns its result or raises its exception."""
        outcome = {}

        def run():
            try:
                outcome["result"] = function(*args)
            except BaseException as problem:  # raised again by the caller
                outcome["problem"] = problem

        thread = threading.Thread(target=run, daemon=True)
        thread.start()

        def join(seconds=DEADLINE):
            thread.join(seconds)
            if "problem" in outcome:
                raise outcome["problem"]
            if "result" not in outcome:
                raise AssertionError(f"not finished within {seconds} s")
            return outcome["result"]

        return join
