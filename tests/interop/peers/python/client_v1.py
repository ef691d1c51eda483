"""client_v1.py PLAN: the checks with the client of the Python SDK, 1.x. PLAN is JSON (checks.py)."""
import asyncio
import contextlib

import mcp.types as types
from checks import main
from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl
from sdk_session import SdkSession, by_transport, ended


class V1(SdkSession):
    types = types
    address = AnyUrl

    @staticmethod
    def paged(cursor):
        return {"params": types.PaginatedRequestParams(cursor=cursor)}

    async def cancel_after_progress(self, name):
        # The SDK has no function for cancellation, so this sends the notification with the id of the request, which the session knows.
        request = self.client._request_id
        calling = await self.begun(name)
        params = types.CancelledNotificationParams(requestId=request, reason="enough")
        await self.client.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
        # A cancelled request may never get a response, and the SDK would wait for it.
        await asyncio.wait([calling], timeout=0.2)
        await ended(calling)

    async def subscribe(self, uri):
        await self.client.subscribe_resource(AnyUrl(uri))

    async def filled_in(self, context, params):
        return self.accept(params.requestedSchema)

    async def heard(self, message):
        if isinstance(message, types.ServerNotification) and isinstance(message.root, types.ResourceUpdatedNotification):
            self.updates.put_nowait(str(message.root.params.uri))


def stdio(**words):
    return stdio_client(StdioServerParameters(**words))


@contextlib.asynccontextmanager
async def connect(plan):
    session = V1()
    async with by_transport(plan, stdio, sse_client, streamable_http_client) as streams, ClientSession(
        streams[0], streams[1], sampling_callback=session.sampled, elicitation_callback=session.filled_in,
        list_roots_callback=session.rooted, logging_callback=session.logged, message_handler=session.heard,
    ) as session.client:  # fmt: skip
        session.revision = (await session.client.initialize()).protocolVersion
        yield session


main(connect)
