#!/usr/bin/env python3
"""readme_program.py DIRECTORY: writes the C++ program of README.md to calc.cpp, the commands that build and call it to
commands.sh, and what they print to `expected`."""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "docs"))

from examples import find_examples

with open(os.path.join(HERE, "..", "..", "README.md"), encoding="utf-8") as readme:
    examples = find_examples("README.md", readme.read())
at = next(i for i, example in enumerate(examples) if example.language == "cpp")
program, commands = examples[at : at + 2]
(expected,) = re.findall(r"# prints (.*)", commands.text)
for name, text in (("calc.cpp", program.text), ("commands.sh", commands.text), ("expected", expected + "\n")):
    with open(os.path.join(sys.argv[1], name), "w", encoding="utf-8") as file:
        file.write(text)
