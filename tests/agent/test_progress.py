"""Tools say how far they are while they run, from coroutines and threads alike."""

from __future__ import annotations

import asyncio

import pytest

from agentkit import Agent, RunContext, tool
from agentkit.agent import ToolCallFinished, ToolProgress
from agentkit.errors import UsageError
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel


@tool
async def copy(ctx: RunContext, files: int) -> str:
    """Copy files."""
    for at in range(1, files + 1):
        ctx.progress(f"{at} of {files}")
        await asyncio.sleep(0)
    return "copied"


@tool
def pack(ctx: RunContext, files: int) -> str:
    """Pack files."""
    for at in range(1, files + 1):
        ctx.progress(f"{at} of {files}")
    return "packed"


def agent_for(name):
    call = ToolCall(call_id="c", name=name, arguments={"files": 2})
    return Agent(ScriptedModel([[call], "Done."]), tools=[copy, pack])


@pytest.mark.parametrize("name", ["copy", "pack"])
def test_progress_comes_before_the_result(name):
    """In order, with the call that it belongs to; the model and the episode do not see it."""

    async def heard():
        return [event async for event in agent_for(name).stream("Go on")]

    events = asyncio.run(heard())
    told = [one for one in events if isinstance(one, ToolProgress)]
    assert [(one.call_id, one.tool_name, one.text) for one in told] == [
        ("c", name, "1 of 2"),
        ("c", name, "2 of 2"),
    ]
    finished = next(at for at, one in enumerate(events) if isinstance(one, ToolCallFinished))
    assert all(events.index(one) < finished for one in told)
    assert "1 of 2" not in str(events[-1].result.episode.to_json())


def test_nothing_happens_where_nobody_listens():
    """A plain run, and a tool called by a test, go on as ever; after the run it is an error."""
    assert agent_for("pack").run_sync("Go on").output == "Done."
    context = RunContext()
    assert pack(context, files=1) == "packed"
    context._run.is_over = True
    with pytest.raises(UsageError, match="is over"):
        context.progress("late")
