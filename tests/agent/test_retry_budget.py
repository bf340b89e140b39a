"""Retries are bounded: by the model per tool, and by the executor for tools safe to repeat."""

from __future__ import annotations

from agentkit import Agent, ModelRetry, tool
from agentkit.agent import ToolPolicy
from agentkit.agent.executor import Execution, Executor
from agentkit.agent.selection import SelectedTools
from agentkit.library.library import Library
from agentkit.testing import ScriptedModel


def executor(library, sleeps, retries=2):
    async def sleep(seconds):
        sleeps.append(seconds)

    return Executor(
        library=library,
        tools=SelectedTools.whole(library),
        shared=Execution(policy=ToolPolicy(retries=retries, backoff_seconds=0.5, sleep=sleep)),
    )


def flaky(failures, **options):
    left = [failures]

    @tool(**options)
    async def fetch() -> str:
        """Fetch a page."""
        if left[0]:
            left[0] -= 1
            raise ConnectionError("reset by peer")
        return "page"

    return fetch


async def test_read_only_tool_is_repeated_with_growing_waits(call):
    """A tool that changes nothing is tried again after an exception, waiting longer each time."""
    sleeps = []

    (result,) = await executor(Library([flaky(2, effects=("reads",))]), sleeps).execute(
        [call("fetch")]
    )

    assert (result.value, result.attempts, sleeps) == ("page", 3, [0.5, 1.0])


async def test_a_generous_budget_does_not_repeat_a_call_for_ever(call):
    """What the model may try a thousand times is repeated three times: each wait is the double."""
    sleeps = []
    runs = executor(Library([flaky(1_000, effects=("reads",))]), sleeps, retries=1_000)

    (result,) = await runs.execute([call("fetch")])

    assert (result.attempts, sleeps) == (4, [0.5, 1.0, 2.0])
    assert result.failure.retryable  # by the model


async def test_a_tool_of_unknown_effect_runs_once(call):
    """Without a declaration the executor does not dare to run a tool twice."""
    (result,) = await executor(Library([flaky(1)]), []).execute([call("fetch")])

    assert result.status == "failed"
    assert result.attempts == 1


async def test_a_destructive_tool_never_runs_twice(call):
    """Not even when it claims to be idempotent."""
    fetch = flaky(1, effects=("destructive", "idempotent"), requires_approval=False)

    (result,) = await executor(Library([fetch]), []).execute([call("fetch")])

    assert result.status == "failed"
    assert result.attempts == 1


async def test_the_models_retries_run_out(call):
    """After its budget, a tool's failure tells the model to stop trying."""

    @tool(max_retries=1)
    def book() -> str:
        """Book a day."""
        raise ModelRetry("another day, please")

    calls = [[call("book", id=str(i))] for i in range(3)]
    result = await Agent(ScriptedModel([*calls, "I give up."]), tools=[book]).run("go")

    assert [r.failure.retryable for r in result.episode.results] == [True, False, False]
    assert "Do not repeat" in result.episode.results[1].text
