"""server_fastmcp.py stdio|http|json|sse REVISION: the fixture on fastmcp, in both eras. It has no subscriptions to resources."""
import functools

import fastmcp
import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools import ToolResult
from fixture import PAGE, Name, Sdk, Sure, add_common, completions, main, sentence

fastmcp.settings.log_level = "WARNING"

server = FastMCP("fastmcp", list_page_size=PAGE)


def text(words):
    return ToolResult(content=words)


add_common(Sdk(server, Context, ToolError, ToolResult, text))


def modern(ctx):
    return ctx.request_context.protocol_version >= "2026-07-28"


def input_required(key, request, state=None):
    return types.InputRequiredResult(input_requests={key: request}, request_state=state)


def form(message, model):
    params = types.ElicitRequestFormParams(message=message, requested_schema=model.model_json_schema())
    return types.ElicitRequest(params=params)


@server.tool()
async def confirm(ctx: Context) -> str | types.InputRequiredResult:
    if modern(ctx):
        answers = ctx.input_responses or {}
        if "sure" in answers:
            return sentence(ctx.request_state, answers["sure"].content["sure"])
        if "name" in answers:
            return input_required("sure", form("Are you sure?", Sure), answers["name"].content["name"])
        return input_required("name", form("Who are you?", Name))
    name = await ctx.elicit("Who are you?", Name)
    sure = await ctx.elicit("Are you sure?", Sure)
    return sentence(name.data.name, sure.data.sure)


@server.tool()
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


@server.tool()
async def where(ctx: Context) -> str | types.InputRequiredResult:
    if not modern(ctx):
        roots = (await ctx.session.list_roots()).roots
    elif ctx.input_responses:
        roots = ctx.input_responses["roots"].roots
    else:
        return input_required("roots", types.ListRootsRequest())
    return " ".join(str(root.uri) for root in roots)


@server.tool()
def touch() -> str:
    return "touched"


@server.completion
def complete(ref, argument, context):
    return completions(argument.value)


main(functools.partial(server.run_stdio_async, show_banner=False), functools.partial(server.http_app, transport="sse"),
     lambda json: server.http_app(json_response=json))  # fmt: skip
