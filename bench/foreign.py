"""Servers of the SDKs of other languages: the fixtures of tests/interop/peers, in the versions of tests/interop/versions.json."""
import os
import pathlib
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "interop", "peers"))

import install
from table import PEERS

NAMES = {"mcp-1": "Python SDK 1.x", "mcp-2": "Python SDK 2.x", "fastmcp": "fastmcp", "go": "Go SDK", "rust": "Rust SDK"}


def selected(prefixes):
    """Returns whether a system of a peer is measured with the options `--system`: all systems, or those with one of the prefixes."""
    return not prefixes or any(name.startswith(prefix) or prefix.startswith(name) for name in NAMES.values() for prefix in prefixes)


class Foreign:
    """Installs the peers into BUILD/peers. `servers` has the commands; `missing` has the reason for each peer that is not tried."""

    def __init__(self, build, wanted=True):
        root = pathlib.Path(build).resolve() / "peers"
        self.servers, self.missing = {}, {}
        for peer, name in NAMES.items() if wanted else ():
            install.install(PEERS[peer].installation, root, release=True)
            try:
                self.servers[name] = tuple(install.programs(PEERS[peer], root, release=True)[0])
            except install.Absent as reason:
                self.missing[name] = f"not tried here: {reason}"
            except install.Broken as reason:
                self.missing[name] = f"does not build: {reason}"

    def python(self, name):
        """Returns the command of the interpreter with the packages of a Python peer, or None if the peer is missing."""
        return self.servers[name][:-1] if name in self.servers else None
