"""client_v1.py PLAN: the checks with the client of the Python SDK, 1.x. PLAN is JSON (checks.py)."""
import asyncio
import contextlib

import mcp.types as types
from checks import Session, main
from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl


def plain(result):
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


class V1(Session):
    client = None

    async def page(self, what, cursor):
        method = {"tools": "list_tools", "resources": "list_resources", "prompts": "list_prompts",
                  "resourceTemplates": "list_resource_templates"}[what]  # fmt: skip
        return plain(await getattr(self.client, method)(params=types.PaginatedRequestParams(cursor=cursor)))

    async def call(self, name, arguments, on_progress=None):
        return plain(await self.client.call_tool(name, arguments, progress_callback=on_progress))

    async def cancel_after_progress(self, name):
        # The SDK has the notification but no call for it: the id of the next request is a member of the session.
        begun = asyncio.Event()
        request = self.client._request_id

        async def on_progress(*_):
            begun.set()

        calling = asyncio.ensure_future(self.client.call_tool(name, {}, progress_callback=on_progress))
        await begun.wait()
        params = types.CancelledNotificationParams(requestId=request, reason="enough")
        await self.client.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
        # A cancelled request may stay without an answer for ever, and the SDK would wait for it.
        await asyncio.wait([calling], timeout=0.2)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)

    async def read(self, uri):
        return plain(await self.client.read_resource(AnyUrl(uri)))

    async def prompt(self, name, arguments):
        return plain(await self.client.get_prompt(name, arguments))

    async def complete(self, prompt, argument, value):
        reference = types.PromptReference(type="ref/prompt", name=prompt)
        return plain(await self.client.complete(reference, {"name": argument, "value": value}))

    async def set_level(self, level):
        await self.client.set_logging_level(level)

    async def subscribe(self, uri):
        await self.client.subscribe_resource(AnyUrl(uri))


def transport_of(plan):
    if plan["transport"] == "stdio":
        program, *arguments = plan["command"]
        return stdio_client(StdioServerParameters(command=program, args=arguments))
    return sse_client(plan["url"]) if plan["transport"] == "sse" else streamable_http_client(plan["url"])


@contextlib.asynccontextmanager
async def connect(plan):
    session = V1()

    async def sampled(context, params):
        return types.CreateMessageResult(role="assistant", model="parrot", content=params.messages[0].content)

    async def elicited(context, params):
        return types.ElicitResult(action="accept", content=session.elicited(params.requestedSchema))

    async def rooted(context):
        return types.ListRootsResult(roots=[types.Root(uri="file:///one"), types.Root(uri="file:///two")])

    async def logged(params):
        session.logs.put_nowait(plain(params))

    async def heard(message):
        if isinstance(message, types.ServerNotification) and isinstance(message.root, types.ResourceUpdatedNotification):
            session.updates.put_nowait(str(message.root.params.uri))

    async with transport_of(plan) as streams, ClientSession(
        streams[0], streams[1], sampling_callback=sampled, elicitation_callback=elicited, list_roots_callback=rooted,
        logging_callback=logged, message_handler=heard,
    ) as session.client:  # fmt: skip
        session.revision = (await session.client.initialize()).protocolVersion
        yield session


main(connect)
