"""server_v1.py stdio|http|json|sse REVISION: the fixture on the Python SDK, 1.x."""
import sys

import anyio
import mcp.types as types
from listening import serve
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.exceptions import ToolError
from pydantic import AnyUrl, BaseModel

PIXEL = bytes.fromhex("89504e470d0a1a0a")
PAGE = 5
server = FastMCP("mcp-1", json_response=sys.argv[1] == "json")
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


@server.tool()
async def confirm(ctx: Context) -> str:
    name = await ctx.elicit("Who are you?", Name)
    if name.action != "accept":
        return name.action
    sure = await ctx.elicit("Are you sure?", Sure)
    return f"{name.data.name} is {'sure' if sure.data.sure else 'not sure'}"


@server.tool()
async def sample(message: str, ctx: Context) -> str:
    question = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=message))
    answer = await ctx.session.create_message([question], max_tokens=50, related_request_id=ctx.request_id)
    return f"{answer.model}: {answer.content.text}"


@server.tool()
async def where(ctx: Context) -> str:
    return " ".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


@server.tool()
async def touch(ctx: Context) -> str:
    if "memo://one" in subscribed:
        await ctx.session.send_resource_updated(AnyUrl("memo://one"))
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
    return types.Completion(values=values, total=len(values), hasMore=False)


# What FastMCP has no words for.
lowlevel = server._mcp_server


@lowlevel.subscribe_resource()
async def subscribe(uri: AnyUrl) -> None:
    subscribed.add(str(uri).rstrip("/"))


@lowlevel.set_logging_level()
async def set_level(level: types.LoggingLevel) -> None:
    """1.x leaves it to the server what to do with it; the fixture has one message below "info"."""
    global level_wanted
    level_wanted = level


@lowlevel.list_tools()
async def list_tools(request: types.ListToolsRequest) -> types.ListToolsResult:
    tools = await server.list_tools()
    if request is None:  # the SDK itself, before a call of a tool that nobody has listed
        return types.ListToolsResult(tools=tools)
    begin = int(request.params.cursor) if request.params and request.params.cursor else 0
    end = begin + PAGE
    return types.ListToolsResult(tools=tools[begin:end], nextCursor=str(end) if end < len(tools) else None)


async def main(transport):
    if transport == "stdio":
        await server.run_stdio_async()
    else:
        await serve(server.sse_app() if transport == "sse" else server.streamable_http_app())


anyio.run(main, sys.argv[1])
