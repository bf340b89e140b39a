"""Calls of one turn run side by side, except those that declare writes."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from agentkit import Agent, Limits, tool
from agentkit.agent import ToolPolicy
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel


async def test_async_tools_run_together(call):
    """Two async calls are under way at the same time: each waits for the other."""
    barrier = asyncio.Barrier(2)

    @tool
    async def meet(name: str) -> str:
        """Meet the other one."""
        await barrier.wait()
        return name

    model = ScriptedModel([[call("meet", id="1", name="a"), call("meet", id="2", name="b")], "ok"])
    result = await Agent(model, tools=[meet], tool_policy=ToolPolicy(timeout_seconds=10)).run("go")

    assert [r.value for r in result.episode.results] == ["a", "b"]


async def test_sync_tools_run_in_threads(call):
    """Two blocking calls are under way at the same time and never block the loop."""
    barrier = threading.Barrier(2, timeout=10)

    @tool
    def meet(name: str) -> str:
        """Meet the other one."""
        barrier.wait()
        return name

    model = ScriptedModel([[call("meet", id="1", name="a"), call("meet", id="2", name="b")], "ok"])
    result = await Agent(model, tools=[meet]).run("go")

    assert [r.value for r in result.episode.results] == ["a", "b"]


async def test_writing_tools_keep_the_models_order(call):
    """Calls whose tools declare writes run one after the other, in the order of the calls."""
    log: list[str] = []

    @tool(effects=("writes",))
    async def write(text: str, wait: float) -> str:
        """Append to the log."""
        log.append(f"start {text}")
        await asyncio.sleep(wait)
        log.append(f"end {text}")
        return text

    calls = [call("write", id="1", text="a", wait=0.02), call("write", id="2", text="b", wait=0.0)]
    await Agent(ScriptedModel([calls, "ok"]), tools=[write]).run("go")

    assert log == ["start a", "end a", "start b", "end b"]


async def test_a_failed_write_does_not_hold_up_the_next(call):
    """The order of writes is kept, but a failure is a value like any other."""

    @tool(effects=("writes",))
    async def write(text: str) -> str:
        """Write, or fail on 'bad'."""
        if text == "bad":
            raise RuntimeError("disk full")
        return text

    calls = [call("write", id="1", text="bad"), call("write", id="2", text="good")]
    result = await Agent(ScriptedModel([calls, "ok"]), tools=[write]).run("go")

    assert [r.status for r in result.episode.results] == ["failed", "ok"]


async def test_context_variables_reach_threads(call):
    """A blocking tool sees the caller's context variables."""
    import contextvars

    user = contextvars.ContextVar("user", default="nobody")

    @tool
    def whoami() -> str:
        """Name the user."""
        return user.get()

    user.set("ada")
    result = await Agent(ScriptedModel([[call("whoami")], "ok"]), tools=[whoami]).run("go")

    assert result.episode.results[0].value == "ada"


async def test_a_thread_serves_call_after_call(call):
    """One that is done is used again; one that hangs keeps no other call from running."""
    threads = []

    @tool(timeout_seconds=0.05, max_retries=0)
    def hang() -> None:
        """Never end."""
        threads.append(threading.get_ident())
        threading.Event().wait(60)

    @tool
    def quick() -> int:
        """Tell the thread."""
        return threading.get_ident()

    script = [[call("quick", id=str(number))] for number in range(20)]
    script += [[call("hang", id="h")], [call("quick", id="q")], "done"]
    result = await Agent(
        ScriptedModel(script), tools=[hang, quick], limits=Limits(max_steps=30)
    ).run("go")

    *before, hung, last = result.episode.results
    assert len({one.value for one in before}) < 10
    assert (hung.failure.kind, last.value not in threads) == ("timeout", True)


@pytest.mark.parametrize("name", ["add", "nothing"])
async def test_an_answer_of_thousands_of_calls_holds_up_nobody(add, name):
    """Some hundreds are looked at, the rest is one failure, and the event loop goes on meanwhile."""
    calls = [
        ToolCall(call_id="same", name=name, arguments={"a": at, "b": 1}) for at in range(12_000)
    ]
    agent = Agent(ScriptedModel([calls, "done"]), tools=[add])
    longest, last = 0.0, time.thread_time()

    async def beat():
        nonlocal longest, last
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            longest, last = max(longest, now - last), now

    beating = asyncio.create_task(beat())
    result = await agent.run("go")
    beating.cancel()
    assert result.output == "done"
    *looked_at, rest = result.episode.results
    assert len(looked_at) == 512
    assert len({one.call_id for one in result.episode.results}) == 513
    assert rest.failure.kind == "limit_exceeded"
    assert "11,488 calls, from this one on, were left out" in rest.text
    assert longest < 0.5
