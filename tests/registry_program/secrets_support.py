"""SecretsTest: a test case whose servers need the secret TOKEN. Import harness first."""
import os
import subprocess

from harness import MODERN, PROGRAM, RegistryTest, tool, until

VALUE = "correct-horse-battery-staple-71"
OWN = "tangerine-otter-of-ann-4408"
OTHERS = "marble-lantern-of-bob-9135"
TOOLS = [tool("pid"), tool("variable"), tool("wait")]
REFERENCE = {"env": {"TOKEN": "${secret:TOKEN}"}}


def run(*args, value=None, environment=None):
    """Runs a command of the program, with `value` on stdin."""
    return subprocess.run([PROGRAM, *args], input=value, capture_output=True, text=True, timeout=60, env={**os.environ, **(environment or {})}, check=False)


class SecretsTest(RegistryTest):
    def secret(self, gateway, value, name="TOKEN", **members):
        return gateway.create("/secrets", {"name": name, "value": value, **members})

    def server(self, gateway, name="toy", config=None, **members):
        """Adds a server that needs the secret TOKEN, without waiting for its lists."""
        return gateway.create("/mcp/servers", self.toy(name, TOOLS, config=config or REFERENCE, **members))

    def call(self, mcp, name, arguments=None):
        return mcp.text(name, **(arguments or {}))

    def token_at(self, gateway, token, server="toy", era=MODERN):
        """Returns what the process of a client has in its environment."""
        mcp = gateway.mcp(token=token, era=era)
        name = f"{server}__variable"
        self.assertTrue(until(lambda: name in mcp.tools(), 20), gateway.log[-10:])
        return self.call(mcp, name, {"name": "TOKEN"})
