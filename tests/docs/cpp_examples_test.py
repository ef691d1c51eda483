#!/usr/bin/env python3
"""The C++ examples in README.md and docs/*.md compile.

    cpp_examples_test.py COMPILER [TEST…]

Complete programs are compiled one by one. The others are fragments: each becomes a function, or a coroutine where it has
co_await, after the definitions that it begins with. NAMES declares what the text around a fragment describes. tests/install
compiles and runs the program of the README with the installed library."""
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

from examples import find_examples

COMPILER = sys.argv.pop(1)
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INCLUDES = ["blocking.hpp", "connection/connect.hpp", "gateway/gateway_server.hpp", "http/authenticator.hpp", "http/server.hpp", "json/schema.hpp",
            "mcp/client.hpp", "mcp/serve.hpp", "mcp/typed.hpp", "mcp/blocking.hpp", "pool/pool.hpp", "process/child.hpp"]  # fmt: skip
# In scope of every fragment.
COMMON = """
#include <chrono>
#include <iostream>
using namespace fairlead;
using namespace std::chrono_literals;
extern Loop& loop;
int report(const Error& error);
"""
NAMES = {
    "docs/gateway.md": "extern gateway::Config config; extern std::shared_ptr<http::Authenticator> tokens; "
                       "extern Result<std::shared_ptr<gateway::GatewayServer>> server;",
    "docs/http.md": "extern mcp::Server server; extern std::string token; extern http::ServerOptions options;",
    "docs/json-schema.md": "extern std::string text, arguments; int tool_error(const std::string& message);",
    "docs/mcp.md": "extern mcp::Server server; struct RemoveArgs { std::string path; }; json::Raw schema(); struct ComputeArgs { int seconds; }; "
                   "BOOST_DESCRIBE_STRUCT(ComputeArgs, (), (seconds))",
    "docs/pool.md": {
        "auto pool": "extern rpc::Message request; extern pool::ForwardOptions options;",
        "options.openers": "extern pool::PoolOptions options; extern Loop other_loop; extern Connector connector;",
    },
}  # fmt: skip
CODE = re.compile(r"[;{]\s*(//.*)?$", re.M)


def is_cpp(example):
    return example.language == "cpp" or example.language == "" and bool(re.search(r"\w::\w|;$", example.text)) and bool(CODE.search(example.text))


def all_examples():
    for page in ["README.md", *sorted(os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, "docs", "*.md")))]:
        with open(os.path.join(ROOT, page), encoding="utf-8") as file:
            yield from filter(is_cpp, find_examples(page, file.read()))


def names_of(example):
    """Returns the declarations for a fragment: those of its page, or those of its beginning."""
    names = NAMES.get(example.file, "")
    return names if isinstance(names, str) else next(names[key] for key in names if example.text.startswith(key))


def function_of(example):
    """Returns the fragment as a function, in a namespace of its own."""
    lines = [line for line in example.text.splitlines() if line.strip() != "…"]
    definitions, body = [], lines
    if re.match(r"\S.*\) \{$", lines[0]):
        end = lines.index("}") + 1
        definitions, body = lines[:end], lines[end:]
    result, last = ("Task<int>", "co_return 0;") if any("co_await" in line for line in body) else ("int", "return 0;")
    name = re.sub(r"\W", "_", example.place)
    return "\n".join([f"namespace {name} {{", names_of(example), f'#line {example.line + 1} "{example.file}"', *definitions,
                      f"[[maybe_unused]] {result} run() {{", f'#line {example.line + 1 + len(definitions)} "{example.file}"', *body, last, "}", "}", ""])  # fmt: skip


def compiler_errors(text):
    """Returns what the compiler says about a source file; empty if it compiles."""
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "example.cpp")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run([COMPILER, "-std=c++23", "-fsyntax-only", "-w", "-I", os.path.join(ROOT, "include"), path], capture_output=True, text=True)
        return done.stderr if done.returncode != 0 else ""


class CppExamplesTest(unittest.TestCase):
    def test_programs_compile(self):
        programs = [example for example in all_examples() if "int main(" in example.text and "#include" in example.text]
        self.assertGreater(len(programs), 3)
        for example in programs:
            self.assertEqual(compiler_errors(f'#line {example.line + 1} "{example.file}"\n' + example.text), "", example.place)

    def test_parts_of_example_programs_are_as_in_the_programs(self):
        parts = [example for example in all_examples() if "int main(" in example.text and "#include" not in example.text]
        self.assertGreater(len(parts), 0)
        programs = []
        for path in glob.glob(os.path.join(ROOT, "examples", "*.cpp")):
            with open(path, encoding="utf-8") as file:
                programs.append(file.read())
        for example in parts:
            self.assertTrue(any(example.text in program for program in programs), f"{example.place} is not a part of a program in examples/")

    def test_fragments_compile(self):
        fragments = [example for example in all_examples() if "int main(" not in example.text]
        self.assertGreater(len(fragments), 12)
        includes = "".join(f"#include <fairlead/{name}>\n" for name in INCLUDES)
        self.assertEqual(compiler_errors(includes + COMMON + "".join(map(function_of, fragments))), "")

    def test_errors_are_found(self):
        (example,) = find_examples("x.md", "```cpp\nconst int x = unknown();\n…\n```\n")
        self.assertTrue(is_cpp(example))
        self.assertIn("x.md:2", compiler_errors("template <class T> class Task;\n" + function_of(example)))


if __name__ == "__main__":
    unittest.main()
