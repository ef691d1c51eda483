"""server_fastmcp.py stdio|http|json|sse REVISION: the fixture on fastmcp, in both eras. It has no subscriptions to resources."""
import sys
import warnings

import anyio
import fastmcp
import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools import ToolResult
from listening import serve
from pydantic import BaseModel

warnings.simplefilter("ignore")  # logging and the like are deprecated, and still there
fastmcp.settings.log_level = "WARNING"

PIXEL = bytes.fromhex("89504e470d0a1a0a")
server = FastMCP("fastmcp", list_page_size=5)
cancellations = 0


class Sum(BaseModel):
    sum: float


class Name(BaseModel):
    name: str


class Sure(BaseModel):
    sure: bool


@server.tool
def echo(message: str) -> ToolResult:
    return ToolResult(content=message)


@server.tool
def add(a: float, b: float) -> Sum:
    return Sum(sum=a + b)


@server.tool
def fail() -> str:
    raise ToolError("it does not work")


@server.tool
def large(bytes: int) -> ToolResult:
    return ToolResult(content="x" * bytes)


@server.tool
async def steps(to: int, ctx: Context) -> str:
    for number in range(1, to + 1):
        await ctx.report_progress(number, to, f"step {number}")
        await ctx.info(f"at step {number}")
    await ctx.debug("done")
    return f"{to} steps"


@server.tool
async def wait(ctx: Context) -> str:
    global cancellations
    await ctx.report_progress(1)
    try:
        await anyio.sleep(60)
    except anyio.get_cancelled_exc_class():
        cancellations += 1
        raise
    return "nobody cancelled it"


@server.tool
async def cancelled() -> str:
    for _ in range(500):
        if cancellations:
            return str(cancellations)
        await anyio.sleep(0.01)
    return "never"


def modern(ctx):
    return ctx.request_context.protocol_version >= "2026-07-28"


def input_required(key, request, state=None):
    return types.InputRequiredResult(input_requests={key: request}, request_state=state)


def form(message, model):
    params = types.ElicitRequestFormParams(message=message, requested_schema=model.model_json_schema())
    return types.ElicitRequest(params=params)


@server.tool
async def confirm(ctx: Context) -> str | types.InputRequiredResult:
    if modern(ctx):
        answers = ctx.input_responses or {}
        if "sure" in answers:
            return f"{ctx.request_state} is {'sure' if answers['sure'].content['sure'] else 'not sure'}"
        if "name" in answers:
            return input_required("sure", form("Are you sure?", Sure), answers["name"].content["name"])
        return input_required("name", form("Who are you?", Name))
    name = await ctx.elicit("Who are you?", Name)
    sure = await ctx.elicit("Are you sure?", Sure)
    return f"{name.data.name} is {'sure' if sure.data.sure else 'not sure'}"


@server.tool
async def sample(message: str, ctx: Context) -> str | types.InputRequiredResult:
    question = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=message))
    if modern(ctx):
        if not ctx.input_responses:
            params = types.CreateMessageRequestParams(messages=[question], max_tokens=50)
            return input_required("sample", types.CreateMessageRequest(params=params))
        answer = ctx.input_responses["sample"]
    else:
        answer = await ctx.session.create_message([question], max_tokens=50, related_request_id=ctx.request_id)
    return f"{answer.model}: {answer.content.text}"


@server.tool
async def where(ctx: Context) -> str | types.InputRequiredResult:
    if not modern(ctx):
        roots = (await ctx.session.list_roots()).roots
    elif ctx.input_responses:
        roots = ctx.input_responses["roots"].roots
    else:
        return input_required("roots", types.ListRootsRequest())
    return " ".join(str(root.uri) for root in roots)


@server.tool
def touch() -> str:
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


@server.prompt
def greet(name: str) -> str:
    return f"Say hello to {name}"


@server.completion
def complete(ref, argument, context):
    return [name for name in ("alice", "albert", "bob") if name.startswith(argument.value)]


async def main(transport):
    if transport == "stdio":
        await server.run_stdio_async(show_banner=False)
    elif transport == "sse":
        await serve(server.http_app(transport="sse"))
    else:
        await serve(server.http_app(json_response=transport == "json"))


anyio.run(main, sys.argv[1])
