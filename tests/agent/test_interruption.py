"""Whatever ends a run early, the episode so far is kept."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from agentkit import Agent, open_store, tool
from agentkit.agent.types import ToolCallFinished
from agentkit.errors import ModelConnectionError, RunError
from agentkit.library.store import EpisodeFilter
from agentkit.testing import ScriptedModel

PROGRAM = textwrap.dedent(
    """
    import sys, time
    from agentkit import Agent, tool
    from agentkit.messages import ToolCall
    from agentkit.testing import ScriptedModel

    @tool
    def slow() -> str:
        "Take long."
        print("running", flush=True)
        time.sleep(60)
        return ""

    call = ToolCall(call_id="1", name="slow")
    model = ScriptedModel(["first", [call], "never"])
    agent = Agent(model, tools=[slow], store=sys.argv[1])
    agent.run_sync("hello", session_id="s")
    agent.run_sync("go", session_id="s")
    """
)


def test_ctrl_c_in_mid_run(tmp_path):
    """SIGINT ends the program at once, and the store holds the interrupted run."""
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "running\n"
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)

    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors
    store = open_store(url)
    newest, oldest = store.select(EpisodeFilter(session_id="s"))
    store.close()
    assert oldest.stop_reason == "finished"
    assert newest.stop_reason == "cancelled"
    assert [c.name for c in newest.calls] == ["slow"]


async def test_cancellation_keeps_finished_results(add, call, store):
    """Of two parallel calls, the one that had finished is in the record of the cancelled run."""

    @tool
    async def slow() -> str:
        """Take long."""
        await asyncio.sleep(60)
        return ""

    model = ScriptedModel([[call("add", a=1, b=2), call("slow")]])
    agent = Agent(model, tools=[add, slow], store=store)
    stream = agent.stream("go")
    async for event in stream:
        if isinstance(event, ToolCallFinished):
            break
    await stream.aclose()

    (episode,) = store.select(EpisodeFilter())
    assert [r.value for r in episode.results] == [3]


async def test_an_interrupted_turn_does_not_spoil_the_session(call, store):
    """The next run of the conversation leaves out calls that never got a result."""

    @tool
    async def slow() -> str:
        """Take long."""
        await asyncio.sleep(60)
        return ""

    model = ScriptedModel([[call("slow")], "hello"])
    agent = Agent(model, tools=[slow], store=store)
    task = asyncio.create_task(agent.run("go", session_id="s"))
    while not model.requests:
        await asyncio.sleep(0)
    await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.wait([task])

    await agent.run("hi", session_id="s")

    assert [m.role for m in model.requests[1].messages] == ["user", "user"]


async def test_model_failure_keeps_the_episode(add, call, store):
    """When the model fails for good, the error carries what had happened, and the store keeps it."""
    model = ScriptedModel([[call("add", a=1, b=2)], ModelConnectionError("connection reset")])

    with pytest.raises(RunError, match="connection reset") as caught:
        await Agent(model, tools=[add], store=store).run("go")

    assert isinstance(caught.value.__cause__, ModelConnectionError)
    assert [r.value for r in caught.value.episode.results] == [3]
    assert list(store.select(EpisodeFilter(stop_reason="error"))) == [caught.value.episode]
    assert caught.value.episode.error == "ModelConnectionError: connection reset"
