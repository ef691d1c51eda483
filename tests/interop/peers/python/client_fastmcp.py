"""client_fastmcp.py PLAN: the checks with the client of fastmcp, in the era that the plan's `mode` says."""
import contextlib

import mcp_types as types
from checks import Unsupported, main
from fastmcp import Client
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from sdk_session import SdkSession, by_transport


class Fast(SdkSession):
    types = types
    suffix = "_mcp"
    on_progress = "progress_handler"

    async def set_level(self, level):
        if self.revision >= "2026-07-28":
            raise Unsupported("the client cannot ask for log messages in 2026-07-28")
        await super().set_level(level)

    async def subscribe(self, uri):
        raise Unsupported("the client has no subscriptions")

    async def sampled(self, messages, params, context):
        return self.answer(messages)

    async def filled_in(self, message, response_type, params, context):
        return self.accept(params.requested_schema)


@contextlib.asynccontextmanager
async def connect(plan):
    session = Fast()
    async with Client(
        by_transport(plan, StdioTransport, SSETransport, StreamableHttpTransport), sampling_handler=session.sampled,
        elicitation_handler=session.filled_in, log_handler=session.logged, roots=["file:///one", "file:///two"],
        mode=plan.get("mode", "auto"),
    ) as session.client:  # fmt: skip
        session.revision = session.client.protocol_version
        yield session


main(connect)
