"""server_v1.py stdio|http|json|sse REVISION: the fixture on the Python SDK, 1.x."""
import mcp.types as types
from fixture import TRANSPORT, Name, Sdk, Sure, add_common, completions, main, page, sentence
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.exceptions import ToolError
from pydantic import AnyUrl

server = FastMCP("mcp-1", json_response=TRANSPORT == "json")
subscribed = set()
level_wanted = "debug"


def text(words):
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)])


# In 1.x the server has to apply the log level itself. The fixture has one message below "info".
add_common(Sdk(server, Context, ToolError, types.CallToolResult, text, lambda: level_wanted == "debug"))


@server.tool()
async def confirm(ctx: Context) -> str:
    name = await ctx.elicit("Who are you?", Name)
    if name.action != "accept":
        return name.action
    sure = await ctx.elicit("Are you sure?", Sure)
    return sentence(name.data.name, sure.data.sure)


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


@server.completion()
async def complete(ref, argument, context):
    values = completions(argument.value)
    return types.Completion(values=values, total=len(values), hasMore=False)


# Handlers that FastMCP does not support.
lowlevel = server._mcp_server


@lowlevel.subscribe_resource()
async def subscribe(uri: AnyUrl) -> None:
    subscribed.add(str(uri).rstrip("/"))


@lowlevel.set_logging_level()
async def set_level(level: types.LoggingLevel) -> None:
    global level_wanted
    level_wanted = level


@lowlevel.list_tools()
async def list_tools(request: types.ListToolsRequest) -> types.ListToolsResult:
    tools = await server.list_tools()
    if request is None:  # called by the SDK itself, before the call of a tool if no client has listed the tools
        return types.ListToolsResult(tools=tools)
    some, cursor = page(tools, request.params and request.params.cursor)
    return types.ListToolsResult(tools=some, nextCursor=cursor)


main(server.run_stdio_async, server.sse_app, lambda _: server.streamable_http_app())
