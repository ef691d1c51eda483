#!/usr/bin/env python3
"""Reads every #include of include/fairlead/<layer>/ and src/<layer>/ and fails when one points up or sideways.

    layers.py [--self-test] [ROOT]
"""
import pathlib
import re
import sys
import tempfile

# The house, bottom up: a layer and the layers it may include (beside itself).
LAYERS = {
    "base": [],
    "json": ["base"],
    "rpc": ["base", "json"],
    "protocol": ["base", "json", "rpc"],
    "loop": ["base"],
    "peer": ["base", "json", "rpc", "loop"],
    "process": ["base", "json", "loop"],
    "connection": ["base", "json", "rpc", "loop", "peer", "process"],
    "http": ["base", "json", "rpc", "loop", "peer", "process", "connection"],
    "transport": ["base", "json", "rpc", "loop", "peer", "process", "connection", "protocol", "http"],
    "mcp": ["base", "json", "rpc", "loop", "peer", "process", "connection", "protocol", "http", "transport"],
    "pool": ["base", "json", "rpc", "loop", "peer", "process", "connection", "protocol", "http", "transport", "mcp"],
    "gateway": ["base", "json", "rpc", "loop", "peer", "process", "connection", "protocol", "http", "transport", "mcp", "pool"],
    "cli": ["base", "json", "rpc", "loop", "peer", "process", "connection", "protocol", "http", "transport", "mcp", "pool", "gateway"],
}

# Public headers that lie above the layers' directories for users' sake, and whose they are.
TOP_HEADERS = {"blocking.hpp": "transport"}

# Public headers include no third-party header, but for this one of light weight: users describe their own types with it.
PUBLIC_THIRD_PARTY = ("boost/describe", "boost/mp11")

# Third-party headers: who may include them, in sources.
THIRD_PARTY = {
    "boost/asio": ["loop", "peer", "process", "connection", "cli"],
    "boost/intrusive": list(LAYERS),
    "CLI/": ["cli"],
    "openssl/": ["http", "mcp", "process"],
    "boost/beast": ["http"],
    "toml++": ["gateway", "cli"],
    "boost/describe": ["mcp"],
    "boost/mp11": ["mcp"],
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Headers of the C and C++ libraries and of the kernel: no directory, or one of these.
SYSTEM_DIRS = ("sys/", "linux/", "netinet/", "arpa/", "asm/", "bits/", "net/")


def is_system(path):
    return "/" not in path or path.startswith(SYSTEM_DIRS)


def layer_of_include(path):
    """The layer an include names: "fairlead/json/raw.hpp" and "json/raw_impl.hpp" are both json's."""
    if path.startswith("fairlead/") and path.count("/") == 1:
        return TOP_HEADERS.get(path.removeprefix("fairlead/"))
    parts = path.removeprefix("fairlead/").split("/")
    return parts[0] if len(parts) > 1 and parts[0] in LAYERS else None


def problem_of(layer, public, quote, path, beside):
    """What is wrong with one #include, or None. `beside` says whether the file lies next to the one that includes it."""
    target = layer_of_include(path)
    if path.startswith("fairlead/") and target is None:
        return f"{path} belongs to no layer"
    if target is not None:
        if public and not path.startswith("fairlead/"):
            return f"{path} is private, and this header is not"
        if target != layer and target not in LAYERS[layer]:
            return f"{layer} must not know {target} ({path})"
        return None
    if quote == '"' and beside:
        return f"{path} is private, and this header is not" if public else None
    if is_system(path):
        return None
    if public and not path.startswith(PUBLIC_THIRD_PARTY):
        return f"third-party {path} in a public header"
    for prefix, users in THIRD_PARTY.items():
        if path.startswith(prefix):
            return None if layer in users else f"{layer} must not use {prefix} ({path})"
    return f"third-party {path} is nobody's: name it in THIRD_PARTY of tools/lint/layers.py"


def files_of(root):
    """Every source file with its layer, and None for a layer that is unheard of."""
    for file in sorted((root / "include/fairlead").glob("*.hpp")):
        yield file, TOP_HEADERS.get(file.name), True
    for top, public in (("include/fairlead", True), ("src", False)):
        for directory in sorted(p for p in (root / top).glob("*") if p.is_dir()):
            layer = directory.name if directory.name in LAYERS else None
            for file in sorted(f for f in directory.rglob("*") if f.suffix in (".hpp", ".h", ".cpp", ".c")):
                yield file, layer, public


def check(root):
    """All problems of a tree as "file:line: text", and the number of files read."""
    problems, count = [], 0
    for file, layer, public in files_of(root):
        count += 1
        name = file.relative_to(root)
        if layer is None:
            problems.append(f"{name}:1: of no layer: name it in LAYERS or TOP_HEADERS of tools/lint/layers.py")
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            quote, path = found.groups()
            problem = problem_of(layer, public, quote, path, (file.parent / path).exists())
            if problem:
                problems.append(f"{name}:{number}: {problem}")
    return problems, count


SELF_TEST = [  # file, its one include, whether that is a problem
    ("include/fairlead/json/a.hpp", '"fairlead/base/error.hpp"', False),
    ("include/fairlead/json/b.hpp", '"fairlead/rpc/message.hpp"', True),
    ("include/fairlead/json/c.hpp", "<boost/asio.hpp>", True),
    ("include/fairlead/peer/d.hpp", "<boost/asio/io_context.hpp>", True),
    ("include/fairlead/peer/e.hpp", "<string_view>", False),
    ("include/fairlead/peer/f.hpp", '"peer/secret.hpp"', True),
    ("src/loop/a.cpp", "<boost/asio/post.hpp>", False),
    ("src/loop/b.cpp", '"fairlead/json/raw.hpp"', True),
    ("src/rpc/c.cpp", "<boost/asio/post.hpp>", True),
    ("src/process/d.cpp", '"fairlead/peer/peer.hpp"', True),
    ("src/process/e.cpp", "<sys/wait.h>", False),
    ("src/connection/f.cpp", '"process/spawn.hpp"', False),
    ("src/cli/g.cpp", "<CLI/CLI.hpp>", False),
    ("src/cli/h.cpp", "<nlohmann/json.hpp>", True),
    ("src/unheard/i.cpp", "<string>", True),
    ("include/fairlead/blocking.hpp", '"fairlead/peer/peer.hpp"', False),
    ("include/fairlead/unheard.hpp", "<string>", True),
    ("src/peer/j.cpp", '"fairlead/blocking.hpp"', True),
    ("src/cli/k.cpp", '"fairlead/blocking.hpp"', False),
    ("src/http/l.cpp", '"fairlead/protocol/revision.hpp"', True),
    ("src/http/m.cpp", '"transport/ticker.hpp"', True),
    ("src/transport/n.cpp", '"http/client.hpp"', False),
]


def self_test():
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        for name, include, _ in SELF_TEST:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(f"#pragma once\n#include {include}\n", encoding="utf-8")
        problems, _ = check(root)
    wrong = [name for name, _, bad in SELF_TEST if bad != any(p.startswith(name + ":") for p in problems)]
    for name in wrong:
        print(f"self-test: wrong about {name}")
    return wrong, len(SELF_TEST)


def main(arguments):
    if "--self-test" in arguments:
        problems, count = self_test()
    else:
        root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parents[2])
        problems, count = check(root)
        for problem in problems:
            print(problem)
    print(f"{count} files, {len(problems)} problems")
    return 1 if problems or count == 0 else 0


sys.exit(main(sys.argv[1:]))
