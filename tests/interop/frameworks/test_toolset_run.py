"""A toolset's run, driven by nobody's framework."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from agentkit import Library, tool
from agentkit.agent.types import SelectionPolicy
from agentkit.interop import Toolset, ToolsetRun
from agentkit.library import LibraryChange
from agentkit.messages import AssistantMessage, ToolCall, Usage, UserMessage
from agentkit.retrieval import Hit, Retrieval, default_retriever
from agentkit.tracing import Tracing

Write = Callable[..., ToolCall]


def answered(run: ToolsetRun, *calls: ToolCall, text: str = "") -> None:
    """The model has answered with these calls."""
    run.answered(AssistantMessage(text=text, tool_calls=calls), usage=Usage(requests=1))


async def test_an_episode_like_that_of_an_agent(library, store, call):
    """Answers and results become turns, kept in the store when the run is finished."""
    run = await Toolset(library, store=store).start("Twice 4?", metadata={"team": "a"}, model="m")
    first = call("1", "double", x="4")
    answered(run, first)
    result = await run.call(first)
    answered(run, text="It is 8.")
    episode = await run.finish()
    assert (result.status, result.value) == ("ok", 8)
    assert store.get(episode.episode_id) == episode
    assert (episode.output, episode.usage.requests) == ("It is 8.", 2)
    assert (episode.model, episode.metadata) == ("m", {"team": "a"})
    assert episode.calls[0].arguments == {"x": "4"}  # as the model wrote it


async def test_writes_keep_the_order_of_the_answer(call):
    """Of two writing calls the earlier one runs first, though the framework hands it on later."""
    written: list[int] = []

    @tool(effects=["writes"])
    async def write(x: int) -> None:
        """Write."""
        written.append(x)

    run = await Toolset(Library([write])).start("Go")
    one, two = call("1", "write", x=1), call("2", "write", x=2)
    answered(run, one, two)
    later = asyncio.create_task(run.call(two))
    await asyncio.sleep(0.01)
    await run.call(one)
    await later
    assert written == [1, 2]


async def test_a_cancelled_call_holds_up_nobody(call):
    """When a call that others wait for is cancelled, they run."""

    @tool(effects=["writes"])
    async def write(x: int) -> int:
        """Write."""
        await asyncio.sleep(60 if x == 1 else 0)
        return x

    run = await Toolset(Library([write])).start("Go")
    calls = [call(str(x), "write", x=x) for x in (1, 2, 3)]
    answered(run, *calls)
    first, second, third = (asyncio.create_task(run.call(one)) for one in calls)
    await asyncio.sleep(0.01)
    second.cancel()  # one that waits
    await asyncio.sleep(0.01)
    first.cancel()  # the one that runs
    assert (await third).value == 3


async def test_a_conversation_keeps_its_version(store, call):
    """A session goes on with the library version and the tools that it began with."""

    def committed(text: str, version: int) -> None:
        definition = tool(lambda x: x, name="double", description=text).definition
        change = LibraryChange(proposal_id=text, upserts=(definition,))
        store.commit(change, expected_version=version)

    committed("One", 0)
    toolset = Toolset(store)
    first = await toolset.start("Go", session_id="s")
    await first.finish("Done.")
    committed("Two", 1)
    assert toolset.refresh().version == 2
    assert (await toolset.start("Go", session_id="s")).library.version == 1
    assert (await toolset.start("Go", session_id="t")).library.version == 2


async def test_a_run_that_goes_on(library, store, call):
    """The run after an approval tells which episode it resumes."""
    toolset = Toolset(library, store=store)
    run = await toolset.start("Clean up", session_id="s")
    one = call("1", "wipe", path="/tmp")
    answered(run, one)
    await run.call(one)
    waiting = await run.finish(stop_reason="deferred")
    said = (UserMessage(text="Clean up"), AssistantMessage(tool_calls=(one,)))
    later = await toolset.start("", history=said, session_id="s")
    answered(later, one)
    await later.call(one, approval=True)
    assert (await later.finish("Done.")).resumes == waiting.episode_id


async def test_an_approval_is_for_one_call(call):
    """A model that uses the id of an approved call again is asked about like any other."""
    gone: list[str] = []

    @tool(effects=["destructive"])
    async def wipe(path: str) -> None:
        """Wipe."""
        await asyncio.sleep(0.01)
        gone.append(path)

    run = await Toolset(Library([wipe])).start("Clean up")
    one, other = call("1", "wipe", path="/tmp"), call("1", "wipe", path="/")
    answered(run, one)
    meanwhile = asyncio.create_task(run.call(one, approval=True))
    assert (await run.call(other)).status == "deferred"
    assert (await meanwhile).status == "ok"
    answered(run, other)
    assert (await run.call(other)).status == "deferred"
    assert gone == ["/tmp"]


async def test_results_of_others(library, call):
    """What the framework ran or refused itself stands in the episode beside our results."""
    run = await Toolset(library).start("Go")
    calls = [call("1", "theirs", a=1), call("2", "theirs", a=2), call("3", "theirs", a=3)]
    answered(run, *calls)
    run.observed("1", {"rows": 1})
    run.observed("2", "no such table", status="failed")
    run.observed("3", "the user said no", status="denied")
    episode = await run.finish()
    assert [result.status for result in episode.results] == ["ok", "failed", "denied"]
    assert episode.results[0].value == {"rows": 1}
    kinds = [result.failure.kind for result in episode.results if result.failure]
    assert kinds == ["tool_failed", "denied"]


class BrokenRetriever:
    """Raises what it is given, or waits for ever."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    async def retrieve(self, query: str, library: Library) -> Retrieval:
        if self.error is None:
            await asyncio.sleep(60)
            raise AssertionError
        raise self.error


