"""An agent behind a server: in this process without sockets, or in a thread with them."""

import asyncio
from contextlib import asynccontextmanager, contextmanager

import httpx
import pytest

from agentkit import Agent, open_store, tool
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
    import json

    return ToolCall(call_id="c1", name=name, arguments=json.loads(arguments or "{}"))


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
    async def open_client(app, key=None):
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        transport = httpx.ASGITransport(app=app)
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


@pytest.fixture
def served():
    """A server in a thread; gives its URL."""

    @contextmanager
    def run(app):
        with serving(app) as url:
            yield url

    return run
