#!/usr/bin/env python3
"""Runs the official conformance suite, both versions, with conformance-server and conformance-client.

  run.py BUILD part NAME…              runs parts of the matrix, and stores their scores in BUILD/conformance
  run.py BUILD scores [--write]        compares the stored scores with the tables in docs/conformance.md, or writes the tables
  run.py BUILD all [--write-docs]      runs all parts, then `scores`
  run.py BUILD full                    like `all`, and repeats scenarios with other selections of the suite
  run.py BUILD server|client SCENARIO [REVISION]   runs one scenario, and prints all output and checks of the suite
  run.py list                          prints the names of the parts

A part passes if every scenario that belongs to it has run, has at least one SUCCESS of its own and no FAILURE, WARNING or
SKIPPED, the suite exits with 0, and every client has exited with 0.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
DOCS = HERE.parent.parent / "docs" / "conformance.md"
REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
SUITES = {"0.2": "0.2.0-alpha.12", "0.1": "0.1.16"}
SUITE_SECONDS = 240  # timeout of one invocation of the suite
START_SECONDS = 20  # timeout of the start of conformance-server

# Checks that the suite always marks as SKIPPED, as regular expressions of their messages by scenario: all checks of a scenario,
# or those of a handshake that the revision of the scenario does not have.
SKIPPED_BY_SUITE = {
    "tasks-status-notifications": "",
    "http-standard-headers": "Client did not send a (initialize|notifications/initialized) request",
}
# The scenarios that never have a SUCCESS.
SCENARIOS_WITHOUT_SUCCESS = {"tasks-status-notifications"}
# Checks that the suite makes in every scenario with at least one message. They do not show that the scenario itself has passed.
CHECKS_OF_EVERY_SCENARIO = {"wire-schema-valid"}


def is_omitted(scenario):
    """Returns whether a client scenario is not run, because it needs authorization."""
    return scenario.startswith("auth/")


class Part:
    def __init__(self, role, suite, revision=None, extensions=False):
        self.role, self.suite, self.revision, self.extensions = role, suite, revision, extensions

    @property
    def column(self):
        if self.suite == "0.1":
            return SUITES["0.1"]
        return "extension" if self.extensions else self.revision


PARTS = {f"server-{revision}": Part("server", "0.2", revision) for revision in REVISIONS}
PARTS["server-extensions"] = Part("server", "0.2", extensions=True)
PARTS["server-0.1"] = Part("server", "0.1")
# The only client scenarios of 2025-03-26 are those of authorization.
PARTS.update({f"client-{revision}": Part("client", "0.2", revision) for revision in REVISIONS[1:]})
PARTS["client-extensions"] = Part("client", "0.2", extensions=True)
PARTS["client-0.1"] = Part("client", "0.1")

# Other selections of scenarios that the parts run, too.
REPEATED = {
    "server --suite all": ["--suite", "all"],
    "server --requirements 2025-11-25": ["--requirements", "2025-11-25"],
    "server --requirements 2026-07-28": ["--requirements", "2026-07-28"],
}


class ConformanceError(Exception):
    """A run that cannot be completed, or scores that differ from the documentation."""


# ---- running -----------------------------------------------------------------------------------------------------


def run_bounded(command, seconds, env=None):
    """Runs a command in a new session. Returns (status, output). Kills the processes of the session that remain."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", start_new_session=True, env=env)
    try:
        output, _ = process.communicate(timeout=seconds)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        raise ConformanceError(f"timeout after {seconds} s: {' '.join(map(str, command))}") from None
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


class ConformanceServer:
    """conformance-server on a free port. It is ended with SIGTERM, and must then exit with 0."""

    def __init__(self, build):
        self.process = subprocess.Popen([build / "conformance-server", "--port", "0"], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, text=True)
        ready, _, _ = select.select([self.process.stdout], [], [], START_SECONDS)
        line = self.process.stdout.readline() if ready else ""
        self.url = next(iter(re.findall(r"http://\S+", line)), None)
        if not self.url:
            self.process.kill()
            self.process.wait()
            raise ConformanceError(f"conformance-server did not print its URL within {START_SECONDS} s")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.process.terminate()
        try:
            status = self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = f"none, 20 s after SIGTERM, {self.process.wait()}"
        self.process.stdout.close()
        if status != 0 and kind is None:
            raise ConformanceError(f"conformance-server's exit status is {status}")


