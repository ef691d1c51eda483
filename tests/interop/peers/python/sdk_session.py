"""SdkSession: the part of a Session that is the same for the clients of all Python SDKs."""
import asyncio
import contextlib
import warnings

from checks import Session

warnings.simplefilter("ignore")  # logging and other features are deprecated, but still supported

LISTS = {"tools": "list_tools", "resources": "list_resources", "prompts": "list_prompts", "resourceTemplates": "list_resource_templates"}


def plain(result):
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


class SdkSession(Session):
    """A Session on `client`. Subclasses override the functions that differ in their SDK."""

    types = None  # the SDK's module
    suffix = ""  # of the methods that return results unparsed
    on_progress = "progress_callback"
    client = None
    revision = ""

    def method(self, name):
        return getattr(self.client, name + self.suffix)

    @staticmethod
    def paged(cursor):
        return {"cursor": cursor}

    @staticmethod
    def address(uri):
        return uri

    async def page(self, what, cursor):
        return plain(await self.method(LISTS[what])(**self.paged(cursor)))

    async def call(self, name, arguments, on_progress=None):
        return plain(await self.method("call_tool")(name, arguments, **{self.on_progress: on_progress}))

    async def begun(self, name):
        """Starts a call of the tool, and returns it after its first progress notification."""
        first = asyncio.Event()

        async def on_progress(*_):
            first.set()

        calling = asyncio.ensure_future(self.call(name, {}, on_progress))
        await first.wait()
        return calling

    async def cancel_after_progress(self, name):
        await ended(await self.begun(name))

    async def read(self, uri):
        return plain(await self.method("read_resource")(self.address(uri)))

    async def prompt(self, name, arguments):
        return plain(await self.method("get_prompt")(name, arguments))

    async def complete(self, prompt, argument, value):
        reference = self.types.PromptReference(type="ref/prompt", name=prompt)
        return plain(await self.method("complete")(reference, {"name": argument, "value": value}))

    async def set_level(self, level):
        await self.client.set_logging_level(level)

    # ---- requests and notifications of the server ----

    def answer(self, messages):
        return self.types.CreateMessageResult(role="assistant", model="parrot", content=messages[0].content)

    def accept(self, schema):
        return self.types.ElicitResult(action="accept", content=self.elicited(schema))

    async def sampled(self, context, params):
        return self.answer(params.messages)

    async def rooted(self, context):
        return self.types.ListRootsResult(roots=[self.types.Root(uri="file:///one"), self.types.Root(uri="file:///two")])

    async def logged(self, params):
        self.logs.put_nowait(plain(params))


async def ended(calling):
    """Cancels a task and waits until it has ended."""
    calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)


@contextlib.asynccontextmanager
async def ending(task):
    """Cancels the task that task() returns, if any, at the end."""
    try:
        yield
    finally:
        if task():
            await ended(task())


def by_transport(plan, stdio, sse, http):
    """Returns the transport of the plan, made by stdio(program, arguments), sse(url) or http(url)."""
    if plan["transport"] == "stdio":
        program, *arguments = plan["command"]
        return stdio(command=program, args=arguments)
    return (sse if plan["transport"] == "sse" else http)(plan["url"])
