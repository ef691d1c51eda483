#!/usr/bin/env python3
"""Fails if a file, a class or the functions of src/ are too large.

    sizes.py [--self-test] [ROOT]

- A source file has at most 500 lines.
- A class in gateway/ or pool/ has at most 20 methods and 12 data members. Constructors, destructors and operators are
  not counted, overloads count once. A struct without methods is plain data and may have any number of members.
- The functions in src/ have a median of at most 6 lines between their braces, and a 90th percentile of at most 20.
"""
import pathlib
import re
import sys

MAX_LINES = 500
MAX_METHODS = 20
MAX_MEMBERS = 12
MAX_MEDIAN = 6
MAX_PERCENTILE_90 = 20
FOLDERS = ("src", "include", "tests", "fuzz", "bench", "examples", "tools")
SUFFIXES = (".cpp", ".hpp", ".c", ".h", ".py", ".mjs", ".sh")
LAYERS = {"gateway", "pool"}

LITERAL = re.compile(r"//[^\n]*|/\*.*?\*/|R\"(\w*)\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'", re.S)
CLASS = re.compile(r"\b(class|struct)\s+(?:\[\[\w+\]\]\s*)?([\w:]+)\s*(?:final\s*)?(?::[^;{]*)?\{")
FUNCTION = re.compile(r"\)\s*(?:const|noexcept|override|final|mutable|->\s*[\w:<>&*,\s]+|:[^{};]*)*\s*\{")
NOT_COUNTED = re.compile(r"(using|friend|static_assert|enum|class|struct|typedef|static constexpr)\b|.*\boperator\b", re.S)


def strip_comments(text):
    """Returns the text without comments and directives, and with empty literals. Line breaks are kept."""
    def replace(match):
        found = match.group(0)
        return ("" if found.startswith("/") else '""') + "\n" * found.count("\n")

    return re.sub(r"^[ \t]*#.*$", "", LITERAL.sub(replace, text), flags=re.M)


def closing_brace(text, opening):
    """Returns the index of the brace that closes the one at `opening`."""
    depth = 0
    for i in range(opening, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return i
    return len(text)


def without_templates(text):
    """Returns the text without template arguments, which may contain parentheses."""
    text = text.replace("->", "")
    while (shorter := re.sub(r"<[^<>]*>", "", text)) != text:
        text = shorter
    return text


def declarations(body):
    """Returns the declarations directly inside a class body, without template arguments and the contents of braces."""
    found, current, depth = [], "", 0
    for c in body:
        depth += {"{": 1, "}": -1}.get(c, 0)
        # The body of a function ends a declaration; an initializer or a nested class is followed by a semicolon.
        is_function = "(" in without_templates(current).split("=")[0] and current.count("(") == current.count(")")
        ends_body = c == "}" and depth == 0 and is_function
        if ends_body or (c == ";" and depth == 0):
            found.append(current)
            current = ""
        elif depth == 0 and c != "}":
            current += c
    plain = (re.sub(r"\b(public|private|protected)\s*:|\[\[.*?\]\]", "", without_templates(text)) for text in found)
    return [text.strip() for text in plain if text.strip()]


def count_class_members(name, body):
    """Returns the number of methods and the number of data members of a class."""
    methods, members = set(), 0
    for declaration in declarations(body):
        if NOT_COUNTED.match(declaration):
            continue
        function = re.match(r"[^=]*?(~?\w+)\s*\(", declaration)
        if not function:
            members += 1
        elif function.group(1).lstrip("~") != name.split("::")[-1]:
            methods.add(function.group(1))
    return len(methods), members


def class_problems(text):
    text = strip_comments(text)
    for head in CLASS.finditer(text):
        kind, name = head.groups()
        methods, members = count_class_members(name, text[head.end():closing_brace(text, head.end() - 1)])
        if methods > MAX_METHODS:
            yield f"{name} has {methods} methods (at most {MAX_METHODS})"
        if members > MAX_MEMBERS and (kind == "class" or methods > 0):
            yield f"{name} has {members} data members (at most {MAX_MEMBERS})"


def function_lengths(text):
    """Yields the number of lines between the braces of each function that is not inside another one."""
    text = strip_comments(text)
    position = 0
    for match in FUNCTION.finditer(text):
        if match.start() >= position:
            position = closing_brace(text, match.end() - 1)
            yield max(1, text.count("\n", match.end(), position) - 1)


def function_problems(lengths):
    lengths = sorted(lengths)
    median, percentile_90 = lengths[len(lengths) // 2], lengths[len(lengths) * 9 // 10]
    print(f"{len(lengths)} functions: median {median} lines, 90th percentile {percentile_90} lines")
    if median > MAX_MEDIAN:
        yield f"the median function has {median} lines (at most {MAX_MEDIAN})"
    if percentile_90 > MAX_PERCENTILE_90:
        yield f"the 90th percentile of function lengths is {percentile_90} lines (at most {MAX_PERCENTILE_90})"


def check(root):
    problems, lengths = [], []
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*")):
        name = path.relative_to(root)
        if path.suffix not in SUFFIXES or "node_modules" in name.parts:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if (lines := text.count("\n")) > MAX_LINES:
            problems.append(f"{name}: {lines} lines (at most {MAX_LINES})")
        if name.parts[0] in ("src", "include") and LAYERS & set(name.parts):
            problems += [f"{name}: {problem}" for problem in class_problems(text)]
        if name.parts[0] == "src" and path.suffix == ".cpp":
            lengths += function_lengths(text)
    return problems + list(function_problems(lengths))


def self_test():
    many = "".join(f"void f{i}();\n" for i in range(21))
    data = "".join(f"int m{i}_ = 0;\n" for i in range(13))
    assert list(class_problems("class A { public:\n" + many + "};")) == ["A has 21 methods (at most 20)"]
    assert list(class_problems("class A { " + data + "};")) == ["A has 13 data members (at most 12)"]
    assert list(class_problems("struct A { " + data + "};")) == []
    assert list(class_problems("struct A { " + data + "void f() {} };")) == ["A has 13 data members (at most 12)"]
    sample = """
  explicit A(int x) : x_(x) {}
  ~A() override = default;
  int x() const { return f(x_); }   // not counted: void g();
  int x(int, A a = {}, int = 1) const;
  bool operator==(const A&) const = default;
  std::function<void(int)> done_;
  using F = std::function<void()>;
  std::map<int, std::string> map_{{1, "a(b)"}};
  struct Inner { int a; int b; };
  int x_ = f(1);
"""
    assert count_class_members("A", strip_comments(sample)) == (1, 3), count_class_members("A", strip_comments(sample))
    assert list(function_lengths("int f(int a) {\n  return a;\n}\nint g() const { return 1; }\n")) == [1, 1]
    assert list(function_problems([7] * 9 + [21])) == [
        "the median function has 7 lines (at most 6)", "the 90th percentile of function lengths is 21 lines (at most 20)"]
    print("self-test passed")


def main(arguments):
    if "--self-test" in arguments:
        return self_test()
    problems = check(pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parents[2])
    print("\n".join(problems) or "no file, class or function is too large")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
