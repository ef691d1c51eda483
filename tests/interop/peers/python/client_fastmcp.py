"""client_fastmcp.py PLAN: the checks with the client of fastmcp, in the era that the plan's `mode` says."""
import asyncio
import contextlib
import warnings

import mcp_types as types
from checks import Session, Unsupported, main
from fastmcp import Client
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport

warnings.simplefilter("ignore")  # logging and the like are deprecated, and still there


def plain(result):
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


class Fast(Session):
    client = None

    async def page(self, what, cursor):
        method = {"tools": "list_tools_mcp", "resources": "list_resources_mcp", "prompts": "list_prompts_mcp",
                  "resourceTemplates": "list_resource_templates_mcp"}[what]  # fmt: skip
        return plain(await getattr(self.client, method)(cursor=cursor))

    async def call(self, name, arguments, on_progress=None):
        return plain(await self.client.call_tool_mcp(name, arguments, progress_handler=on_progress))

    async def cancel_after_progress(self, name):
        begun = asyncio.Event()

        async def on_progress(*_):
            begun.set()

        calling = asyncio.ensure_future(self.client.call_tool_mcp(name, {}, progress_handler=on_progress))
        await begun.wait()
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)

    async def read(self, uri):
        return plain(await self.client.read_resource_mcp(uri))

    async def prompt(self, name, arguments):
        return plain(await self.client.get_prompt_mcp(name, arguments))

    async def complete(self, prompt, argument, value):
        reference = types.PromptReference(type="ref/prompt", name=prompt)
        return plain(await self.client.complete_mcp(reference, {"name": argument, "value": value}))

    async def set_level(self, level):
        if self.client.protocol_version >= "2026-07-28":
            raise Unsupported("the client cannot ask for log messages in 2026-07-28")
        await self.client.set_logging_level(level)

    async def subscribe(self, uri):
        raise Unsupported("the client has no subscriptions")


def transport_of(plan):
    if plan["transport"] == "stdio":
        program, *arguments = plan["command"]
        return StdioTransport(command=program, args=arguments)
    return SSETransport(plan["url"]) if plan["transport"] == "sse" else StreamableHttpTransport(plan["url"])


@contextlib.asynccontextmanager
async def connect(plan):
    session = Fast()

    async def sampled(messages, params, context):
        return types.CreateMessageResult(role="assistant", model="parrot", content=messages[0].content)

    async def elicited(message, response_type, params, context):
        return types.ElicitResult(action="accept", content=session.elicited(params.requested_schema))

    async def logged(params):
        session.logs.put_nowait(plain(params))

    async with Client(
        transport_of(plan), sampling_handler=sampled, elicitation_handler=elicited, log_handler=logged,
        roots=["file:///one", "file:///two"], mode=plan.get("mode", "auto"),
    ) as session.client:  # fmt: skip
        session.revision = session.client.protocol_version
        yield session


main(connect)