class Suite:
    def __init__(self, build, version):
        interop = build / "interop"
        self.command = [interop / "node", interop / "node_modules" / f"conformance-{version}" / "dist" / "index.js"]
        self.build = build

    def scenarios(self, role, revision=None):
        """Returns {scenario: tags} as the suite lists them."""
        selection = ["--spec-version", revision] if revision else []
        status, output = run_bounded([*self.command, "list", f"--{role}", *selection], 60)
        found = dict(re.findall(r"^  - (\S+) \[(.*)\]$", output, re.MULTILINE))
        if status != 0 or not found:
            raise ConformanceError(f"the suite cannot list its scenarios:\n{output}")
        return found

    def test_server(self, url, selection, results):
        return run_bounded([*self.command, "server", "--url", url, *selection, "-o", results], SUITE_SECONDS)

    def test_client(self, selection, results):
        """Runs client scenarios. The suite ignores some exit statuses of clients, so keep_status.sh stores them."""
        status_file = results / "exit-status"
        client = f"{HERE}/keep_status.sh {status_file} {self.build}/conformance-client"
        status, output = run_bounded([*self.command, "client", "--command", client, *selection, "-o", results],
                                     SUITE_SECONDS)
        client_status = status_file.read_text().strip() if status_file.exists() else "unknown"
        return (status if client_status == "0" else f"{status}, the client's is {client_status}"), output


def read_checks(results):
    """Returns {scenario: [checks]} from the files that the suite has written."""
    checks = collections.defaultdict(list)
    for file in sorted(results.rglob("checks.json")):
        name = re.sub(r"-\d{4}-\d\d-\d\dT[-\dZ]+$", "", str(file.parent.relative_to(results)))
        checks[name.removeprefix("server-")] += json.loads(file.read_text())
    return checks


# ---- checking ----------------------------------------------------------------------------------------------------


def problems_of(scenario, checks):
    problems = []
    for check in checks:
        message = check.get("errorMessage") or check.get("description", "")
        skippable = scenario in SKIPPED_BY_SUITE and re.match(SKIPPED_BY_SUITE[scenario], message)
        if check["status"] in ("FAILURE", "WARNING") or (check["status"] == "SKIPPED" and not skippable):
            problems.append(f"{check['status']} {check['id']}: {message}")
    passed = [check for check in checks if check["status"] == "SUCCESS" and check["id"] not in CHECKS_OF_EVERY_SCENARIO]
    if not passed and scenario not in SCENARIOS_WITHOUT_SUCCESS:
        problems.append("no SUCCESS")
    return problems


def print_outcome(name, problems, output=""):
    print(f"{'ok  ' if not problems else 'FAIL'} {name}", flush=True)
    for problem in problems:
        print(f"     {problem}")
    if problems and output:
        print("     the suite's output:\n" + "\n".join(output.splitlines()[-40:]))


def expected_scenarios(suite, part):
    if part.extensions:
        listed = [name for name, tags in suite.scenarios(part.role).items() if tags == "extension"]
    else:
        listed = list(suite.scenarios(part.role, part.revision))
    omitted = [name for name in listed if part.role == "client" and is_omitted(name)]
    return [name for name in listed if name not in omitted], omitted


def empty_directory(directory):
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory


def run_server_part(suite, part, scenarios, results):
    """Runs all scenarios with one run of the suite if it can select them. Yields (name, status, output) of each run."""
    with ConformanceServer(suite.build) as server:
        if not part.extensions:
            selection = ["--suite", "all"] + (["--spec-version", part.revision] if part.revision else [])
            yield "the suite", *suite.test_server(server.url, selection, results)
            return
        for scenario in scenarios:
            yield scenario, *suite.test_server(server.url, ["--scenario", scenario], results)


