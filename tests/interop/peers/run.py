#!/usr/bin/env python3
"""Tests SDKs of other projects as clients of the Fairlead server, as servers of the Fairlead client, and on both sides of the gateway.

  run.py BUILD install           installs what is not installed yet
  run.py BUILD run PEER [-v]     runs the peer's rows of the matrix and keeps the results
  run.py BUILD docs [--write]    compares the results kept with the tables in docs/interop.md, or writes these
  run.py list                    the names of the peers

A peer whose toolchain or registry is absent is not tried: exit status 77, and the reason in BUILD/interop/peers/PEER.absent.
A peer that cannot be installed or built although both are there has failed.
README.md beside this file says what the programs of a peer do.
"""
import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True  # keeps the source tree unchanged

import install
import servers
from table import CLIENT, FEATURES, GATEWAY, LEGACY, MODERN, PATHS, PEERS, SERVER, TRANSPORTS, empty, runs_of

HERE = pathlib.Path(__file__).resolve().parent
DOCS = HERE.parent.parent.parent / "docs" / "interop.md"
NOT_TRIED = 77
START_SECONDS = 120
RUN_SECONDS = 600
PREFIX = "peer__"  # of the public names at the gateway


class Wrong(Exception):
    """A run that cannot be completed, or tables that differ from the documentation."""


