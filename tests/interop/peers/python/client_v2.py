"""client_v2.py PLAN: the checks with the client of the Python SDK, 2.x, in the era that the plan's `mode` says."""
import asyncio
import contextlib

import mcp_types as types
from checks import main
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.sse import sse_client
from sdk_session import SdkSession, by_transport, ending


class V2(SdkSession):
    types = types
    listening = None

    @property
    def modern(self):
        return self.revision >= "2026-07-28"

    async def set_level(self, level):
        if not self.modern:  # in the modern era log_level of the Client sets it
            await super().set_level(level)

    async def subscribe(self, uri):
        if not self.modern:
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

    async def filled_in(self, context, params):
        return self.accept(params.requested_schema)

    async def heard(self, message):
        if isinstance(message, types.ResourceUpdatedNotification) and not self.modern:
            self.updates.put_nowait(str(message.params.uri))


@contextlib.asynccontextmanager
async def connect(plan):
    session = V2()
    async with Client(
        by_transport(plan, StdioServerParameters, sse_client, str), sampling_callback=session.sampled,
        elicitation_callback=session.filled_in, list_roots_callback=session.rooted, logging_callback=session.logged,
        message_handler=session.heard, mode=plan.get("mode", "auto"), log_level="info",
    ) as session.client, ending(lambda: session.listening):  # fmt: skip
        session.revision = session.client.protocol_version
        yield session


main(connect)
