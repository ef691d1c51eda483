"""The part of the fixture (peers/README.md) that is the same for the servers on all Python SDKs."""
import dataclasses
import socket
import sys
import warnings
from collections.abc import Callable

import anyio
import uvicorn
from pydantic import BaseModel

warnings.simplefilter("ignore")  # logging and other features are deprecated, but still supported

PIXEL = bytes.fromhex("89504e470d0a1a0a")
PAGE = 5
TRANSPORT = sys.argv[1]


class Sum(BaseModel):
    sum: float


class Name(BaseModel):
    name: str


class Sure(BaseModel):
    sure: bool


@dataclasses.dataclass
class Sdk:
    """The functions of an SDK. `text` makes a Result, which is a tool's result without structured content."""

    server: object
    Context: type
    ToolError: type
    Result: type
    text: Callable[[str], object]
    wants_debug: Callable[[], bool] = lambda: True  # False if the server has to apply the log level itself


def sentence(name, sure):
    return f"{name} is {'sure' if sure else 'not sure'}"


def completions(value):
    return [name for name in ("alice", "albert", "bob") if name.startswith(value)]


def page(entries, cursor):
    """Returns (a page of the list, the next cursor)."""
    begin = int(cursor or 0)
    end = begin + PAGE
    return entries[begin:end], str(end) if end < len(entries) else None


def add_simple_tools(sdk):
    @sdk.server.tool()
    def echo(message: str) -> sdk.Result:
        return sdk.text(message)

    @sdk.server.tool()
    def add(a: float, b: float) -> Sum:
        return Sum(sum=a + b)

    @sdk.server.tool()
    def fail() -> str:
        raise sdk.ToolError("it does not work")

    @sdk.server.tool()
    def large(bytes: int) -> sdk.Result:
        return sdk.text("x" * bytes)


def add_long_tools(sdk):
    cancellations = 0

    @sdk.server.tool()
    async def steps(to: int, ctx: sdk.Context) -> str:
        for number in range(1, to + 1):
            await ctx.report_progress(number, to, f"step {number}")
            await ctx.info(f"at step {number}")
        if sdk.wants_debug():
            await ctx.debug("done")
        return f"{to} steps"

    @sdk.server.tool()
    async def wait(ctx: sdk.Context) -> str:
        nonlocal cancellations
        await ctx.report_progress(1)
        try:
            await anyio.sleep(60)
        except anyio.get_cancelled_exc_class():
            cancellations += 1
            raise
        return "nobody cancelled it"

    @sdk.server.tool()
    async def cancelled() -> str:
        for _ in range(500):
            if cancellations:
                return str(cancellations)
            await anyio.sleep(0.01)
        return "never"


def add_resources_and_prompts(sdk):
    @sdk.server.resource("memo://one", mime_type="text/plain")
    def memo() -> str:
        return "the first memo"

    @sdk.server.resource("pixel://red", mime_type="image/png")
    def pixel() -> bytes:
        return PIXEL

    @sdk.server.resource("memos://{name}")
    def memos(name: str) -> str:
        return f"memo {name}"

    @sdk.server.prompt()
    def greet(name: str) -> str:
        return f"Say hello to {name}"


def add_common(sdk):
    add_simple_tools(sdk)
    add_long_tools(sdk)
    add_resources_and_prompts(sdk)


async def listen(application):
    """Serves an application on a free port."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
    config = uvicorn.Config(application, log_level="warning", timeout_graceful_shutdown=1)
    await uvicorn.Server(config).serve(sockets=[listener])


def main(run_stdio, sse, http):
    """Serves on the transport of the command line. `sse` and `http` make the applications; the argument of `http` is whether responses are JSON."""
    if TRANSPORT == "stdio":
        anyio.run(run_stdio)
    else:
        anyio.run(listen, sse() if TRANSPORT == "sse" else http(TRANSPORT == "json"))
