"""Calling code as a user writes it, checked by mypy (strict) and pyright; it is never run.

``assert_type`` pins what a checker infers: a change of a public type shows up here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, assert_type

from agentkit import (
    Agent,
    AgentKitError,
    Approval,
    Audio,
    Block,
    CapToolResults,
    ChatModel,
    Effects,
    Episode,
    FallbackModel,
    File,
    FunctionModel,
    Image,
    KeepLastTurns,
    Keys,
    Library,
    Limits,
    ModelRequest,
    ModelRetry,
    Rewrite,
    RunContext,
    RunFinished,
    RunResult,
    ScriptedModel,
    TextDelta,
    TokenBudget,
    Tool,
    ToolCall,
    ToolCallFinished,
    ToolDefinition,
    ToolFailed,
    composite,
    create_app,
    guardrail,
    open_store,
    resolve_model,
    tool,
)
from agentkit.agent import Guardrail, RefineSettings, ToolPolicy
from agentkit.agent.types import RunEvent
from agentkit.composites.composite import composite_tool
from agentkit.composites.problems import CompositeLimits
from agentkit.composites.source import compose
from agentkit.composites.type_check import Expr
from agentkit.errors import CompositeError, SourceProblem
from agentkit.library.store import (
    EpisodeFilter,
    EpisodeStore,
    LibraryChange,
    Store,
    ToolRevision,
    ToolStore,
)
from agentkit.media import Media
from agentkit.messages import Message, ToolResult, Usage
from agentkit.models.base import ModelResponse, ModelSettings, StreamingChatModel
from agentkit.retrieval.retriever import Retrieval, Retriever


@tool
def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


@tool(name="delete_car", effects=("destructive",), timeout_seconds=5.0, max_retries=0)
async def delete(number: str) -> str:
    """Delete a car."""
    if not number:
        raise ModelRetry("give a number")
    raise ToolFailed("the database is read-only")


@composite
def add_three(a: int, b: int, c: int) -> int:
    """Add three numbers."""
    total: int = add(add(a, b), c)
    return total


@composite(
    tools=Library([add]),
    pre=["a > 0"],
    examples=[{"arguments": {"a": 1, "keep": "True"}, "result": 2}],
    limits=CompositeLimits(child_calls=3),
    contracts="always",
)
async def add_one(a: int, keep: Annotated[str, Expr("row -> bool")]) -> int:
    """Add one."""
    total: int = add(a, 1)
    return total


assert_type(add_three, Tool)
assert_type(add_one, Tool)
assert_type(add, Tool)
assert_type(delete, Tool)
assert_type(add.definition, ToolDefinition)
assert_type(add.definition.signature.effects, Effects)
assert_type(add.definition.digest, str)


def libraries() -> Library:
    """Snapshots are built, looked up and iterated."""
    library = Library([add, delete])
    assert_type(library["add"], Tool)
    assert_type(library.get("sub"), Tool | None)
    assert_type([entry for entry in library], list[Tool])  # noqa: C416 - the iteration is the point
    assert_type(library.definitions, tuple[ToolDefinition, ...])
    return library.with_tools([add]).without(["delete_car"])


def composites(text: str, library: Library) -> Tool:
    """Text becomes a definition; a definition and its children become a tool."""
    definition = compose(text, library.tools, limits=CompositeLimits(nodes=100), reference="file")
    assert_type(definition, ToolDefinition)
    try:
        return composite_tool(definition, library.tools, contracts="always")
    except CompositeError as error:
        assert_type(error.problems, tuple[SourceProblem, ...])
        raise


def stores(url: str) -> int:
    """A store is both halves; each half can be asked for alone."""
    store = open_store(url)
    assert_type(store, Store)
    tools: ToolStore = store
    episodes: EpisodeStore = store
    assert_type(tools.history("add"), Sequence[ToolRevision])
    for episode in episodes.select(EpisodeFilter(session_id="chat", limit=3)):
        assert_type(episode, Episode)
        assert_type(episode.usage, Usage)
    change = LibraryChange(proposal_id="add-1", upserts=(add.definition,))
    return tools.commit(change, expected_version=tools.load().version)


class Echo:
    """A model needs a name and one method; no base class."""

    @property
    def name(self) -> str:
        """The model's name."""
        return "echo"

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer with what was asked."""
        from agentkit.messages import AssistantMessage

        return ModelResponse(message=AssistantMessage(text=str(request.messages[-1])))


class FirstTools:
    """A retriever needs one method."""

    async def retrieve(self, query: str, library: Library) -> Retrieval:
        """Offer the first three."""
        return Retrieval(query=query, hits=(), offered=library.definitions[:3], cards="", tokens=0)


model: ChatModel = Echo()
retriever: Retriever = FirstTools()
scripted: ChatModel = ScriptedModel(["Hello."])


def answer(request: ModelRequest) -> str:
    """What a ``FunctionModel`` is made of."""
    return f"{len(request.messages)} messages"


functional: ChatModel = FunctionModel(answer)


def approve(call: ToolCall, asked: Tool) -> Approval | bool:
    """An approver sees the call and the tool."""
    return Approval(approved=asked.name != "delete_car", reason=f"not {call.name}")


def plain_function(text: str, mode: Literal["a", "b"] = "a") -> str:
    """A function that was not decorated is welcome, too."""
    return text + mode


agent = Agent(
    model,
    tools=[add, delete, plain_function],
    instructions="Be brief.",
    retriever=retriever,
    refine=RefineSettings(mode="adaptive", max_refinements=3),
    limits=Limits(max_steps=5, max_cost_usd=0.1),
    tool_policy=ToolPolicy(approve=approve),
    settings=ModelSettings(temperature=0, max_tokens=100),
)


async def running(history: Sequence[Message]) -> RunResult:
    """Runs are awaited, bridged, streamed and resumed."""
    result = await agent.run("1 + 2?", history=history, metadata={"user": "ada"})
    assert_type(result, RunResult)
    assert_type(result.text, str)
    assert_type(result.deferred, tuple[ToolCall, ...])
    assert_type(result.episode.results, tuple[ToolResult, ...])
    assert_type(result.messages, tuple[Message, ...])
    return await agent.resume(result, approvals={"1": True}, values={"2": 3})


async def streaming() -> str:
    """Events are a closed union, told apart by type."""
    events: AsyncIterator[RunEvent] = agent.stream("1 + 2?", session_id="chat")
    text = ""
    async for event in events:
        match event:
            case TextDelta(text=piece):
                text += piece
            case ToolCallFinished(result=outcome):
                assert_type(outcome, ToolResult)
            case RunFinished(result=result):
                assert_type(result, RunResult)
            case _:
                pass
    return text


def resolving(name: str) -> str:
    """Names become models; errors share a root."""
    try:
        found = resolve_model(name)
    except AgentKitError as error:
        return str(error)
    assert_type(found, ChatModel)
    return "streams" if isinstance(found, StreamingChatModel) else found.name


@dataclass
class Shop:
    """What the tools of a run work with."""

    customer: str


@dataclass
class Offer:
    """What an agent answers."""

    price: float


@tool
async def my_orders(ctx: RunContext[Shop], limit: int = 5) -> str:
    """List orders."""
    assert_type(ctx.deps, Shop)
    assert_type(ctx.usage, Usage)
    assert_type(ctx.session_id, str | None)
    assert_type(ctx.attempt, int)
    assert_type(ctx.cancel_token.is_set(), bool)
    return f"{limit} orders of {ctx.deps.customer}"


@guardrail("output", timeout_seconds=1.0)
async def no_gifts(ctx: RunContext[Shop], offer: Offer) -> Block | Rewrite | None:
    """Nothing is free."""
    return Block(f"not for {ctx.deps.customer}") if offer.price <= 0 else None


async def who(ctx: RunContext[Shop]) -> str:
    """Whom the agent talks to."""
    return ctx.deps.customer


def shorter(ctx: RunContext[Shop], messages: Sequence[Message]) -> Sequence[Message]:
    """A history processor."""
    return messages[-ctx.attempt :]


assert_type(no_gifts, Guardrail[Shop])
shop_agent: Agent[Shop, Offer] = Agent(
    FallbackModel(model, "openai:gpt-6-luna"),
    tools=[my_orders],
    deps_type=Shop,
    output_type=Offer,
    instructions=["Be brief.", who],
    guardrails=[no_gifts],
    history_processors=[KeepLastTurns(3), TokenBudget(1000), CapToolResults(100), shorter],
)
assert_type(Agent(model, deps_type=Shop, output_type=Offer), Agent[Shop, Offer])
assert_type(Agent(model), Agent)


async def with_deps(shop: Shop) -> Offer:
    """Deps and answers have the types that the agent was made with."""
    result = await shop_agent.run("An offer?", deps=shop)
    assert_type(result, RunResult[Offer])
    assert_type(result.output, Offer)
    result = await shop_agent.resume(result, deps=shop, approvals={"1": True})
    async for event in shop_agent.stream("An offer?", deps=shop):
        assert_type(event, RunEvent)
    return shop_agent.run_sync("An offer?", deps=shop).output


desk: Agent[Shop, str] = Agent(
    model,
    tools=[shop_agent.handoff(description="Makes offers."), shop_agent.as_tool()],
    deps_type=Shop,
)
assert_type(shop_agent.handoff(), Tool)
assert_type(shop_agent.as_tool(name="offers"), Tool)
assert_type(desk.run_sync("Hi", deps=Shop("Ada")), RunResult[str])
create_app(
    shop_agent, keys=Keys({"website": "sk-0123456789abcdef"}), deps_factory=lambda _: Shop("a")
)


@guardrail("tool_call", tools=["my_orders"])
def few(ctx: RunContext[Shop], call: ToolCall) -> Rewrite | None:
    """A guardrail on calls."""
    return Rewrite({"limit": 3}) if ctx.deps.customer else None


assert_type(few, Guardrail[Shop])
Agent(model, deps_type=Shop, guardrails=[few, no_gifts])


# Misuse that a checker has to catch: an unused ignore is an error in both.
Agent(model, refine="sometimes")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Limits(5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
agent.run_sync(request=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
shop_agent.run_sync("Hi", deps="Ada")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
guarded: Agent[str, str] = Agent(model, deps_type=str, guardrails=[few])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]


@tool
def of_another(ctx: RunContext[Shop]) -> float:
    """What deps do not have."""
    return ctx.deps.price  # type: ignore[attr-defined,no-any-return]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


async def media(agent: Agent[None, str]) -> None:
    """A request is a text, a medium, or several of both; tools return them."""
    photo = Image(path="photo.png", media_type="image/png")
    result = await agent.run(["What is on this?", photo, File(data=b"text"), Audio(data=b"")])
    assert_type(result, RunResult[str])
    assert_type(result.episode.media, tuple[Media, ...])
    parts: list[str | Image] = ["Two:", photo, Image(url="https://x.example/a.png")]
    async for _ in agent.stream(parts):
        pass
    await agent.run(photo)

    @tool
    def shot(ctx: RunContext[None]) -> Image:
        """Take a photo."""
        assert_type(ctx.media, tuple[Media, ...])
        return photo

    assert_type(shot, Tool)