class NotingRetriever:
    """Finds the tools that were asked for by name, and notes what it was asked."""

    def __init__(self) -> None:
        self.queries: list[str] = []

    async def retrieve(self, query: str, library: Library) -> Retrieval:
        self.queries.append(query)
        named = [one for one in library.definitions if one.name in query]
        hits = tuple(Hit(definition=one, score=1.0) for one in named)
        return Retrieval(query=query, hits=hits, offered=tuple(named), cards="", tokens=0)


async def test_what_goes_on_by_its_session(library, store, call):
    """Where episodes tell it, nothing is searched, and the tools are those that there were."""
    retriever = NotingRetriever()
    toolset = Toolset(
        library, store=store, retriever=retriever, selection=SelectionPolicy(search_tool=False)
    )
    run = await toolset.start("double or wipe it", session_id="s")
    one = call("1", "wipe", path="/")
    answered(run, one)
    await run.call(one)
    await run.finish(stop_reason="deferred")
    later = await toolset.start("", session_id="s")
    assert [tool.name for tool in later.offered] == [tool.name for tool in run.offered]
    assert retriever.queries == ["double or wipe it"]


async def test_a_retriever_that_raises(library, store):
    """A run that ends before the model was asked is an episode as well, with what it ended by."""
    toolset = Toolset(library, store=store, retriever=BrokenRetriever(OSError("index is gone")))
    with pytest.raises(OSError, match="index is gone"):
        await toolset.start("Twice 4?", model="m")
    (episode,) = store.select()
    assert (episode.request, episode.turns, episode.model) == ("Twice 4?", (), "m")
    assert (episode.stop_reason, episode.error) == ("error", "OSError: index is gone")


async def test_cancelled_while_it_is_kept(library, store):
    """An episode is in the store even where its run is cancelled before a thread could begin."""
    run = await Toolset(library, store=store).start("Hello")
    task = asyncio.create_task(run.finish("Hi."))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [episode.output for episode in store.select()] == ["Hi."]


async def test_a_tool_that_answers_elsewhere(call):
    """A call of a tool without code is deferred; the value that comes later takes its place."""
    definition = tool(lambda x: x, name="ask", description="Ask somebody.").definition
    run = await Toolset(Library([definition])).start("Go")
    one = call("1", "ask", x=1)
    answered(run, one)
    assert (await run.call(one)).status == "deferred"
    run.observed("1", "an answer")
    episode = await run.finish()
    assert [result.value for result in episode.results] == ["an answer"]


async def test_calls_from_threads(library, call):
    """A framework may hand calls on from threads, each with an event loop of its own."""
    run = await Toolset(library).start("Go")
    calls = [call(str(x), "double", x=x) for x in range(8)]
    answered(run, *calls)

    def in_a_thread(one: ToolCall) -> Any:
        return asyncio.run(run.call(one)).value

    values = await asyncio.gather(*(asyncio.to_thread(in_a_thread, one) for one in calls))
    assert values == [2 * x for x in range(8)]
    assert [result.value for result in (await run.finish()).results] == values


reason = "needs opentelemetry-sdk"
sdk = pytest.importorskip("opentelemetry.sdk.trace", reason=reason)


async def test_spans_below_those_of_the_framework(library, call):
    """Retrieval, calls and refused calls are spans in the framework's trace, which is not ours."""
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = Tracing(tracer_provider=provider)
    toolset = Toolset(library, tracing=tracer, retriever=default_retriever())
    with provider.get_tracer("framework").start_as_current_span("agent run"):
        run = await toolset.start("Delete everything below a path; twice a number?")
        calls = call("1", "double", x=4), call("2", "double", x="four"), call("3", "wipe", path="/")
        run.answered(AssistantMessage(tool_calls=calls))
        for one in calls:
            await run.call(one)
        await run.finish("8")
    spans = sorted(exporter.get_finished_spans(), key=lambda span: span.start_time)
    names = {span.context.span_id: span.name for span in spans}
    told = [(span.parent and names[span.parent.span_id], span.name) for span in spans]
    assert told == [
        (None, "agent run"),
        ("agent run", "retrieval"),
        ("agent run", "execute_tool double"),
        ("agent run", "execute_tool double"),
        ("execute_tool double", "run_guardrail validation"),
        ("agent run", "execute_tool wipe"),
        ("execute_tool wipe", "run_guardrail approval"),
    ]
    failed = [span.name for span in spans if "error.type" in span.attributes]
    assert failed == ["execute_tool double"]  # to wait for a person is no error
