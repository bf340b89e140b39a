"""A router gives a run its library and its labels; observers hear of it afterwards."""

import logging
from dataclasses import replace

import pytest

from agentkit import Agent, Library, ToolDefinition
from agentkit.agent.session import Route
from agentkit.library.store import EpisodeFilter
from agentkit.messages import UserMessage
from agentkit.testing import ScriptedModel


def library(text):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    return Library([ToolDefinition.from_schema("look", text, schema)])


class Fixed:
    """Sends every run to one library, and remembers what it was asked."""

    def __init__(self, library, **labels):
        self.route_to, self.labels, self.asked = library, labels, []

    async def route(self, asked):
        self.asked.append(asked)
        return Route(library=self.route_to, labels=self.labels)


class Heard:
    """Keeps the runs that it is told of."""

    def __init__(self):
        self.runs = []

    def observe(self, run):
        self.runs.append(run)


class Broken:
    """An observer with a fault."""

    def observe(self, run):
        raise ZeroDivisionError("no observer should do this")


def words(request):
    return request.tools[0].description.summary


async def test_a_run_uses_the_library_that_it_is_routed_to():
    """What the model reads, and the labels of the episode, come from the router."""
    model = ScriptedModel(["a"])
    router = Fixed(library("routed"), arm="candidate")
    agent = Agent(model, library=library("own"), router=router)

    result = await agent.run("hi", metadata={"who": "me"})

    assert words(model.requests[0]) == "routed"
    assert result.episode.metadata == {"who": "me", "arm": "candidate"}
    assert router.asked[0].is_new
    assert router.asked[0].library is agent.library


async def test_a_session_is_routed_by_its_id_and_brings_its_labels(store):
    """From the second run on the router sees what the conversation was labelled with."""
    router = Fixed(library("routed"), arm="candidate")
    agent = Agent(ScriptedModel(["a", "b"]), store=store, router=router)

    await agent.run("one", session_id="s")
    await agent.run("two", session_id="s")

    assert [(asked.key, asked.is_new) for asked in router.asked] == [("s", True), ("s", False)]
    assert router.asked[1].labels == {"arm": "candidate"}


async def test_a_history_brings_its_labels_too():
    """The result of the last run tells which arm it was; so do labels handed on by the caller."""
    router = Fixed(library("routed"), arm="candidate")
    agent = Agent(ScriptedModel(["a", "b", "c"]), router=router)

    first = await agent.run("one")
    await agent.run("two", history=first)
    await agent.run("two", history=first.messages, metadata={"arm": "candidate", "who": "me"})

    assert [asked.is_new for asked in router.asked] == [True, False, False]
    assert [asked.labels.get("arm") for asked in router.asked] == [None, "candidate", "candidate"]


async def test_labels_of_a_router_can_not_be_given_by_a_caller():
    """Where a router decides, nobody else says that a run belongs to an experiment."""
    router = Fixed(library("routed"))

    result = await Agent(ScriptedModel(["a"]), router=router).run(
        "hi", metadata={"experiment": "p", "arm": "candidate", "who": "me"}
    )

    assert result.episode.metadata == {"who": "me"}


async def test_a_resumed_run_is_routed_with_the_labels_it_waited_with(call):
    """The waiting call is answered, and run, under the library that the router gives."""
    model = ScriptedModel([[call("look", a=1)], "done"])
    router = Fixed(library("routed"), arm="candidate")
    agent = Agent(model, router=router)

    waiting = await agent.run("hi")
    result = await agent.resume(waiting, values={"look": 3})

    assert not router.asked[1].is_new
    assert router.asked[1].labels == {"arm": "candidate"}
    assert router.asked[1].key == waiting.episode.episode_id
    assert words(model.requests[1]) == "routed"
    assert result.episode.metadata == {"arm": "candidate"}


async def test_a_router_that_fails_ends_the_run_before_the_model_is_asked():
    """Who can not say what is safe is not passed by."""

    class Fails:
        async def route(self, asked):
            raise LookupError("no such state")

    model = ScriptedModel(["a"])
    with pytest.raises(LookupError):
        await Agent(model, router=Fails()).run("hi")

    assert model.requests == []


async def test_observers_hear_of_the_run_once_it_is_kept(store):
    """They get the result, the library, and the request as the model had it."""
    kept = []

    class Looks(Heard):
        def observe(self, run):
            super().observe(run)
            kept.append(store.get(run.result.episode.episode_id))

    heard = Looks()
    model = ScriptedModel(["a"])
    agent = Agent(model, library=library("own"), store=store, observers=[heard], instructions="Be.")

    result = await agent.run("hi")

    (run,) = heard.runs
    assert run.result is result
    assert run.library is agent.library
    assert run.request == model.requests[0]
    assert kept == [result.episode]
    assert not run.ends_loop


async def test_an_observer_that_fails_is_seen_and_harms_nobody(caplog):
    """The run is answered, the others are told, and the error is logged and counted."""
    heard = Heard()
    agent = Agent(ScriptedModel(["a"]), observers=[Broken(), heard])

    with caplog.at_level(logging.ERROR, logger="agentkit"):
        result = await agent.run("hi")

    assert result.text == "a"
    assert len(heard.runs) == 1
    assert "Broken" in caplog.text
    assert "no observer should do this" in caplog.text


async def test_records_beside_a_conversation_are_no_part_of_it(store):
    """A shadow run has the session's id, and the next run must not see what it proposed."""
    model = ScriptedModel(["answer", "answer"])
    agent = Agent(model, store=store)
    first = await agent.run("one", session_id="s")
    shadow = replace(first.episode, episode_id="f" * 24, request="nobody said this")
    store.append(replace(shadow, metadata={"shadow_of": first.episode.episode_id}))

    await agent.run("two", session_id="s")

    said = [m.text for m in model.requests[1].messages if isinstance(m, UserMessage)]
    assert said == ["one", "two"]
    assert len(list(store.select(EpisodeFilter(session_id="s")))) == 3
