"""server_v2.py stdio|http|json|sse REVISION: the fixture on the Python SDK, 2.x, in both eras."""
from typing import Annotated

import mcp_types as types
from fixture import Name, Sdk, Sure, add_common, completions, main, page, sentence
from mcp.server.mcpserver import Context, Elicit, ListRoots, MCPServer, Resolve, Sample
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("mcp-2", log_level="WARNING")
subscribed = set()
level_wanted = "debug"


def text(words):
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)])


add_common(Sdk(server, Context, ToolError, types.CallToolResult, text, lambda: level_wanted == "debug"))


def ask_name() -> Elicit[Name]:
    return Elicit("Who are you?", Name)


def ask_sure(name: Annotated[Name, Resolve(ask_name)]) -> Elicit[Sure]:
    return Elicit("Are you sure?", Sure)


@server.tool()
def confirm(name: Annotated[Name, Resolve(ask_name)], sure: Annotated[Sure, Resolve(ask_sure)]) -> str:
    return sentence(name.name, sure.sure)


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


@server.completion()
async def complete(ref, argument, context):
    values = completions(argument.value)
    return types.Completion(values=values, total=len(values), has_more=False)


# Handlers that MCPServer does not support.
lowlevel = server._lowlevel_server


async def subscribe(ctx, params):
    subscribed.add(params.uri)
    return types.EmptyResult()


async def set_level(ctx, params):
    global level_wanted
    level_wanted = params.level
    return types.EmptyResult()


async def list_tools(ctx, params):
    some, cursor = page(await server.list_tools(), params and params.cursor)
    return types.ListToolsResult(tools=some, next_cursor=cursor)


lowlevel.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribe)
lowlevel.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
lowlevel.add_request_handler("tools/list", types.PaginatedRequestParams, list_tools)

main(server.run_stdio_async, server.sse_app, lambda json: server.streamable_http_app(json_response=json))
