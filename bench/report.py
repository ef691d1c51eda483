#!/usr/bin/env python3
"""Computes the figures and prints the tables: the measurements of each section, and the targets. As a program:

    report.py FILE        prints the targets that the benchmark programs have appended to FILE (--targets)
"""
import json
import statistics
import sys

PASS, MISS, NONE = "reached", "MISSED", "-"


def median_of(results, section, system, key):
    values = [figures[key] for figures in results.rounds.get((section, system), []) if figures and key in figures]
    return statistics.median(values) if values else None


def ratios_of(results, section, key, ours, theirs):
    """Returns the ratio of each round in which both systems were measured. A busy round slows down both."""
    pairs = zip(results.rounds.get((section, ours), []), results.rounds.get((section, theirs), []))
    return [a[key] / b[key] for a, b in pairs if a and b and a.get(key) and b.get(key)]


class Target:
    """A bound on a figure. `value` returns the figure and a remark, or None and the reason why it was not measured."""

    def __init__(self, section, title, bound, value, at_most=True, unit="x"):
        self.section = section
        self.title = title
        self.bound = bound
        self.value = value
        self.at_most = at_most
        self.unit = unit

    def row(self, results):
        value, remark = self.value(results)
        return row_of(self.title, value, self.bound, self.at_most, self.unit, remark)


def row_of(title, value, bound, at_most, unit, remark):
    """Returns the row of a target for print_targets(). `value` is None if it was not measured; then `remark` has the reason."""
    row = {"target": title, "wanted": ("<= " if at_most else ">= ") + format_value(bound, unit), "value": value, "remark": remark}
    if value is None:
        return {**row, "verdict": NONE}
    reached = value <= bound if at_most else value >= bound
    return {**row, "measured": format_value(value, unit), "verdict": PASS if reached else MISS}


class TargetList:
    """The targets of a program that prints each below its section, and all of them at its end."""

    def __init__(self):
        self.rows = []

    def add(self, title, figure, bound, at_most=False, unit="x", about=""):
        """Adds a target and prints it. `figure` is the value and a remark; the value is None if it was not measured. `about`
        is what the section says already: it precedes the title in the table of all targets."""
        value, remark = figure
        row = row_of(title, value, bound, at_most, unit, remark or ("" if value is not None else "not measured"))
        self.rows.append({**row, "target": f"{about}: {title}" if about else title})
        print(f"  {title:60}{row.get('measured', '-'):>12}  {row['wanted']:>12}  {row['verdict']:8} {row['remark']}", flush=True)


def append_targets(path, rows):
    """Appends the rows to the file that `report.py FILE` prints. Does nothing without a path."""
    if not path:
        return
    with open(path, "a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def format_value(value, unit):
    if unit == "%":
        return f"{100 * value:.1f} %"
    if unit == "KiB":
        return f"{value:.1f} KiB"
    return f"{value:.2f}x" if unit == "x" else f"{value:.2f} {unit}"


def ratio(section, key, ours, theirs):
    """Returns the median of the ratios of all rounds. The remark has the two medians and the spread."""

    def value(results):
        ratios = ratios_of(results, section, key, ours, theirs)
        if not ratios:
            absent = [results.missing[name] for name in (ours, theirs) if name in results.missing]
            return None, "not measured: " + (absent[0] if absent else "omitted")
        our_median, their_median = (median_of(results, section, name, key) for name in (ours, theirs))
        spread = f"rounds {min(ratios):.2f} to {max(ratios):.2f}"
        return statistics.median(ratios), f"{number(our_median)} to {number(their_median)} {UNITS[key]}; {spread}"

    return value


def figure(program, *path, scale=1.0, remark=""):
    """Returns a number from the JSON object that a separate program printed."""

    def value(results):
        node = results.single.get(program)
        if node is None:
            return None, "not measured: " + results.missing.get(program, "omitted")
        for step in path:
            node = node.get(step) if isinstance(node, dict) else None
        return (node * scale, remark) if node is not None else (None, "not measured: no such figure")

    return value


def quotient(program, above, below, remark=""):
    """Returns the quotient of two numbers of the same program."""

    def value(results):
        numerator, reason = figure(program, *above)(results)
        denominator, _ = figure(program, *below)(results)
        return (numerator / denominator, remark) if numerator is not None and denominator else (None, reason)

    return value


UNITS = {"start_ms": "ms", "p50_us": "us", "calls_per_s": "calls/s", "server_cpu_us": "us of CPU per call"}


def number(value):
    if value is None:
        return "-"
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}"


def print_columns(rows, aligned_right):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for index, row in enumerate(rows):
        cells = [
            cell.rjust(width) if i in aligned_right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths))
        ]
        print("  " + "  ".join(cells).rstrip())
        if index == 0:
            print("  " + "  ".join("-" * width for width in widths))


def print_section(results, section):
    print(f"\n{section.title}")
    keys = {"sequential": ["p50_us", "p90_us", "p99_us"], "http": ["calls_per_s", "p50_us", "p99_us"]}.get(
        section.phase, ["calls_per_s"]
    )
    titles = {"p50_us": "p50 us", "p90_us": "p90 us", "p99_us": "p99 us", "calls_per_s": "calls/s"}
    rows = [["", *(titles[key] for key in keys), "server CPU us", "client CPU us", "foreign"]]
    for system in section.systems:
        if (section.name, system.name) not in results.rounds:
            rows.append([system.name, *["-"] * (len(keys) + 3)])
            continue
        columns = [*keys, "server_cpu_us", "driver_cpu_us", "foreign"]
        rows.append([system.name, *(number(median_of(results, section.name, system.name, key)) for key in columns)])
    print_columns(rows, aligned_right=range(1, len(rows[0])))
    for system in section.systems:
        if system.name in results.missing:
            print(f"  {system.name} was not measured: {results.missing[system.name]}")


def print_foreign_load(results, limit):
    """Prints how many runs were disturbed by other processes, so that their figures are not mistaken for those of an idle machine."""
    foreign = [figures["foreign"] for values in results.rounds.values() for figures in values if figures]
    busy = sum(value > limit for value in foreign)
    if busy:
        print(
            f"\nThe machine was busy: in {busy} of {len(foreign)} runs other processes used more than {limit} cores "
            f"(median {statistics.median(foreign):.2f}).\nTimes, calls/s and ratios of them are unreliable, "
            "CPU per call less so. Repeat the measurement on an idle machine."
        )


def print_targets(rows):
    print("\nTargets")
    table = [["", "wanted", "measured", "", ""]]
    for row in rows:
        table.append([row["target"], row["wanted"], row.get("measured", "-"), row["verdict"], row["remark"]])
    print_columns(table, aligned_right=(1, 2))
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in (PASS, MISS, NONE)}
    print(f"\n{counts[PASS]} reached, {counts[MISS]} missed, {counts[NONE]} not measured")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        print_targets([json.loads(line) for line in file])


if __name__ == "__main__":
    main()
