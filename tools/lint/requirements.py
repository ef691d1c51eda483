#!/usr/bin/env python3
"""Fails if a file refers to a requirement that docs/requirements.md does not define.

    requirements.py [ROOT]
"""
import pathlib
import re
import sys

FOLDERS = ("src", "include", "tests", "fuzz", "bench", "examples", "docs")
SUFFIXES = {".cpp", ".hpp", ".c", ".h", ".py", ".mjs", ".sh", ".md", ".wire"}
NUMBER = re.compile(r"\bR(?:[1-9]|1[0-9])\.[1-9][0-9]?\b")


def main(root):
    defined = set(NUMBER.findall((root / "docs/requirements.md").read_text()))
    unknown, tested = [], set()
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SUFFIXES or "node_modules" in path.parts:
                continue
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                found = NUMBER.findall(line)
                unknown += [f"{path.relative_to(root)}:{number}: {name} is not defined in docs/requirements.md" for name in found if name not in defined]
                if folder == "tests":
                    tested.update(found)
    print("\n".join(unknown or [f"{len(defined)} requirements, tests refer to {len(tested)} of them"]))
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()))
