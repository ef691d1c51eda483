"""Published Python servers that need no network, behind the gateway. The Fairlead program calls their tools."""
import contextlib
import functools
import http.server
import json
import pathlib
import subprocess
import tempfile
import threading

import install

NAME = "python-servers"
CALL_SECONDS = 60
PAGE = "<html><head><title>A page</title></head><body><h1>A page</h1><p>It has a paragraph that is long enough to be kept.</p></body></html>"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def page(directory):
    """Serves a page on this machine, and yields its URL."""
    (directory / "page.html").write_text(PAGE)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(directory)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/page.html"
    finally:
        server.shutdown()
        server.server_close()


def repository(directory):
    """Creates a git repository with one commit."""
    git = [install.needed("git"), "-c", "user.name=A", "-c", "user.email=a@example.org", "-C", str(directory)]
    directory.mkdir()
    (directory / "file.txt").write_text("one\n")
    for words in (["init", "--quiet"], ["add", "file.txt"], ["commit", "--quiet", "-m", "the first commit"]):
        subprocess.run([*git, *words], check=True, stdin=subprocess.DEVNULL, timeout=CALL_SECONDS)


def packages():
    """Returns {server: (installation, version)}."""
    return {package: (name, version) for name, packages in install.VERSIONS.items()
            for package, version in packages.items() if package.startswith("mcp-server-")}  # fmt: skip


def programs(root):
    """Returns {server: program}."""
    return {package: install.directory_of(name, root) / "venv" / "bin" / package for package, (name, _) in packages().items()}


def entry(name, command, *arguments):
    return f"[servers.{name}]\ncommand = {json.dumps(str(command))}\nargs = {json.dumps([str(word) for word in arguments])}\n"


def calls(directory, url):
    """Returns the calls in order: (server, tool, arguments, text that the result must contain)."""
    path = str(directory / "repository")
    return [
        ("time", "get_current_time", {"timezone": "Europe/Zurich"}, "Europe/Zurich"),
        ("time", "convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}, "21:00"),
        ("git", "git_status", {"repo_path": path}, "On branch"),
        ("git", "git_log", {"repo_path": path}, "the first commit"),
        ("fetch", "fetch", {"url": url, "raw": True}, "long enough to be kept"),
        ("sqlite", "create_table", {"query": "CREATE TABLE birds (name TEXT)"}, "created"),
        ("sqlite", "write_query", {"query": "INSERT INTO birds VALUES ('wren')"}, "1"),
        ("sqlite", "read_query", {"query": "SELECT name FROM birds"}, "wren"),
    ]


def run(matrix, listening):
    """Calls each tool once through one gateway with all servers. Returns [(server, tool, problem)]."""
    installed = programs(matrix.kept)
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        directory = pathlib.Path(scratch)
        repository(directory / "repository")
        url = stack.enter_context(page(directory))
        config = directory / "servers.toml"
        program = lambda name: installed[f"mcp-server-{name}"]
        config.write_text(
            entry("time", program("time"))
            + entry("git", program("git"))
            + entry("fetch", program("fetch"), "--ignore-robots-txt", "--allow-private-ips")
            + entry("sqlite", program("sqlite"), "--db-path", directory / "birds.db")
        )
        gateway = [matrix.fairlead, "serve", "--config", str(config), "--listen", "127.0.0.1:0"]
        base = stack.enter_context(listening(gateway, r"endpoint=(http://\S+)/mcp"))
        return [(server, tool, call(matrix.fairlead, base, f"{server}__{tool}", arguments, wanted))
                for server, tool, arguments, wanted in calls(directory, url)]  # fmt: skip


def call(fairlead, base, tool, arguments, wanted):
    """Calls a tool with the Fairlead program. Returns the problem; empty if the result is as expected."""
    done = subprocess.run([fairlead, "tools", base + "/mcp", tool, json.dumps(arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", timeout=CALL_SECONDS, start_new_session=True)  # fmt: skip
    if done.returncode == 0 and wanted in done.stdout:
        return None
    return f"status {done.returncode}, wanted {wanted!r}: {done.stdout[-300:]}{done.stderr[-300:]}"


def versions():
    return {package: version for package, (_, version) in packages().items()}


def section(results):
    tools = {}
    for server, tool in results["calls"]:
        tools.setdefault(server, []).append(tool)
    rows = [f"| `mcp-server-{server}` | {results['versions'][f'mcp-server-{server}']} | {', '.join(names)} |" for server, names in tools.items()]
    return "### Servers of the Python world, behind the gateway\n\n| server | version | tools called |\n|---|---|---|\n" + "\n".join(rows) + "\n"
