"""The record of a run is kept, whatever ends it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace

import pytest

from agentkit import Agent, open_store, tool
from agentkit.agent.session import continuation_id, happened, new_episode_id
from agentkit.agent.types import Approval, ToolCallFinished
from agentkit.errors import ModelConnectionError, RunError
from agentkit.library.store import EpisodeFilter
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.testing import FunctionModel, ScriptedModel
from agentkit.tools import ToolDefinition
from agentkit.tools.tool import Tool

PROGRAM = textwrap.dedent(
    """
    import sys, time
    from agentkit import Agent, tool
    from agentkit.messages import ToolCall
    from agentkit.testing import ScriptedModel

    @tool
    def slow() -> str:
        "Take long."
        time.sleep(0.3)  # a signal just before the loop's select is not seen before the next event
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


DESK = Tool(definition=ToolDefinition(name="desk"))
"""Nobody in this process answers it."""


class BrokenRetriever:
    """Raises what it is given; without an error it waits for ever."""

    def __init__(self, error=None):
        self.error = error

    async def retrieve(self, query, library):
        if self.error is None:
            await asyncio.Event().wait()
        raise self.error


async def test_a_retriever_that_raises_leaves_an_episode(store):
    """A run that ends while its tools are chosen is kept, with what it ended by."""
    retriever = BrokenRetriever(OSError("the index is gone"))
    agent = Agent(ScriptedModel([]), store=store, retriever=retriever)
    with pytest.raises(OSError, match="the index is gone"):
        await agent.run("Hi")
    (episode,) = store.select()
    assert (episode.request, episode.turns, episode.stop_reason) == ("Hi", (), "error")
    assert episode.error == "OSError: the index is gone"


async def test_a_caller_can_name_the_episode_before_it_ends(store):
    """A run and a stream take the id of their episode; that of a resumed run says which waited."""
    call = ToolCall(call_id="c", name="desk")
    agent = Agent(ScriptedModel([[call], "Done.", "Hello."]), store=store, tools=[DESK])
    ids = [new_episode_id() for _ in range(2)]
    waiting = await agent.run("Ask the desk", episode_id=ids[0])
    result = await agent.resume(waiting, values={"c": "yes"})
    events = [event async for event in agent.stream("Hi", episode_id=ids[1])]
    assert result.episode.episode_id == continuation_id(ids[0])
    assert events[-1].result.episode.episode_id == ids[1]
    assert {one.episode_id for one in happened(store.select())} == {*ids, continuation_id(ids[0])}


async def test_a_session_that_waits_twice_repeats_no_call(store):
    """Each call and its result reach the model once, however often the run was resumed."""
    seen = []

    def ask_twice(request):
        seen.append([(message.role, message.text) for message in request.messages])
        if len(seen) < 3:
            return [ToolCall(call_id=f"c{len(seen)}", name="desk")]
        return "Done."

    agent = Agent(FunctionModel(ask_twice), tools=[DESK], store=store)
    first = await agent.run("Ask", session_id="s")
    second = await agent.resume(first.episode, values={"c1": "one"})
    await agent.resume(second.episode, values={"c2": "two"})
    asked = [("user", "Ask"), ("assistant", "")]
    assert seen[-1] == [*asked, ("tool", "one"), ("assistant", ""), ("tool", "two")]


async def test_answers_that_are_broken_off_leave_an_episode(store):
    """What had a result by then is kept with it: the calls that were run, and the values given."""
    began = asyncio.Event()

    @tool(effects=("destructive",))
    async def slow():
        """Take for ever."""
        began.set()
        await asyncio.Event().wait()

    @tool(effects=("destructive",))
    async def quick():
        """Send something."""
        return "sent"

    calls = [ToolCall(call_id=name, name=name) for name in ("desk", "quick", "slow")]
    agent = Agent(ScriptedModel([calls]), store=store, tools=[DESK, quick, slow])
    waiting = await agent.run("Do it", session_id="s")
    yes = {"quick": Approval(approved=True), "slow": Approval(approved=True)}
    run = asyncio.create_task(agent.resume(waiting, approvals=yes, values={"desk": "yes"}))
    await began.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    broken = next(iter(store.select()))
    assert (broken.stop_reason, broken.resumes) == ("cancelled", waiting.episode.episode_id)
    results = {result.call_id: result.value for result in broken.turns[-1].results}
    assert results == {"desk": "yes", "quick": "sent"}


async def test_a_run_that_was_resumed_twice_counts_as_resumed_last(store):
    """A conversation of an older store shows each call once, though two runs went on from it."""
    seen = []

    def talk(request):
        seen.append([(message.role, message.text) for message in request.messages])
        return [ToolCall(call_id="c", name="desk")] if len(seen) == 1 else f"Answer {len(seen)}."

    agent = Agent(FunctionModel(talk), tools=[DESK], store=store)
    waiting = await agent.run("Ask", session_id="s")
    first = (await agent.resume(waiting.episode, values={"c": "one"})).episode
    done = replace(first.turns[0], results=(replace(first.results[0], text="two", value="two"),))
    turns = (done, replace(first.turns[1], message=AssistantMessage(text="Answer 3.")))
    store.append(replace(first, episode_id=new_episode_id(), turns=turns))
    await agent.run("And now?", session_id="s")
    asked = [("user", "Ask"), ("assistant", ""), ("tool", "two"), ("assistant", "Answer 3.")]
    assert seen[-1] == [*asked, ("user", "And now?")]
