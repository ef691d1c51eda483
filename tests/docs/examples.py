"""Finds the examples of a Markdown file: blocks between ``` and indented blocks."""
import re
from dataclasses import dataclass

SHELL = ("sh", "bash", "console")
# How an indented block begins that is a shell example.
COMMAND = re.compile(r"(\$ |(fairlead|curl|make|cmake|ctest|export|cat|g\+\+|sqlite3|python3) |(tests|tools)/|[a-z_]+=\S)")


@dataclass
class Example:
    file: str
    line: int
    language: str
    text: str

    @property
    def place(self):
        return f"{self.file}:{self.line}"

    def is_shell(self):
        return self.language in SHELL

    def commands(self):
        """Returns pairs of commands and their expected output, which is None where the block does not print it."""
        lines = self.text.splitlines()
        if not any(line.startswith("$ ") for line in lines):
            return [(self.text, None)]
        pairs = []
        for line in lines:
            if line.startswith("$ "):
                pairs.append([line[2:], ""])
            elif pairs and pairs[-1][1] == "" and line.startswith("> "):
                pairs[-1][0] += "\n" + line[2:]
            elif pairs:
                pairs[-1][1] += line + "\n"
        return [(command, output) for command, output in pairs]


def _dedent(lines, width):
    return "".join(line[width:] + "\n" if line.strip() else "\n" for line in lines)


def find_examples(name, text):
    """Returns the examples in order. An indented block is a shell example if it begins with a command, TOML if it begins with a
    key, and otherwise of no language."""
    examples, lines, at = [], text.splitlines(), 0
    in_list = False
    while at < len(lines):
        line = lines[at]
        fence = re.match(r"^( *)(```+)\s*(\w*)", line)
        if fence:
            in_list = in_list and bool(fence[1])
            end = at + 1
            while end < len(lines) and not lines[end].strip().startswith(fence[2]):
                end += 1
            examples.append(Example(name, at + 1, fence[3], _dedent(lines[at + 1:end], len(fence[1]))))
            at = end + 1
            continue
        if re.match(r"^ *([-*]|\d+\.) ", line):
            in_list = True
        elif line and not line.startswith(" "):
            in_list = False
        if line.startswith("    ") and not in_list and (at == 0 or not lines[at - 1].strip()):
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            body = _dedent(lines[at:end], 4).rstrip() + "\n"
            language = "sh" if COMMAND.match(body) else "toml" if re.match(r"\[[\w.-]+\]$|[a-z_]+ = [^;]*$", body.split("\n")[0]) else ""
            examples.append(Example(name, at + 1, language, body))
            at = end
            continue
        at += 1
    return examples
