"""HostileTest: a test case with a well-behaved server and client beside the attacker, and checks of the cost of an attack."""
import json
import os
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))

from gateway import DEADLINE, META, PROGRAM, SANITIZED, GatewayTest, enter_namespace, until  # also imported from here by the tests

if SANITIZED:  # about ten times slower
    os.environ["TEST_FLOOD_BYTES"] = str(8 << 20)
MAX_TURN_MS = 50  # thread CPU time of one turn of the loop (R14.2)
MAX_GROWTH_MIB = 192  # resident memory during an attack: three frames of 10 MiB on each side, queues of 64 MiB, and the heap's slack


class OtherClient:
    """A client that calls the well-behaved server repeatedly during an attack. Every call must succeed."""

    def __init__(self, gateway, tool="good__go"):
        self.gateway = gateway
        self.tool = tool
        self.answered = 0
        self.problem = None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            while not self.stopping.is_set() or self.answered == 0:
                self.gateway.text(self.tool)
                self.answered += 1
        except Exception as problem:  # reported by the test
            self.problem = problem

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join(2 * DEADLINE)


class HostileTest(GatewayTest):
    def server(self, name, *attack, extra=""):
        """Returns the table of a server that is hostile_server.py with these arguments."""
        arguments = json.dumps([os.path.join(HERE, "hostile_server.py"), *attack])
        return f'[servers.{name}]\ncommand = "{sys.executable}"\nargs = {arguments}\n{extra}'

    def start(self, *tables, head="", args=(), environment=None):
        """Starts a gateway with a well-behaved server `good` and these [servers.…] tables. Waits for the lists of `good`."""
        gateway = self.start_gateway(head + self.server("good", "none") + "".join(tables), *args, environment=environment)
        self.assertTrue(until(lambda: "good__go" in gateway.tools()), gateway.log[-5:])
        return gateway

    def start_listed(self, table, tool="bad__go", **options):
        """Like start(), and waits until `tool` of the server in `table` is listed."""
        gateway = self.start(table, **options)
        self.assertTrue(until(lambda: tool in gateway.tools()), gateway.log[-5:])
        return gateway

    def assert_others_served_during(self, gateway, attack):
        """Runs `attack` while another client calls. Checks that its calls succeed, the growth of memory, and the longest turn."""
        before = gateway.resident_mib()
        with OtherClient(gateway) as other:
            result = attack()
        self.assertIsNone(other.problem, gateway.log[-5:])
        self.assertGreater(other.answered, 0)
        self.assertIsNone(gateway.process.poll(), gateway.log[-20:])
        if not SANITIZED:
            self.assertLess(gateway.resident_mib() - before, MAX_GROWTH_MIB)
            self.assert_loop_was_not_blocked(gateway)
        return result

    def assert_loop_was_not_blocked(self, gateway):
        loop = gateway.health()["loop"]
        self.assertLessEqual(loop["longest_turn_ms"], MAX_TURN_MS, [line for line in gateway.log if "turn" in line][-3:])

    def assert_logged(self, gateway, text):
        self.assertTrue(until(lambda: any(text in line for line in gateway.log)), f"not in the log: {text}")
