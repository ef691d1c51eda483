"""The peers, the runs of each, and the reasons for empty cells of the matrix."""
import dataclasses

FEATURES = ["list", "call", "error", "structured", "progress", "log", "cancel", "elicit", "sample", "roots", "resources",
            "templates", "subscribe", "prompts", "completion", "pagination", "large", "unicode", "concurrent",
            "authorization"]  # fmt: skip

LEGACY, MODERN = "2025-11-25", "2026-07-28"

# The transports. `json` is Streamable HTTP with a server that responds with JSON only.
CLIENT, SERVER, GATEWAY = "client", "server", "gateway"
PATHS = {CLIENT: "its client, our server", SERVER: "our client, its server", GATEWAY: "its client, gateway, its server"}
TRANSPORTS = {"stdio": "stdio", "http": "HTTP", "json": "HTTP, JSON only", "sse": "HTTP+SSE"}


@dataclasses.dataclass(frozen=True)
class Peer:
    """An SDK of another project: its name, its installation, and the eras and transports that it supports."""

    name: str
    title: str
    installation: str  # a member of versions.json
    programs: str = ""  # for Python: the suffix of its scripts
    package: str = ""  # the package of this peer, if several peers share an installation
    transports: tuple = ("stdio", "http", "json", "sse")
    revisions: tuple = (LEGACY,)


PEERS = {peer.name: peer for peer in (
    Peer("mcp-1", "Python SDK 1.x", "python-1", "v1", "mcp"),
    Peer("mcp-2", "Python SDK 2.x", "python-2", "v2", "mcp", revisions=(LEGACY, MODERN)),
    Peer("fastmcp", "fastmcp", "python-2", "fastmcp", "fastmcp", revisions=(LEGACY, MODERN)),
    Peer("go", "Go SDK", "go", revisions=(LEGACY, MODERN)),
    Peer("rust", "Rust SDK", "rust", transports=("stdio", "http", "json"), revisions=(LEGACY, MODERN)),
    Peer("java", "Java SDK", "java", transports=("stdio", "http")),
)}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Run:
    """One row of the matrix."""

    peer: str
    path: str
    transport: str
    revision: str  # of the client

    @property
    def title(self):
        return f"{PATHS[self.path]}, {TRANSPORTS[self.transport]}, {self.revision}"


def runs_of(peer):
    for revision in peer.revisions:
        for path in PATHS:
            for transport in peer.transports:
                # A client cannot select `json`. HTTP+SSE does not exist in the modern era.
                if (path == CLIENT and transport == "json") or (transport == "sse" and revision == MODERN):
                    continue
                yield Run(peer.name, path, transport, revision)


@dataclasses.dataclass(frozen=True)
class Empty:
    """Empty cells and their reason. `fails`: tested and expected to fail; otherwise not tested."""

    features: tuple
    reason: str
    peers: tuple = ()  # empty tuples: all
    paths: tuple = ()
    transports: tuple = ()
    revisions: tuple = ()
    fails: bool = False

    def holds(self, run, feature):
        return feature in self.features and all(
            not wanted or got in wanted
            for wanted, got in ((self.peers, run.peer), (self.paths, run.path), (self.transports, run.transport),
                                (self.revisions, run.revision))
        )  # fmt: skip


NO_STREAM = "answers as JSON have no stream for what a server says or asks during a call"
NO_PROGRESS = "the check cancels at the first progress, and answers as JSON have none"
OVERTAKEN = "it comes on another stream than the answer, which may overtake it"
BIG_EVENT = "the client ends the connection when an event has more than 1 MiB"

NO_OAUTH = "Fairlead does not have OAuth yet, neither as client nor as server"

PYTHON = ("mcp-1", "mcp-2", "fastmcp")

EMPTY = [
    Empty(("authorization",), "authorization is for HTTP only", transports=("stdio",)),
    Empty(("authorization",), NO_OAUTH),
    # The Go SDK sends it on the stream that the client opened with GET, which does not exist in 2026-07-28.
    Empty(("progress", "log"), NO_STREAM, transports=("json",), peers=PYTHON),
    Empty(("cancel",), NO_PROGRESS, transports=("json",), peers=PYTHON),
    Empty(("progress",), OVERTAKEN, transports=("json",), revisions=(LEGACY,), peers=("go",)),
    # Log messages after the response cannot be related to a call, so the gateway does not know their client.
    Empty(("log",), OVERTAKEN, transports=("json",), revisions=(LEGACY,), peers=("go",), paths=(GATEWAY,)),
    Empty(("progress", "log"), NO_STREAM, transports=("json",), revisions=(MODERN,), peers=("go",), fails=True),
    Empty(("cancel",), NO_PROGRESS, transports=("json",), revisions=(MODERN,), peers=("go",)),
    # The gateway uses 2026-07-28 with a server that supports it, and sends the input requests to a legacy client itself.
    Empty(("elicit", "sample"), NO_STREAM, transports=("json",), revisions=(LEGACY,), paths=(SERVER,), peers=PYTHON),
    Empty(("elicit", "sample"), NO_STREAM, transports=("json",), peers=("mcp-1",)),
    Empty(("roots",), NO_STREAM, transports=("json",), revisions=(LEGACY,), paths=(SERVER,), peers=("mcp-2",), fails=True),
    Empty(("elicit", "sample", "roots", "subscribe"), "a server that answers with JSON has no sessions, so that it can neither ask nor tell",
          transports=("json",), revisions=(LEGACY,), paths=(SERVER,), peers=("rust",)),
    Empty(("large",), BIG_EVENT, transports=("sse",), paths=(CLIENT, GATEWAY), peers=("mcp-2", "fastmcp")),
    Empty(("cancel",), "the server does not notice that the client has closed the stream of the call", transports=("http",),
          revisions=(MODERN,), paths=(SERVER, GATEWAY), peers=("go",), fails=True),
    Empty(("subscribe",), "the server has no subscriptions", paths=(SERVER,), peers=("fastmcp",), fails=True),
    Empty(("cancel",), "the SDK has no cancellation", paths=(SERVER,), peers=("java",), fails=True),
    Empty(("pagination",), "the server lists everything on one page", paths=(SERVER,), peers=("java",), fails=True),
    Empty(("concurrent",), "the client fails when two threads send a message at the same moment", transports=("stdio",),
          paths=(CLIENT, GATEWAY), peers=("java",)),
]


def empty(run, feature):
    return next((one for one in EMPTY if one.holds(run, feature)), None)
