"""client_v2.py PLAN: the checks with the client of the Python SDK, 2.x, in the era that the plan's `mode` says."""
import asyncio
import contextlib
import warnings

import mcp_types as types
from checks import Session, main
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.sse import sse_client

warnings.simplefilter("ignore")  # logging and the like are deprecated, and still there


def plain(result):
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


class V2(Session):
    client = None
    listening = None

    async def page(self, what, cursor):
        method = {"tools": "list_tools", "resources": "list_resources", "prompts": "list_prompts",
                  "resourceTemplates": "list_resource_templates"}[what]  # fmt: skip
        return plain(await getattr(self.client, method)(cursor=cursor))

    async def call(self, name, arguments, on_progress=None):
        return plain(await self.client.call_tool(name, arguments, progress_callback=on_progress))

    async def cancel_after_progress(self, name):
        begun = asyncio.Event()

        async def on_progress(*_):
            begun.set()

        calling = asyncio.ensure_future(self.client.call_tool(name, {}, progress_callback=on_progress))
        await begun.wait()
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)

    async def read(self, uri):
        return plain(await self.client.read_resource(uri))

    async def prompt(self, name, arguments):
        return plain(await self.client.get_prompt(name, arguments))

    async def complete(self, prompt, argument, value):
        reference = types.PromptReference(type="ref/prompt", name=prompt)
        return plain(await self.client.complete(reference, {"name": argument, "value": value}))

    async def set_level(self, level):
        if self.revision < "2026-07-28":  # there it is the Client's log_level
            await self.client.set_logging_level(level)

    async def subscribe(self, uri):
        if self.revision < "2026-07-28":
            await self.client.subscribe_resource(uri)
            return
        entered = asyncio.Event()

        async def listen():
            async with self.client.listen(resource_subscriptions=[uri]) as events:
                entered.set()
                async for event in events:
                    self.updates.put_nowait(event.uri)

        self.listening = asyncio.ensure_future(listen())
        waiting = asyncio.ensure_future(entered.wait())
        await asyncio.wait([self.listening, waiting], return_when=asyncio.FIRST_COMPLETED)
        if self.listening.done():
            waiting.cancel()
            self.listening.result()


def target_of(plan):
    if plan["transport"] == "stdio":
        program, *arguments = plan["command"]
        return StdioServerParameters(command=program, args=arguments)
    return sse_client(plan["url"]) if plan["transport"] == "sse" else plan["url"]


@contextlib.asynccontextmanager
async def connect(plan):
    session = V2()

    async def sampled(context, params):
        return types.CreateMessageResult(role="assistant", model="parrot", content=params.messages[0].content)

    async def elicited(context, params):
        return types.ElicitResult(action="accept", content=session.elicited(params.requested_schema))

    async def rooted(context):
        return types.ListRootsResult(roots=[types.Root(uri="file:///one"), types.Root(uri="file:///two")])

    async def logged(params):
        session.logs.put_nowait(plain(params))

    async def heard(message):
        if isinstance(message, types.ResourceUpdatedNotification) and session.revision < "2026-07-28":
            session.updates.put_nowait(str(message.params.uri))

    async with Client(
        target_of(plan), sampling_callback=sampled, elicitation_callback=elicited, list_roots_callback=rooted,
        logging_callback=logged, message_handler=heard, mode=plan.get("mode", "auto"), log_level="info",
    ) as session.client:  # fmt: skip
        session.revision = session.client.protocol_version
        yield session
        if session.listening:
            session.listening.cancel()
            await asyncio.gather(session.listening, return_exceptions=True)


main(connect)