@contextlib.contextmanager
def listening(command, pattern):
    """Starts a server in a new session. Yields the first group of `pattern` in its stderr, and ends the server afterwards."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True, errors="replace", start_new_session=True)  # fmt: skip
    found, lines = threading.Event(), []

    def read():
        for line in process.stderr:
            lines.append(line)
            if re.search(pattern, line):
                found.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        if not found.wait(START_SECONDS):
            raise Wrong(f"{command[0]} did not say where it listens:\n{''.join(lines[-20:])}")
        yield next(match[1] for match in map(re.compile(pattern).search, lines) if match)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        reader.join(5)
        process.stdin.close()
        if os.environ.get("FAIRLEAD_INTEROP_STDERR"):
            sys.stderr.writelines(lines)


class Matrix:
    def __init__(self, build, verbose):
        self.build, self.verbose = build, verbose
        self.kept = build / "interop" / "peers"
        self.kept.mkdir(parents=True, exist_ok=True)
        self.our_server = str(build / "tests" / "interop_fixture_server")
        self.our_client = [str(build / "tests" / "interop_client")]
        self.fairlead = str(build / "fairlead")

    def tried(self, name, run):
        """Returns the result of run(); None if a toolchain or registry is absent, which is stored and printed."""
        absent = self.kept / f"{name}.absent"
        absent.unlink(missing_ok=True)
        try:
            return run()
        except install.Absent as reason:
            absent.write_text(f"{reason}\n")
            print(f"not tried here: {name} ({reason})")
            return None
        except install.Broken as reason:
            raise Wrong(f"{name} cannot be run: {reason}") from None

    def servers(self):
        """Runs published servers behind the gateway. Returns whether every call had the expected result."""
        outcomes = servers.run(self, listening)
        for server, tool, problem in outcomes:
            print(f"{'FAIL' if problem else 'ok  '} {server}: {tool}{': ' + problem if problem else ''}", flush=True)
        good = not any(problem for _, _, problem in outcomes)
        self.keep(servers.NAME, {"versions": servers.versions(), "calls": [outcome[:2] for outcome in outcomes]}, good)
        return good

    def peer(self, peer):
        """Runs all rows of a peer. Returns whether all results are as the table expects."""
        server, client = install.programs(peer, self.kept)
        results, problems = [], []
        for run in runs_of(peer):
            began = time.monotonic()
            cells, wrong = self.row(run, server, client)
            results.append({**dataclasses.asdict(run), "cells": cells})
            problems += wrong
            passed = sum(cell == "pass" for cell in cells.values())
            print(f"{'FAIL' if wrong else 'ok  '} {run.title}: {passed} of {len(FEATURES)}, {time.monotonic() - began:.1f} s", flush=True)
            for line in wrong:
                print(f"     {line}")
        self.keep(peer.name, {"versions": versions_of(peer), "runs": results}, good=not problems)
        return not problems

    def keep(self, name, results, good):
        """Stores results for the documentation, unless some are unexpected."""
        kept = self.kept / f"{name}.json"
        if good:
            kept.write_text(json.dumps(results, indent=1))
        else:
            kept.unlink(missing_ok=True)

    # ---- one row ----

    def row(self, run, server, client):
        # If both eras are possible, the plan sets the era of the client; otherwise the client determines it.
        choice = run.revision == LEGACY and MODERN in PEERS[run.peer].revisions
        plan = {"mode": "legacy" if choice else "auto", "least_pages": 1 if run.path == GATEWAY else 2}
        not_tried = [feature for feature in FEATURES if (rule := empty(run, feature)) and not rule.fails]
        plan["skip"] = not_tried
        try:
            with self.target(run, server) as target:
                plan |= target
                reports, trouble = self.client(self.our_client if run.path == SERVER else client, plan)
        except Wrong as wrong:
            reports, trouble = {}, str(wrong)
        cells, wrong = {}, [trouble] if trouble else []
        revision = reports.get("connect", {}).get("reason")
        if revision != run.revision and not trouble:
            wrong.append(f"the revision is {revision}")
        for feature in FEATURES:
            cells[feature], problem = self.cell(run, feature, reports.get(feature))
            if problem and not trouble:
                wrong.append(f"{feature}: {problem}")
        return cells, wrong

    @staticmethod
    def cell(run, feature, report):
        """Returns ("pass" or the reason of the failure, the problem if this is unexpected)."""
        rule = empty(run, feature)
        if report is None:
            return (rule.reason, None) if rule and not rule.fails else ("not reported", "not reported")
        if report["status"] == "pass":
            return "pass", f"passes, although the table says: {rule.reason}" if rule else None
        if report["status"] == "unsupported":
            return report["reason"], None
        return (rule.reason, None) if rule else (report["reason"], report["reason"])

    def client(self, command, plan):
        """Returns ({feature: report}, the error of the client program itself)."""
        process = subprocess.Popen([*command, json.dumps(plan), *(["-v"] if self.verbose else [])], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                                   start_new_session=True)  # fmt: skip
        try:
            output, errors = process.communicate(timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            output, errors = "", f"not finished in {RUN_SECONDS} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if self.verbose:
            sys.stderr.write(errors)
        reports = {report["feature"]: report for report in map(json.loads, output.splitlines())}
        if process.returncode != 0:
            return reports, f"{' '.join(command)} ended with {process.returncode}: {install.last_line(errors)}"
        return reports, None

    @contextlib.contextmanager
    def target(self, run, server):
        """Starts the server or gateway for the client, and yields the members of the plan that describe it."""
        ours = run.path == CLIENT
        if run.path == GATEWAY:
            with self.behind(run, server) as config, self.gateway(run, config) as target:
                yield {**target, "prefix": PREFIX}
        elif run.transport == "stdio":
            yield self.stdio([self.our_server] if ours else [*server, "stdio", run.revision])
        else:
            command = [self.our_server, "--http"] if ours else [*server, run.transport, run.revision]
            with listening(command, r"listening on (http://\S+)") as base:
                yield self.http(run, base)

    @staticmethod
    def stdio(command):
        quoted = (word.replace("%", "%25").replace(" ", "%20") for word in command)
        return {"transport": "stdio", "command": command, "uri": "stdio:" + " ".join(quoted)}

    @staticmethod
    def http(run, base):
        url = base + ("/sse" if run.transport == "sse" else "/mcp")
        return {"transport": "sse" if run.transport == "sse" else "http", "url": url, "uri": url}

    @contextlib.contextmanager
    def behind(self, run, server):
        """Writes the configuration file of a gateway with the peer's server."""
        name = PREFIX.removesuffix("__")
        with contextlib.ExitStack() as stack:
            if run.transport == "stdio":
                arguments = ", ".join(json.dumps(word) for word in [*server[1:], "stdio", run.revision])
                entry = f"command = {json.dumps(server[0])}\nargs = [{arguments}]\n"
            else:
                base = stack.enter_context(listening([*server, run.transport, run.revision], r"listening on (http://\S+)"))
                entry = f"url = {json.dumps(self.http(run, base)['url'])}\n"
            file = stack.enter_context(tempfile.NamedTemporaryFile("w", suffix=".toml"))
            file.write(f'list_wait = "{START_SECONDS}s"\n[servers.{name}]\n{entry}[servers.{name}.clocks]\nhandshake = "{START_SECONDS}s"\n')
            file.flush()
            yield file.name

    @contextlib.contextmanager
    def gateway(self, run, config):
        command = [self.fairlead, "serve", "--config", config]
        if run.transport == "stdio":
            yield self.stdio([*command, "--stdio", "--log-level", "warning"])
            return
        with listening([*command, "--listen", "127.0.0.1:0"], r"endpoint=(http://\S+)/mcp") as base:
            yield self.http(run, base)

    # ---- documentation ----

    def results(self, name):
        kept = self.kept / f"{name}.json"
        if (self.kept / f"{name}.absent").exists() or not kept.exists():
            return None
        return json.loads(kept.read_text())

    def docs(self, write):
        """Compares the tables of the peers that were tested. Those of other peers stay unchanged."""
        text = DOCS.read_text()
        made, compared = text, []
        for name in [*PEERS, servers.NAME]:
            results = self.results(name)
            if results is None:
                continue
            compared.append(name)
            pattern = re.compile(rf"(<!-- peer {re.escape(name)}: [^\n]*-->\n).*?(<!-- end -->)", re.DOTALL)
            if not pattern.search(made):
                raise Wrong(f"docs/{DOCS.name} has no place for the peer {name}")
            body = section(PEERS[name], results) if name in PEERS else servers.section(results)
            made = pattern.sub(lambda match, body=body: match[1] + "\n" + body + "\n" + match[2], made)
        print(f"compared: {', '.join(compared) or 'nothing'}")
        if write:
            DOCS.write_text(made)
        elif made != text:
            raise Wrong(f"docs/{DOCS.name} does not have these results; tests/interop/peers/run.py BUILD docs --write writes them")
        return True