def run_client_part(suite, part, scenarios, results):
    """One by one: a suite of clients does not look at their exit statuses."""
    for scenario in scenarios:
        selection = ["--scenario", scenario] + (["--spec-version", part.revision] if part.revision else [])
        yield scenario, *suite.test_client(selection, results)


def run_part(build, name):
    part = PARTS[name]
    suite = Suite(build, part.suite)
    results = empty_directory(build / "conformance" / name)
    scenarios, omitted = expected_scenarios(suite, part)
    run = run_server_part if part.role == "server" else run_client_part
    passed_all = True
    started = time.monotonic()
    outputs = []
    for run_name, status, output in run(suite, part, scenarios, results):
        outputs.append(output)
        if status != 0:
            passed_all = False
            print_outcome(f"{name}: {run_name}", [f"exit status {status}"], output)
    checks = read_checks(results)
    for scenario in scenarios:
        problems = problems_of(scenario, checks.get(scenario, [])) if scenario in checks else ["has not run"]
        passed_all = passed_all and not problems
        print_outcome(f"{name}: {scenario}", problems)
    for scenario in sorted(set(checks) - set(scenarios)):
        passed_all = False
        print_outcome(f"{name}: {scenario}", ["has run, but the suite does not list it"])
    (results / "output.txt").write_text("\n".join(outputs))
    scores = {scenario: collections.Counter(check["status"] for check in checks.get(scenario, []))
              for scenario in scenarios}
    clean = [scenario for scenario in scenarios if scenario in checks and not problems_of(scenario, checks[scenario])]
    (results / "scores.json").write_text(json.dumps({"scores": scores, "clean": clean, "omitted": omitted}))
    print(f"{name}: {len(clean)} of {len(scenarios)} scenarios clean, {time.monotonic() - started:.0f} s", flush=True)
    return passed_all


def run_repeated(build):
    passed_all = True
    for number, (name, selection) in enumerate(REPEATED.items()):
        results = empty_directory(build / "conformance" / f"repeated-{number}")
        with ConformanceServer(build) as server:
            status, output = Suite(build, "0.2").test_server(server.url, selection, results)
        problems = [f"exit status {status}"] if status != 0 else []
        checks = read_checks(results)
        for scenario, scenario_checks in checks.items():
            problems += [f"{scenario}: {problem}" for problem in problems_of(scenario, scenario_checks)]
        print_outcome(f"{name}: {len(checks)} scenarios", problems, output if status != 0 else "")
        passed_all = passed_all and not problems
    return passed_all


def run_one(build, role, scenario, revision):
    suite = Suite(build, "0.2")
    results = empty_directory(build / "conformance" / "one")
    selection = ["--scenario", scenario] + (["--spec-version", revision] if revision else [])
    if role == "server":
        with ConformanceServer(build) as server:
            status, output = suite.test_server(server.url, selection, results)
    else:
        status, output = suite.test_client(selection, results)
        output += "".join(file.read_text() for file in sorted(results.rglob("std*.txt")))
    print(output)
    checks = [check for scenario_checks in read_checks(results).values() for check in scenario_checks]
    print(json.dumps(checks, indent=1))
    problems = problems_of(scenario, checks) + ([f"exit status {status}"] if status != 0 else [])
    print_outcome(scenario, problems)
    return not problems


# ---- the tables --------------------------------------------------------------------------------------------------


def load_scores(build):
    scores = {}
    for name in PARTS:
        file = build / "conformance" / name / "scores.json"
        if not file.exists():
            raise ConformanceError(f"part {name} has not run")
        scores[name] = json.loads(file.read_text())
    return scores


def table(rows):
    head, *body = rows
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in body]) + "\n"


def clean_count_text(scores, role):
    """Returns text with the number of scenarios of the newer suite, and of those that are clean in every part that has them."""
    parts = [name for name, part in PARTS.items() if part.role == role and part.suite == "0.2"]
    all_scenarios = {scenario for name in parts for scenario in scores[name]["scores"]}
    clean = {scenario for scenario in all_scenarios
             if all(scenario in scores[name]["clean"] for name in parts if scenario in scores[name]["scores"])}
    return f"{len(clean)} of {len(all_scenarios)} {role} scenarios"


