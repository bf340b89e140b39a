"""An agent behind a server: in this process without sockets, or in a thread with them."""

import asyncio
import functools
import json
import os
import re
import ssl
import sys
from contextlib import asynccontextmanager

import httpx
import openai
import pytest
from support.app_stage import AppStage

from agentkit import Agent, open_store, tool
from agentkit.library.memory import MemoryStore
from agentkit.library.sqlite.store import SQLiteStore
from agentkit.messages import AssistantMessage, ToolCall, Usage
from agentkit.models.base import ModelResponse
from agentkit.server import Keys, create_app, serving
from agentkit.testing import FunctionModel
from agentkit.tools import ToolDefinition
from agentkit.tools.tool import Tool

KEY = "sk-0123456789abcdef"
OTHER_KEY = "sk-fedcba9876543210"


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(effects=["destructive"])
def wipe(path: str) -> str:
    """Delete a file."""
    return f"{path} is gone"


@tool
async def nap(seconds: float) -> str:
    """Sleep for a while."""
    await asyncio.sleep(seconds)
    return "rested"


@tool
def broken() -> str:
    """Fail."""
    raise RuntimeError("the tool is broken")


DESK = Tool(definition=ToolDefinition.from_schema("desk.ask", "Ask the desk.", {"type": "object"}))
TOOLS = (add, wipe, nap, broken, DESK)


def follow_orders(request):
    """Does what the last message says: ``call NAME {...}``, ``fail``, or repeats it.

    After a result it says what the result was.
    """
    last = request.messages[-1]
    usage = Usage(requests=1, prompt_tokens=7, completion_tokens=3, cached_tokens=2)
    if last.role == "tool":
        message = AssistantMessage(text=f"It gave: {last.text}")
        return ModelResponse(message=message, usage=usage, finish_reason="stop")
    order, _, rest = last.text.partition(" ")
    if order == "call":
        name, _, arguments = rest.partition(" ")
        calls = (_call(name, arguments),)
        return ModelResponse(
            message=AssistantMessage(tool_calls=calls), usage=usage, finish_reason="tool_calls"
        )
    message = AssistantMessage(text=f"You said: {last.text}")
    return ModelResponse(message=message, usage=usage, finish_reason="stop")


def _call(name, arguments):
    return ToolCall(call_id="c1", name=name, arguments=json.loads(arguments or "{}"))


_READS_AND_WRITES = ("load", "commit", "versions", "history", "events")
_OF_EPISODES = ("append", "append_many", "get", "select", "close")


@pytest.fixture(autouse=True)
def no_store_on_the_loop(monkeypatch):
    """Fails a test in which the server, or its agent, called a store on an event loop's thread.

    What a test itself does, and making an agent, may wait.
    """
    found = []

    def watched(method):
        @functools.wraps(method)
        def call(self, *arguments, **options):
            if _runs_on_loop() and (culprit := _caller()):
                found.append(f"{type(self).__name__}.{method.__name__} by {culprit}")
            return method(self, *arguments, **options)

        return call

    for kind in (MemoryStore, SQLiteStore):
        for name in _READS_AND_WRITES + _OF_EPISODES:
            monkeypatch.setattr(kind, name, watched(getattr(kind, name)))
    yield
    assert not found


def _runs_on_loop():
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _caller():
    """The first function of the server or its agent in the stack; None below ``Agent()``."""
    frame, found = sys._getframe(2), None
    while frame is not None:
        module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        if module == "agentkit.agent.agent" and name == "__init__":
            return None
        if found is None and module.startswith(_WATCHED):
            found = f"{module}.{name}"
        frame = frame.f_back
    return found


_WATCHED = (
    *("agentkit.agent", "agentkit.server"),
    *(
        f"agentkit.evolution.serving.{name}"
        for name in ("background", "judging", "shadow", "watch")
    ),
)


@pytest.fixture
def store():
    """Where episodes are kept."""
    return open_store("memory:")


@pytest.fixture
def make_app(store):
    """Makes an application; options of the agent go in ``agent``, all others to ``create_app``."""

    def make(model=follow_orders, *, agent=None, **options):
        model = model if not callable(model) or hasattr(model, "complete") else FunctionModel(model)
        settings = {"tools": TOOLS, "store": store, **(agent or {})}
        return create_app(Agent(model, **settings), **options)

    return make


@pytest.fixture
def keys():
    """Two keys."""
    return Keys({"shop": KEY, "desk": OTHER_KEY})


@pytest.fixture
def talk():
    """A client that reaches an application without sockets."""

    @asynccontextmanager
    async def open_client(app, key=None, address="127.0.0.1"):
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        transport = httpx.ASGITransport(app=app, client=(address, 123))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://localhost", headers=headers
        ) as client:
            yield client

    return open_client


@pytest.fixture
def body():
    """The body of a request."""

    def make(*texts, **fields):
        messages = [{"role": "user", "content": text} for text in texts]
        return {"model": "agent", "messages": messages, **fields}

    return make


@pytest.fixture(scope="module")
def stage():
    """A server for the tests of one module."""
    with AppStage() as stage:
        yield stage


@pytest.fixture
def served(stage):
    """Shows an application at the module's server; gives its URL."""
    return stage.showing


@pytest.fixture
def client(served, no_tls):
    """OpenAI's client of an application, which does not try again."""

    @asynccontextmanager
    async def open_client(app, key=KEY):
        http = openai.DefaultAsyncHttpxClient(verify=no_tls)
        with served(app) as url:
            async with openai.AsyncOpenAI(
                base_url=f"{url}/v1", api_key=key, max_retries=0, http_client=http
            ) as sdk:
                yield sdk

    return open_client


@pytest.fixture
def served_alone():
    """Gives an application its own server, for tests of starting and stopping."""
    return serving


@pytest.fixture(scope="session")
def no_tls():
    """What HTTP clients take as ``verify``; making their own takes each of them 65 ms."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


PLUGIN = '''
import asyncio
from agentkit.testing import FunctionModel

async def answer(request):
    """Takes as long as the message says."""
    await asyncio.sleep(float(request.messages[-1].text))
    return "Done."

def open_sleepy(name):
    return FunctionModel(answer, name="sleepy")
'''
MAIN = "from agentkit.cli.main import main; main()"


@pytest.fixture
def plugin(plug_in):
    """A folder for PYTHONPATH with a model named ``sleepy:``."""
    entry = "[agentkit.models]\nsleepy = agentkit_sleepy:open_sleepy\n"
    return plug_in("agentkit_sleepy", PLUGIN, entry)


@pytest.fixture
def start(plugin, tmp_path):
    """Starts ``agentkit serve`` as a process; gives it, with what it said first, and its URL."""

    @asynccontextmanager
    async def run(*options):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", MAIN, "serve", "--model", "sleepy:a"),
            *("--port", "0", "--store", str(tmp_path / "library.db"), *options),
            env={**os.environ, "PYTHONPATH": str(plugin), "PYTHONUNBUFFERED": "1"},
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            greeting = (await process.stderr.readuntil(b"Ctrl-C")).decode()
            process.greeting = greeting
            yield process, re.search(r"at (http://\S+)/v1", greeting)[1]
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()

    return run