def versions_of(peer):
    packages = install.VERSIONS[peer.installation]
    return {peer.package: packages[peer.package]} if peer.package else packages


def table(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines) + "\n"


def section(peer, results):
    """Returns the section of docs/interop.md about a peer: a row for each run, and the reasons for empty cells."""
    versions = ", ".join(f"`{package}` {version}" for package, version in results["versions"].items())
    reasons = []
    rows = [["path", "transport", "revision", *FEATURES]]
    for run in results["runs"]:
        cells = []
        for feature in FEATURES:
            cell = run["cells"][feature]
            if cell == "pass":
                cells.append("yes")
                continue
            if cell not in reasons:
                reasons.append(cell)
            cells.append(f"({reasons.index(cell) + 1})")
        rows.append([PATHS[run["path"]], TRANSPORTS[run["transport"]], run["revision"], *cells])
    numbered = "".join(f"{number}. {reason}.\n" for number, reason in enumerate(reasons, 1))
    return f"### {peer.title}\n\n{versions}\n\n{table(rows)}" + (f"\n{numbered}" if numbered else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the tables of docs/interop.md")
    parser.add_argument("-v", "--verbose", action="store_true", help="show what the programs say on stderr")
    parser.add_argument("words", nargs="+", metavar="WORD")
    arguments = parser.parse_args()
    words = arguments.words
    if words == ["list"]:
        print("\n".join([*PEERS, servers.NAME]))
        return 0
    if len(words) < 2:
        parser.error("see --help")
    matrix = Matrix(pathlib.Path(words[0]).resolve(), arguments.verbose)
    if words[1:] == ["install"]:
        install.install_all(matrix.kept)
        return 0
    if words[1] == "run" and len(words) == 3 and words[2] in [*PEERS, servers.NAME]:
        run = (lambda: matrix.peer(PEERS[words[2]])) if words[2] in PEERS else matrix.servers
        good = matrix.tried(words[2], run)
        return NOT_TRIED if good is None else 0 if good else 1
    if words[1:] == ["docs"]:
        return 0 if matrix.docs(arguments.write) else 1
    parser.error("see --help")


def give_up(*_):
    """Handles SIGTERM. The exception makes the context managers end the processes that were started."""
    raise Wrong("told to stop")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, give_up)
    try:
        sys.exit(main())
    except Wrong as wrong:
        sys.exit(f"interop: {wrong}")
