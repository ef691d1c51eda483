#!/usr/bin/env python3
"""Compiles the usage examples in the comments of public headers.

    header_examples.py COMPILER [ROOT]      checks the headers of ROOT
    header_examples.py --self-test

An example is a comment of lines indented by three spaces after a line that ends in "Example:". Each one is put into a
function, or into a coroutine where it has co_await, with the names of tests/lint/header_examples.hpp in scope. Leading
declarations (struct, BOOST_DESCRIBE_STRUCT, inline) are put before that function. An indented line of a header's comment that
looks like code and belongs to no example is also an error, so that no example is left unchecked by accident.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

CODE = re.compile(r"^ *//   .*[;{}]$")
DECLARATION = re.compile(r"^(struct|inline|BOOST_DESCRIBE_STRUCT|template)\b")


def examples_of(text):
    """Returns the examples of a header, each as (line number, lines), and the numbers of stray lines of code."""
    examples, stray, current = [], [], None
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r"^ *//(.*)$", line)
        comment = match.group(1) if match else None
        if comment is not None and comment.rstrip().endswith("Example:"):
            current = (number, [])
        elif current and comment is not None and comment.startswith("   "):
            current[1].append(comment[3:])
        else:
            if current:
                examples.append(current)
                current = None
            if CODE.match(line):
                stray.append(number)
    if current:
        examples.append(current)
    return examples, stray


def source_of(header, number, lines):
    """Returns a function with the example as its body, after the declarations that the example begins with."""
    body = list(lines)
    declarations = []
    while body and (DECLARATION.match(body[0]) or declarations and body[0].startswith((" ", "}"))):
        declarations.append(body.pop(0))
    asynchronous = any("co_await" in line for line in body)
    name = re.sub(r"\W", "_", header) + "_%d" % number
    result = "Task<void>" if asynchronous else "Result<void>"
    end = "co_return;" if asynchronous else "return {};"
    line = '#line %d "' + header + '"'
    return "\n".join(["namespace %s {" % name, line % (number + 1), *declarations, "[[maybe_unused]] %s run() {" % result,
                      line % (number + 1 + len(declarations)), *body, end, "}", "}", ""])


def check(compiler, root):
    problems, sources, includes = [], [], []
    for path in sorted((root / "include").rglob("*.hpp")):
        header = str(path.relative_to(root / "include"))
        examples, stray = examples_of(path.read_text())
        problems += ["include/%s:%d: code in a comment outside an example" % (header, line) for line in stray]
        for number, lines in examples:
            if not lines:
                problems.append("include/%s:%d: example without code" % (header, number))
            sources.append(source_of("include/" + header, number, lines))
        if examples:
            includes.append('#include "%s"' % header)
    text = "\n".join([*includes, '#include "lint/header_examples.hpp"', "namespace fairlead {", *sources, "}"])
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory) / "examples.cpp"
        file.write_text(text)
        compilation = subprocess.run([compiler, "-std=c++23", "-fsyntax-only", "-Wall", "-Wno-unused", "-I%s" % (root / "include"),
                               "-I%s" % (root / "tests"), str(file)], capture_output=True, text=True)
    if compilation.returncode != 0:
        problems.append(compilation.stderr)
    return problems, len(sources)


def self_test():
    text = "// Thing: x.\n//\n// Example:\n//   int a = 1;\n//   use(a);\n//\n// More.\n//   stray();\n"
    examples, stray = examples_of(text)
    assert examples == [(3, ["int a = 1;", "use(a);"])], examples
    assert stray == [8], stray
    source = source_of("x.hpp", 3, ["struct A {", "  int a;", "};", "co_await f();"])
    assert source.index("int a;") < source.index("Task<void> run()") < source.index("co_await f();") < source.index("co_return;")
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        (root / "include").mkdir()
        (root / "tests/lint").mkdir(parents=True)
        (root / "tests/lint/header_examples.hpp").write_text(
            "template <class T> struct Result {};\ntemplate <> struct Result<void> {};\n")
        (root / "include/x.hpp").write_text("// Example:\n//   int a = 1;\n")
        assert check("c++", root) == ([], 1)
        (root / "include/x.hpp").write_text("// Example:\n//   int a = unknown;\n")
        problems, _ = check("c++", root)
        assert "x.hpp:2" in problems[0] and "unknown" in problems[0], problems


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ".").resolve()
    problems, count = check(sys.argv[1], root)
    for problem in problems:
        print(problem)
    print("%d examples" % count)
    return 1 if problems or count == 0 else 0


sys.exit(main())
