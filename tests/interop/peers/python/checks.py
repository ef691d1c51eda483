"""The checks of every Python client with a server that has the fixture (peers/README.md).

A client module passes a Session to main(). main() prints one JSON object a line: {"feature", "status", "reason"}.
"""
import asyncio
import json
import sys
import traceback

FEATURE_SECONDS = 60
UNICODE = "h\u00e9llo\n\U0001f600 \u6f22\u5b57 \u2028 \"\\ \u0001"
LARGE = 1 << 20
TOOLS = {"add", "cancelled", "confirm", "echo", "fail", "large", "sample", "steps", "touch", "wait", "where"}


class Unsupported(Exception):
    """The SDK does not support the feature. The message has the reason."""


class Session:
    """The interface that a client module implements. Results are dicts with the member names of MCP."""

    prefix = ""

    def __init__(self):
        self.logs = asyncio.Queue()  # params of notifications/message
        self.updates = asyncio.Queue()  # URIs of notifications/resources/updated

    async def page(self, what, cursor):
        """Returns the result of one list request: a page of tools, resources, resourceTemplates or prompts."""
        raise NotImplementedError

    async def call(self, name, arguments, on_progress=None):
        raise NotImplementedError

    async def cancel_after_progress(self, name):
        """Calls the tool and cancels the request at its first progress notification. Returns once the call has ended."""
        raise NotImplementedError

    async def read(self, uri):
        raise NotImplementedError

    async def prompt(self, name, arguments):
        raise NotImplementedError

    async def complete(self, prompt, argument, value):
        raise NotImplementedError

    async def set_level(self, level):
        raise NotImplementedError

    async def subscribe(self, uri):
        raise NotImplementedError

    # ---- responses to requests of the server, the same for all clients ----

    @staticmethod
    def elicited(schema):
        properties = schema["properties"]
        return {"name": "Ada"} if "name" in properties else {"sure": True}

    async def pages(self, what):
        pages, cursor = [], None
        while True:
            page = await self.page(what, cursor)
            pages.append(page[what])
            cursor = page.get("nextCursor")
            if cursor is None:
                return pages

    async def every(self, what):
        return [entry for page in await self.pages(what) for entry in page]

    async def text(self, tool, arguments=None, on_progress=None):
        result = await self.call(self.prefix + tool, arguments or {}, on_progress)
        text = "".join(block.get("text", "") for block in result["content"])
        if result.get("isError"):
            raise AssertionError(f"{tool} answered with the error {text!r}")
        return text


def same(got, wanted):
    if got != wanted:
        raise AssertionError(f"got {str(got)[:300]!r}, wanted {str(wanted)[:300]!r}")


async def refused(awaitable, what):
    try:
        result = await awaitable
    except (AssertionError, asyncio.CancelledError):
        raise
    except Exception:
        return
    if not (isinstance(result, dict) and result.get("isError")):
        raise AssertionError(f"{what} was not refused: {result}")


async def check_list(session):
    tools = {tool["name"]: tool for tool in await session.every("tools")}
    missing = {session.prefix + name for name in TOOLS} - set(tools)
    same(missing, set())
    same(sorted(tools[session.prefix + "add"]["inputSchema"]["properties"]), ["a", "b"])


async def check_call(session):
    same(await session.text("echo", {"message": "hello"}), "hello")


async def check_error(session):
    result = await session.call(session.prefix + "fail", {})
    same(result.get("isError"), True)
    if "it does not work" not in result["content"][0]["text"]:
        raise AssertionError(f"the tool's own words are lost: {result}")
    await refused(session.call(session.prefix + "missing", {}), "a tool that does not exist")


async def check_structured(session):
    result = await session.call(session.prefix + "add", {"a": 2, "b": 3.5})
    same(result.get("structuredContent"), {"sum": 5.5})


async def check_progress(session):
    steps = []

    async def on_progress(progress, total, message):
        steps.append((progress, total, message))

    same(await session.text("steps", {"to": 3}, on_progress), "3 steps")
    same(steps, [(number, 3, f"step {number}") for number in (1, 2, 3)])


def words(data):
    """Returns the text of a log message, which fastmcp wraps in an object."""
    return data["msg"] if isinstance(data, dict) else data


