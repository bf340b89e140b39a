"""A tool that raises, hangs, prints or returns nonsense fails as a value; the run goes on."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import threading

import pytest

from agentkit import Agent, ModelRetry, ToolFailed, tool
from agentkit.agent import ToolPolicy
from agentkit.testing import ScriptedModel


async def outcome(function, call, **options):
    entry = (
        tool(function) if callable(function) and not hasattr(function, "definition") else function
    )
    model = ScriptedModel([[call(entry.name)], "done"])
    result = await Agent(model, tools=[entry], **options).run("go")
    assert result.output == "done"
    return result.episode.results[0]


STRAYS = BaseExceptionGroup("tasks", [SystemExit(3), ExceptionGroup("more", [ValueError("odd")])])


@pytest.mark.parametrize(
    "error", [RuntimeError("no luck"), SystemExit(3), StopIteration("odd"), STRAYS]
)
async def test_raises(call, error):
    """Any exception becomes a typed cause and one line, without a stack trace."""

    def broken() -> str:
        """Break."""
        raise error

    result = await outcome(broken, call)

    assert result.failure.kind == "tool_error"
    assert "Traceback" not in result.text
    assert "File " not in result.text


async def test_who_wants_to_end_is_not_held_up_by_a_group(call):
    """Ctrl-C inside a group of exceptions ends the run, as it does alone."""

    def broken() -> str:
        """Break."""
        raise BaseExceptionGroup("tasks", [ValueError("odd"), KeyboardInterrupt()])

    with pytest.raises(BaseExceptionGroup):
        await outcome(broken, call)


async def test_model_retry_is_passed_on_in_the_authors_words(call):
    """ModelRetry says: another try can work."""

    def book() -> str:
        """Book a day."""
        raise ModelRetry("we are closed on Sunday")

    result = await outcome(book, call)

    assert result.failure.kind == "retry_requested"
    assert result.failure.retryable
    assert "we are closed on Sunday" in result.text
    assert "try again" in result.text


async def test_tool_failed_is_final(call):
    """ToolFailed says: do not repeat."""

    def book() -> str:
        """Book a day."""
        raise ToolFailed("the shop has closed for good")

    result = await outcome(book, call)

    assert result.failure.kind == "tool_failed"
    assert not result.failure.retryable
    assert "Do not repeat" in result.text


async def test_async_tool_hangs(call):
    """An async tool that hangs is cancelled at its timeout."""

    async def hang() -> str:
        """Never end."""
        await asyncio.Event().wait()
        return ""

    result = await outcome(hang, call, tool_policy=ToolPolicy(timeout_seconds=0.05))

    assert result.failure.kind == "timeout"
    assert "0.05 seconds" in result.text


def test_sync_tool_hangs_and_the_program_still_ends(call):
    """A blocking tool that hangs is left behind; neither the run nor the loop waits for it."""
    release = threading.Event()

    @tool(timeout_seconds=0.05)
    def hang() -> str:
        """Never end."""
        release.wait(60)
        return ""

    model = ScriptedModel([[call("hang")], "done"])
    result = Agent(model, tools=[hang]).run_sync("go")
    release.set()

    assert result.output == "done"
    assert result.episode.results[0].failure.kind == "timeout"


@pytest.mark.parametrize("value", [float("nan"), object(), {1: object()}])
async def test_returns_what_json_can_not_hold(call, value):
    """The call counts as run, and its result as not showable."""

    def odd():
        """Return something odd."""
        return value

    result = await outcome(odd, call)

    assert result.failure.kind == "unserialisable_result"
    assert not result.failure.retryable


async def test_rich_values_are_converted(call):
    """Dataclasses and dates become JSON data."""

    @dataclasses.dataclass
    class Car:
        name: str
        built: dt.date

    def find():
        """Find a car."""
        return Car(name="Corolla", built=dt.date(2020, 1, 2))

    result = await outcome(find, call)

    assert result.value == {"name": "Corolla", "built": "2020-01-02"}


async def test_long_results_are_shortened_for_the_model_only(call):
    """The model reads a bounded text; the episode keeps the whole value."""
    from agentkit.agent.types import Limits

    def long() -> str:
        """Return much."""
        return "x" * 1000

    result = await outcome(long, call, limits=Limits(max_result_chars=100))

    assert len(result.value) == 1000
    assert result.text.startswith("x" * 100)
    assert len(result.text) < 200
