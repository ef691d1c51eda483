#!/usr/bin/env python3
"""Checks every #include in include/fairlead/<layer>/ and src/<layer>/.

Fails if a file includes a layer that is neither its own nor one that LAYERS permits.

    layers.py [--self-test] [ROOT]
"""
import pathlib
import re
import sys
import tempfile

# The layers, lowest first, each with the other layers that it may include.
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
    "sql": ["base", "loop"],
    "search": ["base", "json", "loop"],
    "registry": ["base", "json", "rpc", "loop", "peer", "process", "connection", "protocol", "http", "transport", "mcp", "pool", "sql"],
    "clients": ["base", "json", "rpc", "loop", "peer", "process", "connection", "protocol", "http", "transport", "mcp", "pool", "sql", "registry"],
    "packages": ["base", "json", "rpc", "loop", "peer", "process", "connection", "protocol", "http", "transport", "mcp", "pool", "sql", "registry", "clients"],
    "gateway": ["base", "json", "rpc", "loop", "peer", "process", "connection", "protocol", "http", "transport", "mcp", "pool", "registry", "search"],
    "admin": ["base", "json", "rpc", "loop", "peer", "process", "connection", "protocol", "http", "transport", "mcp", "pool", "registry", "search", "clients", "packages", "gateway", "sql"],
    "cli": ["base", "json", "rpc", "loop", "peer", "process", "connection", "protocol", "http", "transport", "mcp", "pool", "registry", "search", "clients", "packages", "gateway", "admin"],
}

# Public headers directly in include/fairlead/, for the convenience of users, and the layers that own them.
TOP_HEADERS = {"blocking.hpp": "transport"}

# The only third-party headers that public headers may include. They are small, and users describe their own types with them.
PUBLIC_THIRD_PARTY = ("boost/describe", "boost/mp11")

# Third-party headers and the layers whose source files may include them.
THIRD_PARTY = {
    "boost/asio": [],
    "boost/intrusive": list(LAYERS),
    "CLI/": ["cli"],
    "openssl/": ["http", "mcp", "process", "registry", "packages", "admin"],
    "boost/beast": [],
    "toml++": ["json"],
    "boost/describe": ["mcp"],
    "boost/mp11": ["mcp"],
    "libpq": ["sql"],
    "sqlite3": ["sql", "search"],
    "yaml.h": ["json", "clients"],
    "zlib.h": ["packages"],
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Headers of the C and C++ standard libraries and of the kernel have no directory or one of these. Third-party headers without a
# directory are in THIRD_PARTY.
SYSTEM_DIRS = ("sys/", "linux/", "netinet/", "arpa/", "asm/", "bits/", "net/")


def is_system(path):
    return "/" not in path or path.startswith(SYSTEM_DIRS)


def layer_of_include(path):
    """Returns the layer that an included path belongs to: json for "fairlead/json/raw.hpp" and "json/raw_impl.hpp"."""
    if path.startswith("fairlead/") and path.count("/") == 1:
        return TOP_HEADERS.get(path.removeprefix("fairlead/"))
    parts = path.removeprefix("fairlead/").split("/")
    return parts[0] if len(parts) > 1 and parts[0] in LAYERS else None


def include_problem(layer, public, quote, path, is_relative):
    """Returns the problem with one #include, or None. `is_relative`: the path exists relative to the including file."""
    target = layer_of_include(path)
    if path.startswith("fairlead/") and target is None:
        return f"{path} belongs to no layer"
    if target is not None:
        if public and not path.startswith("fairlead/"):
            return f"{path} is a private header, but this header is public"
        if target != layer and target not in LAYERS[layer]:
            return f"{layer} must not include {target} ({path})"
        return None
    if quote == '"' and is_relative:
        return f"{path} is a private header, but this header is public" if public else None
    users = next((users for prefix, users in THIRD_PARTY.items() if path.startswith(prefix)), None)
    if users is None and is_system(path):
        return None
    if public and not path.startswith(PUBLIC_THIRD_PARTY):
        return f"third-party header {path} in a public header"
    if users is None:
        return f"unknown third-party header {path}: add it to THIRD_PARTY in tools/lint/layers.py"
    return None if layer in users else f"{layer} must not use {path}"


def source_files(root):
    """Yields every source file, its layer (None if the layer is unknown), and whether it is a public header."""
    for file in sorted((root / "include/fairlead").glob("*.hpp")):
        yield file, TOP_HEADERS.get(file.name), True
    for top, public in (("include/fairlead", True), ("src", False)):
        for directory in sorted(p for p in (root / top).glob("*") if p.is_dir()):
            layer = directory.name if directory.name in LAYERS else None
            for file in sorted(f for f in directory.rglob("*") if f.suffix in (".hpp", ".h", ".cpp", ".c")):
                yield file, layer, public


def check(root):
    """Returns all problems of a tree as "file:line: text", and the number of files checked."""
    problems, count = [], 0
    for file, layer, public in source_files(root):
        count += 1
        name = file.relative_to(root)
        if layer is None:
            problems.append(f"{name}:1: file belongs to no layer: add the layer to LAYERS or the header to TOP_HEADERS in tools/lint/layers.py")
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            quote, path = match.groups()
            problem = include_problem(layer, public, quote, path, (file.parent / path).exists())
            if problem:
                problems.append(f"{name}:{number}: {problem}")
    return problems, count


SELF_TEST = [  # file, its only include, whether that include is a problem
    ("include/fairlead/json/a.hpp", '"fairlead/base/error.hpp"', False),
    ("include/fairlead/json/b.hpp", '"fairlead/rpc/message.hpp"', True),
    ("include/fairlead/json/c.hpp", "<boost/asio.hpp>", True),
    ("include/fairlead/peer/d.hpp", "<boost/asio/io_context.hpp>", True),
    ("include/fairlead/peer/e.hpp", "<string_view>", False),
    ("include/fairlead/peer/f.hpp", '"peer/secret.hpp"', True),
    ("src/loop/a.cpp", "<boost/asio/post.hpp>", True),
    ("src/loop/b.cpp", '"fairlead/json/raw.hpp"', True),
    ("src/http/c.cpp", "<boost/asio/buffer.hpp>", True),
    ("src/process/d.cpp", '"fairlead/peer/peer.hpp"', True),
    ("src/process/e.cpp", "<sys/wait.h>", False),
    ("src/connection/f.cpp", '"process/spawn.hpp"', False),
    ("src/cli/g.cpp", "<CLI/CLI.hpp>", False),
    ("src/cli/h.cpp", "<nlohmann/json.hpp>", True),
    ("src/unknown/i.cpp", "<string>", True),
    ("include/fairlead/blocking.hpp", '"fairlead/peer/peer.hpp"', False),
    ("include/fairlead/unknown.hpp", "<string>", True),
    ("src/peer/j.cpp", '"fairlead/blocking.hpp"', True),
    ("src/cli/k.cpp", '"fairlead/blocking.hpp"', False),
    ("src/http/l.cpp", '"fairlead/protocol/revision.hpp"', True),
    ("src/http/m.cpp", '"transport/ticker.hpp"', True),
    ("src/transport/n.cpp", '"http/client.hpp"', False),
    ("src/sql/o.cpp", "<sqlite3.h>", False),
    ("src/sql/p.cpp", "<libpq-fe.h>", False),
    ("src/registry/q.cpp", "<sqlite3.h>", True),
    ("src/registry/r.cpp", "<libpq-fe.h>", True),
    ("include/fairlead/sql/s.hpp", "<sqlite3.h>", True),
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
        print(f"self-test: wrong result for {name}")
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