def summary(scores):
    rows = [["suite", "role", "run", "scenarios", "clean", "checks passed"]]
    for name, part in PARTS.items():
        part_scores = scores[name]["scores"]
        passed = sum(counts.get("SUCCESS", 0) for counts in part_scores.values())
        run = part.column if part.suite == "0.2" else "all"
        rows.append([SUITES[part.suite], part.role, run, str(len(part_scores)), str(len(scores[name]["clean"])), str(passed)])
    return table(rows) + (f"\nClean in every revision they apply to: {clean_count_text(scores, 'server')} and "
                          f"{clean_count_text(scores, 'client')} of {SUITES['0.2']}.\n")


def details(scores, role):
    """Returns a table of scenarios by part, with the number of passed checks of each clean scenario."""
    parts = {name: part for name, part in PARTS.items() if part.role == role}
    scenarios = list(dict.fromkeys(scenario for name in parts for scenario in scores[name]["scores"]))

    def cell(name, scenario):
        counts = scores[name]["scores"].get(scenario)
        if counts is None:
            return ""
        if scenario not in scores[name]["clean"]:
            return "**fails**"
        return str(counts["SUCCESS"]) if counts.get("SUCCESS") else "skipped"

    rows = [["scenario", *(part.column for part in parts.values())]]
    rows += [[scenario, *(cell(name, scenario) for name in parts)] for scenario in scenarios]
    return table(rows)


def omitted_list(scores):
    names = dict.fromkeys(scenario for part_scores in scores.values() for scenario in part_scores["omitted"])
    return "\n".join(f"- {name}" for name in names) + "\n"


def rendered(text, scores):
    """Returns the page with new tables between the markers."""
    for marker, body in {"summary": summary(scores), "server": details(scores, "server"),
                         "client": details(scores, "client"), "left-out": omitted_list(scores)}.items():
        pattern = re.compile(rf"(<!-- {marker}: [^\n]*-->\n).*?(<!-- end -->)", re.DOTALL)
        if not pattern.search(text):
            raise ConformanceError(f"{DOCS.name} has no marker for the table `{marker}`")
        text = pattern.sub(lambda match, body=body: match[1] + "\n" + body + "\n" + match[2], text)
    return text


def check_scores(build, write):
    text = DOCS.read_text()
    updated = rendered(text, load_scores(build))
    if write:
        DOCS.write_text(updated)
    elif updated != text:
        raise ConformanceError(f"the tables in docs/{DOCS.name} are outdated; `tests/conformance/run.py BUILD scores --write` updates "
                    f"them:\n{summary(load_scores(build))}")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", "--write-docs", action="store_true", help="write the tables of docs/conformance.md")
    parser.add_argument("words", nargs="+", metavar="WORD")
    arguments = parser.parse_args()
    words = arguments.words
    if words == ["list"]:
        print("\n".join(PARTS))
        return True
    if len(words) < 2:
        parser.error("see --help")
    build, command, *rest = pathlib.Path(words[0]).resolve(), *words[1:]
    if command == "part" and rest and set(rest) <= set(PARTS):
        return all([run_part(build, name) for name in rest])
    if command == "scores" and not rest:
        return check_scores(build, arguments.write)
    if command in ("all", "full") and not rest:
        passed_all = all([run_part(build, name) for name in PARTS])
        if command == "full":
            passed_all = run_repeated(build) and passed_all
        return check_scores(build, arguments.write) and passed_all
    if command in ("server", "client") and 1 <= len(rest) <= 2:
        return run_one(build, command, rest[0], rest[1] if len(rest) == 2 else None)
    parser.error("see --help")


def handle_sigterm(*_):
    """Handles SIGTERM. The exception makes the context managers end the processes that were started."""
    raise ConformanceError("terminated by SIGTERM")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, handle_sigterm)
    try:
        sys.exit(0 if main() else 1)
    except ConformanceError as error:
        sys.exit(f"conformance: {error}")
