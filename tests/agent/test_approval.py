"""Destructive tools ask a person first; without one, the call waits."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest
from support.unreliable_store import UnreliableStore

from agentkit import Agent, open_store, tool
from agentkit.agent import Limits, ToolCallFinished, ToolPolicy
from agentkit.agent.session import happened
from agentkit.agent.types import Approval
from agentkit.episodes.labels import as_imported
from agentkit.errors import (
    AnsweredBeforeError,
    OtherAgentError,
    StoreUnavailableError,
    UsageError,
)
from agentkit.messages import AssistantMessage, ToolCall, Usage
from agentkit.models.base import ModelResponse, TextDelta
from agentkit.testing import FunctionModel, ScriptedModel


@pytest.fixture
def deleted():
    return []


@pytest.fixture
def delete(deleted):
    @tool(effects=("destructive",))
    def delete(name: str) -> str:
        """Delete a file."""
        deleted.append(name)
        return "deleted"

    return delete


async def test_approved(delete, deleted, call):
    """A call that was approved runs."""
    model = ScriptedModel([[call("delete", name="a")], "gone"])

    await Agent(model, tools=[delete], tool_policy=ToolPolicy(approve=lambda *_: True)).run("go")

    assert deleted == ["a"]


async def test_denied_with_a_reason(delete, deleted, call):
    """A call that was denied does not run, and the model reads why."""

    async def approve(call, tool):
        return Approval(approved=False, reason="not on a Friday")

    model = ScriptedModel([[call("delete", name="a")], "understood"])
    result = await Agent(model, tools=[delete], tool_policy=ToolPolicy(approve=approve)).run("go")

    assert deleted == []
    assert result.episode.results[0].status == "denied"
    assert "not on a Friday" in result.episode.results[0].text


async def test_invalid_arguments_are_never_put_to_a_person(delete, call):
    """Nobody is asked about a call that could not run anyway."""
    asked = []
    model = ScriptedModel([[call("delete", nme="a")], "ok"])

    await Agent(
        model,
        tools=[delete],
        tool_policy=ToolPolicy(approve=lambda asked_call, _: asked.append(asked_call) or True),
    ).run("go")

    assert asked == []


async def test_deferred_then_approved(delete, deleted, call):
    """Without an approver the run stops; resuming with a decision runs the call."""
    agent = Agent(ScriptedModel([[call("delete", name="a")], "gone"]), tools=[delete])

    waiting = await agent.run("delete a")
    assert (waiting.stop_reason, [c.name for c in waiting.deferred]) == ("deferred", ["delete"])
    assert deleted == []

    result = await agent.resume(waiting, approvals={"delete": True})
    assert (result.output, deleted) == ("gone", ["a"])
    assert result.episode.resumes == waiting.episode.episode_id
    assert [m.role for m in result.messages] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("limits", [Limits(max_calls=2), Limits(max_tokens=3_000)])
async def test_what_was_spent_before_a_run_waited_counts(delete, deleted, call, limits):
    """A run that waits for each call has the limits of one that does not."""
    usage = Usage(requests=1, prompt_tokens=2_000)
    calls = [call("delete", name=name, id=name) for name in "abc"]
    answers = [AssistantMessage(tool_calls=(one,)) for one in calls]
    model = ScriptedModel([*(ModelResponse(message=one, usage=usage) for one in answers), "gone"])
    agent = Agent(model, tools=[delete], limits=limits)
    result = await agent.run("go")
    for name in "ab":
        assert result.stop_reason == "deferred"
        result = await agent.resume(result, approvals={name: True})
    assert deleted == ["a", "b"]
    if limits.max_tokens:
        assert (result.stop_reason, len(model.requests)) == ("token_limit", 2)
    else:
        assert result.episode.results[-1].failure.kind == "limit_exceeded"
        assert (result.output, model.requests[-1].tool_choice) == ("gone", "none")


async def test_answer_from_outside(call):
    """A deferred tool gets its value from the caller."""

    @tool(deferred=True)
    def ask_person(question: str) -> str:
        """Ask a person."""

    model = ScriptedModel([[call("ask_person", question="Which colour?")], "Red it is."])
    agent = Agent(model, tools=[ask_person])

    result = await agent.resume(await agent.run("choose"), values={"ask_person": "red"})

    assert result.output == "Red it is."
    assert [m.text for m in model.requests[1].messages][-1] == "red"


async def test_only_what_waits_is_deferred(add, delete, call):
    """Other calls of the same turn run at once and keep their results when resuming."""
    calls = [call("add", a=1, b=2), call("delete", name="a")]
    agent = Agent(ScriptedModel([calls, "done"]), tools=[add, delete])

    waiting = await agent.run("both")
    result = await agent.resume(waiting, approvals={"delete": True})

    assert [c.name for c in waiting.deferred] == ["delete"]
    assert [r.value for r in result.episode.results] == [3, "deleted"]


async def test_who_has_a_value_need_not_be_the_person_who_decides(delete, deleted, call):
    """With values alone a call that needs approval waits on, and is decided afterwards."""

    @tool(deferred=True)
    def ask_desk(question: str) -> str:
        """Ask the desk."""

    calls = [call("ask_desk", question="?"), call("delete", name="a")]
    agent = Agent(ScriptedModel([calls, "done"]), tools=[ask_desk, delete])
    waiting = await agent.run("both")
    partly = await agent.resume(waiting, values={"ask_desk": "yes"})
    assert (partly.stop_reason, [one.name for one in partly.deferred]) == ("deferred", ["delete"])
    assert deleted == []
    result = await agent.resume(partly, approvals={"delete": True})
    assert [one.value for one in result.episode.results] == ["yes", "deleted"]
    assert deleted == ["a"]


async def test_resuming_needs_an_answer_to_every_call(delete, call):
    """Forgetting a call, naming an unknown one, or resuming a finished run is refused."""
    agent = Agent(ScriptedModel([[call("delete", name="a")], "done"]), tools=[delete])
    waiting = await agent.run("go")

    with pytest.raises(UsageError, match="still wait"):
        await agent.resume(waiting)
    with pytest.raises(UsageError, match="no call waits under"):
        await agent.resume(waiting, approvals={"delete": True, "other": True})
    done = await agent.resume(waiting, approvals={"delete": True})
    with pytest.raises(UsageError, match="no call waits in it"):
        await agent.resume(done, approvals={"delete": True})


async def test_a_resumed_run_is_streamed(delete, deleted, call):
    """Its approved call and the words after it are events, and the result comes last."""
    model = ScriptedModel([[call("delete", name="a")], "It is gone."])
    agent = Agent(model, tools=[delete])
    waiting = await agent.run("delete a")
    events = [e async for e in agent.stream_resume(waiting, approvals={"delete": True})]
    assert [e.result.value for e in events if isinstance(e, ToolCallFinished)] == ["deleted"]
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "It is gone."
    assert events[-1].result.output == "It is gone."
    assert deleted == ["a"]


async def test_resuming_from_the_stored_episode(delete, deleted, call, store):
    """A decision can come in another process: the episode and its session are enough."""
    first = Agent(ScriptedModel([[call("delete", name="a")]]), tools=[delete], store=store)
    waiting = await first.run("delete a", session_id="s")

    model = ScriptedModel(["gone", "hello again"])
    second = Agent(model, tools=[delete], store=store)
    stored = store.get(waiting.episode.episode_id)
    await second.resume(stored, approvals={"delete": True})
    await second.run("hi", session_id="s")

    assert deleted == ["a"]
    assert [m.role for m in model.requests[0].messages] == ["user", "assistant", "tool"]
    roles = [m.role for m in model.requests[-1].messages]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
    assert model.requests[-1].messages[2].text == "deleted"


@pytest.mark.parametrize("said", ["no", "yes", 1, None, {"approved": False}, [0]])
async def test_only_true_and_false_are_decisions(delete, deleted, call, said):
    """A text, a number or an object decides nothing, whether an approver says it or ``resume``."""
    both = [call("delete", "1", name="a"), call("delete", "2", name="b")]
    agent = Agent(ScriptedModel([both, "done"]), tools=[delete])
    waiting = await agent.run("go")
    with pytest.raises(UsageError, match="is no decision on a call"):
        await agent.resume(waiting, approvals={"1": True, "2": said})
    policy = ToolPolicy(approve=lambda *_: said)
    asking = Agent(
        ScriptedModel([[call("delete", name="a")], "done"]), tools=[delete], tool_policy=policy
    )
    with pytest.raises(UsageError, match="is no decision on a call"):
        await asking.run("go")
    with pytest.raises(UsageError, match="is no decision on a call"):
        Approval(approved=said)
    assert deleted == []


@pytest.mark.parametrize("has_store", [True, False])
async def test_an_approval_is_for_the_calls_that_are_kept(delete, deleted, call, store, has_store):
    """Nothing runs from an episode that was changed or that nobody knows, whatever its id says."""
    model = ScriptedModel([[call("delete", name="a")], "gone"])
    agent = Agent(model, tools=[delete], store=store if has_store else None)
    episode = (await agent.run("delete a", session_id="s" if has_store else None)).episode
    (turn,) = episode.turns
    message = replace(turn.message, tool_calls=(call("delete", name="everything"),))
    turns = (replace(turn, message=message),)
    for change in (
        {"turns": turns},
        {"turns": turns, "episode_id": "other"},
        {"episode_id": "other"},
        {"session_id": "of somebody else"},
        {"library_names": {"delete": "wipe"}},
        {"library_version": 7},
    ):
        with pytest.raises(UsageError, match="waits that is as this one"):
            await agent.resume(replace(episode, **change), approvals={"delete": True})
    assert deleted == []
    await agent.resume(replace(episode), approvals={"delete": True})
    assert deleted == ["a"]


async def test_without_a_store_only_the_agent_that_asked_takes_approvals(delete, deleted, call):
    """Another agent does not know what waits; the one that asked carries a decision out once."""
    agent = Agent(ScriptedModel([[call("delete", name="a")], "gone"]), tools=[delete])
    waiting = await agent.run("delete a")
    with pytest.raises(UsageError, match="only the agent that asked takes answers"):
        await Agent(ScriptedModel([]), tools=[delete]).resume(waiting, approvals={"delete": True})
    both = (agent.resume(waiting, approvals={"delete": True}) for _ in range(2))
    done = await asyncio.gather(*both, return_exceptions=True)
    assert sorted(type(each).__name__ for each in done) == ["AnsweredBeforeError", "RunResult"]
    assert deleted == ["a"]


async def test_an_approval_is_for_the_agent_that_asked(delete, deleted, call, store):
    """Another one, whose tool has the same name, runs nothing and uses no decision up."""
    asker = Agent(
        ScriptedModel([[call("delete", name="a")], "gone"]), tools=[delete], store=store, name="ann"
    )

    @tool(effects=["destructive"], name="delete")
    def wipe(name: str) -> str:
        """Delete a file."""
        raise AssertionError("never run")

    waiting = await asker.run("delete a")
    other = Agent(ScriptedModel([]), tools=[wipe], store=store)
    with pytest.raises(OtherAgentError, match="resume it with 'ann'"):
        await other.resume(waiting, approvals={"delete": True})
    result = await asker.resume(waiting, approvals={"delete": True})
    assert (deleted, result.output) == (["a"], "gone")
    assert not result.episode.metadata


async def test_an_approval_is_for_the_tool_that_was_shown(delete, deleted, call):
    """Where its definition changed since, the call can be refused, and approved where it is kept."""
    first = Agent(ScriptedModel([[call("delete", name="a")]]), tools=[delete], store="memory:")
    waiting = await first.run("delete a")

    @tool(effects=["destructive"], name="delete")
    def wipe(name: str, depth: int = 1) -> str:
        """Delete a file."""
        raise AssertionError("never run")

    def with_it(kept):
        kept.append(waiting.episode)
        return Agent(ScriptedModel(["as you like"]), tools=[wipe], store=kept)

    changed = with_it(open_store("memory:"))
    with pytest.raises(OtherAgentError, match="not as it was"):
        await changed.resume(waiting.episode, approvals={"delete": True})
    refused = await changed.resume(waiting.episode, approvals={"delete": False})
    assert [one.status for one in refused.episode.results] == ["denied"]
    assert deleted == []


async def test_what_was_imported_is_not_approved(delete, deleted, call, store):
    """An episode that came in a file asks nobody for anything."""
    first = Agent(ScriptedModel([[call("delete", name="a")]]), tools=[delete])
    foreign = as_imported((await first.run("delete a")).episode, "file.jsonl")
    store.append(foreign)
    agent = Agent(ScriptedModel([]), tools=[delete], store=store)
    with pytest.raises(UsageError, match="waits that is as this one"):
        await agent.resume(store.get(foreign.episode_id), approvals={"delete": True})
    assert deleted == []


@pytest.mark.parametrize("first", [True, False])
async def test_what_was_decided_is_not_decided_again(delete, deleted, call, store, first):
    """The second decision on a call is refused, in another process too; nothing runs twice."""
    agent = Agent(ScriptedModel([[call("delete", name="a")], "gone"]), tools=[delete], store=store)
    waiting = await agent.run("delete a")
    await agent.resume(waiting, approvals={"delete": first})
    other = Agent(ScriptedModel(["again"]), tools=[delete], store=store)
    for told in (waiting, store.get(waiting.episode.episode_id)):
        with pytest.raises(UsageError, match="were answered before"):
            await other.resume(told, approvals={"delete": True})
    assert deleted == ["a"] * first


@pytest.mark.parametrize("kind", ["sqlite", "memory"])
async def test_of_two_agents_that_share_a_store_one_carries_a_decision_out(
    delete, deleted, call, tmp_path, kind
):
    """Servers behind a proxy share a store; the same decision sent to both at once runs once."""
    shared = open_store("memory:")
    for at in range(10):
        stores = [shared, shared]
        if kind == "sqlite":
            stores = [open_store(f"sqlite:///{tmp_path / 'shared.db'}") for _ in range(2)]
        name = f"f{at}"
        first = Agent(ScriptedModel([[call("delete", name=name)]]), tools=[delete], store=stores[0])
        waiting = (await first.run("delete it")).episode
        both = [Agent(ScriptedModel(["gone"]), tools=[delete], store=one) for one in stores]
        outcomes = await asyncio.gather(
            *(one.resume(waiting, approvals={"delete": True}) for one in both),
            return_exceptions=True,
        )
        assert sorted(isinstance(one, UsageError) for one in outcomes) == [False, True]
        assert deleted.count(name) == 1


def buys(request):
    """Asks the desk, buys, and ends."""
    said = sum(message.role == "tool" for message in request.messages)
    asks = [ToolCall(call_id="ask", name="desk"), ToolCall(call_id="buy", name="buy")]
    return "bought" if said == 2 else [asks[said]]


@pytest.fixture
def bought():
    return []


@pytest.fixture
def buyer(bought):
    """Makes an agent that waits for a value, and buys something when it has it."""

    @tool(deferred=True)
    def desk() -> str:
        """Ask the desk."""

    @tool(effects=["writes"])
    def buy() -> str:
        """Buy it."""
        bought.append(1)
        return "bought"

    return lambda store=None: Agent(FunctionModel(buys), tools=[desk, buy], store=store)


@pytest.mark.parametrize("kind", ["none", "memory", "sqlite", "processes"])
async def test_a_value_counts_once(buyer, bought, tmp_path, kind):
    """Of values at once one goes on, in another process too; later ones and decisions are late."""
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    stores = [open_store("memory:")] if kind == "memory" else [open_store(url), open_store(url)]
    agents = [buyer()] if kind == "none" else [buyer(one) for one in stores]
    agents = agents if kind == "processes" else agents[:1]
    for time in range(1, 6):
        waiting = await agents[0].run("Buy it")
        told = waiting if kind == "none" else waiting.episode
        at_once = (agents[at % len(agents)].resume(told, values={"ask": at}) for at in range(4))
        done = await asyncio.gather(*at_once, return_exceptions=True)
        names = sorted(type(one).__name__ for one in done)
        assert names == [*["AnsweredBeforeError"] * 3, "RunResult"], done
        for again in ({"values": {"ask": "late"}}, {"approvals": {"ask": True}}):
            for agent in agents:
                with pytest.raises(AnsweredBeforeError, match="nothing runs twice"):
                    await agent.resume(told, **again)
        assert len(bought) == time


async def test_a_value_is_for_a_call_that_waits_for_one(delete, deleted, call):
    """A call that needs a decision takes no value, and none after it was decided."""
    agent = Agent(ScriptedModel([[call("delete", name="a")], "gone"]), tools=[delete])
    waiting = await agent.run("delete a")
    with pytest.raises(UsageError, match="waits for a person's decision, and a value is none"):
        await agent.resume(waiting, values={"delete": "deleted"})
    assert (await agent.resume(waiting, approvals={"delete": True})).output == "gone"
    with pytest.raises(UsageError, match="waits for a person's decision"):
        await agent.resume(waiting, values={"delete": "deleted"})
    assert deleted == ["a"]


async def test_a_value_is_for_the_calls_that_are_kept(buyer, bought, store):
    """An episode that was changed runs nothing, though what it adds would need no approval."""
    agent = buyer(store)
    episode = (await agent.run("Buy it")).episode
    (turn,) = episode.turns
    calls = (*turn.message.tool_calls, ToolCall(call_id="buy", name="buy"))
    turn = replace(turn, message=replace(turn.message, tool_calls=calls))
    with pytest.raises(UsageError, match="waits that is as this one"):
        await agent.resume(replace(episode, turns=(turn,)), values={"ask": "yes"})
    assert bought == []


@pytest.mark.parametrize("fault", ["refused", "unanswered"])
async def test_an_answer_that_the_store_did_not_take_is_not_used_up(buyer, bought, fault):
    """Nothing ran, so the same answer may be given again, and then counts once."""
    agent = buyer(UnreliableStore(open_store("memory:"), episode_faults=[None, fault]))
    waiting = await agent.run("Buy it")
    with pytest.raises(StoreUnavailableError):
        await agent.resume(waiting, values={"ask": "yes"})
    assert bought == []
    assert (await agent.resume(waiting, values={"ask": "yes"})).output == "bought"
    with pytest.raises(AnsweredBeforeError):
        await agent.resume(waiting, values={"ask": "yes"})
    assert bought == [1]


@pytest.mark.parametrize("streams", [True, False])
async def test_an_answer_that_is_cut_while_it_is_recorded_is_kept(buyer, bought, streams):
    """A caller that leaves in that moment leaves a run that was cut, and that has the value."""
    store, recording, goes_on = open_store("memory:"), threading.Event(), threading.Event()
    agent = buyer(store)
    waiting = await agent.run("Buy it", session_id="s")
    append = store.append

    def slow(episode):
        recording.set()
        assert goes_on.wait(5)
        append(episode)

    async def streamed():
        async for _ in agent.stream_resume(waiting, values={"ask": "yes"}):
            pass

    store.append = slow
    run = streamed() if streams else agent.resume(waiting, values={"ask": "yes"})
    task = asyncio.create_task(asyncio.wait_for(run, 0.1))
    assert await asyncio.to_thread(recording.wait, 5)
    await asyncio.sleep(0.2)
    store.append = append
    goes_on.set()
    with pytest.raises(TimeoutError):
        await task
    (cut,) = (one for one in happened(store.select()) if one.resumes)
    assert (cut.stop_reason, cut.results[0].value, bought) == ("cancelled", "yes", [])
    with pytest.raises(AnsweredBeforeError):
        await buyer(store).resume(waiting.episode, values={"ask": "yes"})