async def check_log(session):
    await session.set_level("info")
    await session.text("steps", {"to": 2})
    said = [words((await session.logs.get())["data"]) for _ in range(2)]
    same(said, ["at step 1", "at step 2"])
    same(session.logs.qsize(), 0)  # the tool's debug message is below the level


async def check_cancel(session):
    await session.cancel_after_progress(session.prefix + "wait")
    same(await session.text("cancelled"), "1")


async def check_elicit(session):
    same(await session.text("confirm"), "Ada is sure")


async def check_sample(session):
    same(await session.text("sample", {"message": "hi"}), "parrot: hi")


async def check_roots(session):
    same((await session.text("where")).split(), ["file:///one", "file:///two"])


async def check_resources(session):
    listed = {resource["uri"] for resource in await session.every("resources")}
    same({"memo://one", "pixel://red"} - listed, set())
    same((await session.read("memo://one"))["contents"][0]["text"], "the first memo")
    blob = (await session.read("pixel://red"))["contents"][0]
    same((blob["mimeType"], blob["blob"][:8]), ("image/png", "iVBORw0K"))
    await refused(session.read("nothing://here"), "a resource that does not exist")


async def check_templates(session):
    listed = [template["uriTemplate"] for template in await session.every("resourceTemplates")]
    same("memos://{name}" in listed, True)
    same((await session.read("memos://two"))["contents"][0]["text"], "memo two")


async def check_subscribe(session):
    await session.subscribe("memo://one")
    same(await session.text("touch"), "touched")
    same((await session.updates.get()).rstrip("/"), "memo://one")


async def check_prompts(session):
    listed = {prompt["name"]: prompt for prompt in await session.every("prompts")}
    same(listed[session.prefix + "greet"]["arguments"][0]["name"], "name")
    prompt = await session.prompt(session.prefix + "greet", {"name": "Ada"})
    same(prompt["messages"][0]["content"]["text"], "Say hello to Ada")


async def check_completion(session):
    answer = await session.complete(session.prefix + "greet", "name", "al")
    same(answer["completion"]["values"], ["alice", "albert"])


async def check_pagination(session):
    pages = await session.pages("tools")
    if len(pages) < session.least_pages:
        raise AssertionError(f"{len(pages)} page(s) of tools")
    same({session.prefix + name for name in TOOLS} - {tool["name"] for page in pages for tool in page}, set())


async def check_large(session):
    same(len(await session.text("large", {"bytes": LARGE})), LARGE)


async def check_unicode(session):
    same(await session.text("echo", {"message": UNICODE}), UNICODE)


async def check_concurrent(session):
    messages = [f"message {number}" for number in range(40)]
    same(await asyncio.gather(*(session.text("echo", {"message": message}) for message in messages)), messages)


# The checks after which a gateway no longer shares the server with other clients are the last ones.
FEATURES = ["list", "call", "error", "structured", "unicode", "large", "concurrent", "pagination", "log", "progress",
            "cancel", "resources", "templates", "subscribe", "prompts", "completion", "elicit", "sample", "roots"]  # fmt: skip


def report(feature, status, reason=""):
    print(json.dumps({"feature": feature, "status": status, "reason": reason}), flush=True)


async def run(session, plan):
    session.prefix = plan.get("prefix", "")
    session.least_pages = plan.get("least_pages", 2)
    for feature in FEATURES:
        if feature in plan.get("skip", ()):
            continue
        try:
            await asyncio.wait_for(globals()[f"check_{feature}"](session), plan.get("seconds", FEATURE_SECONDS))
            report(feature, "pass")
        except Unsupported as reason:
            report(feature, "unsupported", str(reason))
        except (asyncio.TimeoutError, TimeoutError):
            report(feature, "fail", f"not finished in {plan.get('seconds', FEATURE_SECONDS)} s")
        except Exception as error:  # the SDK does not document its exceptions
            if "-v" in sys.argv:
                traceback.print_exc()
            report(feature, "fail", f"{type(error).__name__}: {error}"[:600])


def main(connect):
    """`connect(plan, session)` is an async context manager that yields the connected Session."""
    plan = json.loads(sys.argv[1])

    async def connected():
        async with connect(plan) as session:
            report("connect", "pass", getattr(session, "revision", ""))
            await run(session, plan)

    try:
        asyncio.run(connected())
    except Exception as error:
        traceback.print_exc()
        report("connect", "fail", f"{type(error).__name__}: {error}"[:600])
        sys.exit(1)
