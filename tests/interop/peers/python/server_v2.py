"""server_v2.py stdio|http|json|sse REVISION: the fixture on the Python SDK, 2.x, in both eras."""
import sys
import warnings
from typing import Annotated

import anyio
import mcp_types as types
from listening import serve
from mcp.server.mcpserver import Context, Elicit, ListRoots, MCPServer, Resolve, Sample
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

warnings.simplefilter("ignore")  # logging and the like are deprecated, and still there

PIXEL = bytes.fromhex("89504e470d0a1a0a")
PAGE = 5
server = MCPServer("mcp-2", log_level="WARNING")
subscribed = set()
cancellations = 0
level_wanted = "debug"


class Sum(BaseModel):
    sum: float


class Name(BaseModel):
    name: str


class Sure(BaseModel):
    sure: bool


@server.tool()
def echo(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)])


@server.tool()
def add(a: float, b: float) -> Sum:
    return Sum(sum=a + b)


@server.tool()
def fail() -> str:
    raise ToolError("it does not work")


@server.tool()
def large(bytes: int) -> types.CallToolResult:
    return echo("x" * bytes)


@server.tool()
async def steps(to: int, ctx: Context) -> str:
    for number in range(1, to + 1):
        await ctx.report_progress(number, to, f"step {number}")
        await ctx.info(f"at step {number}")
    if level_wanted == "debug":
        await ctx.debug("done")
    return f"{to} steps"


@server.tool()
async def wait(ctx: Context) -> str:
    global cancellations
    await ctx.report_progress(1)
    try:
        await anyio.sleep(60)
    except anyio.get_cancelled_exc_class():
        cancellations += 1
        raise
    return "nobody cancelled it"


@server.tool()
async def cancelled() -> str:
    for _ in range(500):
        if cancellations:
            return str(cancellations)
        await anyio.sleep(0.01)
    return "never"


def ask_name() -> Elicit[Name]:
    return Elicit("Who are you?", Name)


def ask_sure(name: Annotated[Name, Resolve(ask_name)]) -> Elicit[Sure]:
    return Elicit("Are you sure?", Sure)


@server.tool()
def confirm(name: Annotated[Name, Resolve(ask_name)], sure: Annotated[Sure, Resolve(ask_sure)]) -> str:
    return f"{name.name} is {'sure' if sure.sure else 'not sure'}"


def ask_model(message: str) -> Sample:
    return Sample([types.SamplingMessage(role="user", content=types.TextContent(type="text", text=message))], max_tokens=50)


@server.tool()
def sample(message: str, answer: Annotated[types.CreateMessageResult, Resolve(ask_model)]) -> str:
    return f"{answer.model}: {answer.content.text}"


def ask_roots() -> ListRoots:
    return ListRoots()


@server.tool()
def where(roots: Annotated[types.ListRootsResult, Resolve(ask_roots)]) -> str:
    return " ".join(str(root.uri) for root in roots.roots)


@server.tool()
async def touch(ctx: Context) -> str:
    await ctx.notify_resource_updated("memo://one")
    if "memo://one" in subscribed:
        await ctx.session.send_resource_updated("memo://one")
    return "touched"


@server.resource("memo://one", mime_type="text/plain")
def memo() -> str:
    return "the first memo"


@server.resource("pixel://red", mime_type="image/png")
def pixel() -> bytes:
    return PIXEL


@server.resource("memos://{name}")
def memos(name: str) -> str:
    return f"memo {name}"


@server.prompt()
def greet(name: str) -> str:
    return f"Say hello to {name}"


@server.completion()
async def complete(ref, argument, context):
    values = [name for name in ("alice", "albert", "bob") if name.startswith(argument.value)]
    return types.Completion(values=values, total=len(values), has_more=False)


# What MCPServer has no words for.
lowlevel = server._lowlevel_server


async def subscribe(ctx, params):
    subscribed.add(params.uri)
    return types.EmptyResult()


async def set_level(ctx, params):
    global level_wanted
    level_wanted = params.level
    return types.EmptyResult()


async def list_tools(ctx, params):
    tools = await server.list_tools()
    begin = int(params.cursor) if params and params.cursor else 0
    end = begin + PAGE
    return types.ListToolsResult(tools=tools[begin:end], next_cursor=str(end) if end < len(tools) else None)


lowlevel.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribe)
lowlevel.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
lowlevel.add_request_handler("tools/list", types.PaginatedRequestParams, list_tools)


async def main(transport):
    if transport == "stdio":
        await server.run_stdio_async()
    else:
        await serve(server.sse_app() if transport == "sse" else server.streamable_http_app(json_response=transport == "json"))


anyio.run(main, sys.argv[1])
