"""Runs of a benchmark: asked, judged, kept, resumed, with tools of equal names."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from functools import partial

import pytest

from agentkit import Episode, Library, Tool, ToolDefinition, open_store
from agentkit.episodes import Diagnosis
from agentkit.episodes.labels import as_imported
from agentkit.errors import ModelConnectionError, ModelStatusError, RunError, UsageError
from agentkit.evaluation import (
    AllowedCalls,
    Benchmark,
    FinalState,
    GoldCall,
    Rubric,
    Task,
    UserTurn,
    summarise,
)
from agentkit.evaluation.attempt import is_passed
from agentkit.evaluation.runner import MOST_FAILURES, evaluate
from agentkit.evaluation.settings import EvaluationSettings, episodes_of_run
from agentkit.messages import ToolCall, ToolMessage, UserMessage
from agentkit.metrics import AllowedCall
from agentkit.models.base import ModelSettings
from agentkit.testing import FunctionModel, ScriptedModel


def definition(name, summary="Switch the lamp of a room."):
    """A tool that takes a room and a state."""
    properties = {"room": {"type": "string"}, "state": {"enum": ["on", "off"], "type": "string"}}
    return ToolDefinition.from_schema(
        name, summary, {"type": "object", "properties": properties, "required": list(properties)}
    )


LAMP = definition("set_lamp")
FAN = definition("set_fan", "Switch the fan of a room.")


def gold(room, state="on", tool="set_lamp"):
    """One gold call."""
    return (
        AllowedCalls(calls=(AllowedCall(name=tool, allowed={"room": [room], "state": [state]}),)),
    )


def call(room, state="on", tool="set_lamp", call_id="1"):
    """One call."""
    return ToolCall(call_id=call_id, name=tool, arguments={"room": room, "state": state})


def switched(tool):
    """That something is on in the hall."""
    call = GoldCall(name=tool, arguments={"room": "hall", "state": "on"})
    return (FinalState(calls=(call,)),)


def lamp_task(room, category="simple"):
    """Asks for light in one room."""
    return Task(
        task_id=f"{category}-{room}",
        category=category,
        request=f"Lamp in the {room}, please.",
        offered=("set_lamp",),
        expects=gold(room),
    )


class House:
    """Lamps and fans that remember."""

    def __init__(self, task):
        self._on = dict.fromkeys(task.start.get("on", ()), True)

    def _set(self, kind):
        def switch(room, state):
            self._on[f"{kind}/{room}"] = state == "on"
            return f"{kind} {room} {state}"

        return switch

    def tools(self):
        """A lamp tool and a fan tool."""
        return [
            Tool(definition=LAMP, function=self._set("lamp")),
            Tool(definition=FAN, function=self._set("fan")),
        ]

    def state(self):
        """What is on."""
        return {"on": sorted(name for name, on in self._on.items() if on)}


@pytest.fixture
def lamps():
    """Four questions in two categories; no tool is run."""
    tasks = [lamp_task(room, kind) for kind in ("simple", "far") for room in ("hall", "attic")]
    return Benchmark(name="lamps 1", tasks=tuple(tasks), definitions=(LAMP, FAN))


@pytest.fixture
def house():
    """One conversation of two turns in a world; the fan is offered in the second one only."""
    task = Task(
        task_id="evening",
        category="talk",
        request="Lamp in the hall.",
        offered=("set_lamp",),
        expects=switched("set_lamp"),
        follow_ups=(
            UserTurn(request="And the fan.", offers=("set_fan",), expects=switched("set_fan")),
        ),
    )
    return Benchmark(name="house 1", tasks=(task,), definitions=(LAMP, FAN), environment=House)


@pytest.fixture
def good():
    """A model that lights the room that is asked for."""

    def answer(request):
        asked = next(m.text for m in request.messages if m.text.startswith("Lamp in the"))
        room = asked.split()[3].rstrip(",.")
        return [call(room)]

    return FunctionModel(answer, name="good")


@pytest.fixture
def store():
    """An empty store."""
    return open_store("memory:")


@pytest.fixture
def run(store):
    """Evaluates a model as the run ``r`` of the store."""

    def run(benchmark, model, **more):
        return evaluate(benchmark, model=model, store=store, run="r", **more)

    return run


async def test_each_task_becomes_a_judged_episode(lamps, good, store):
    """Every task has one episode with a verdict, a diagnosis and the labels of the run."""
    outcome = await evaluate(lamps, model=good, store=store, run="r1")
    assert (outcome.planned, outcome.finished, outcome.unfinished) == (4, 4, 0)
    episodes = list(store.select())
    assert {e.metadata["task"] for e in episodes} == {t.task_id for t in lamps.tasks}
    assert all(e.verdict.passed for e in episodes)
    assert all(isinstance(e.diagnosis, Diagnosis) for e in episodes)
    assert all(e.diagnosis.label == "pass" for e in episodes)
    first = episodes[0].metadata
    assert (first["run"], first["benchmark"], first["ends"]) == ("r1", "lamps 1", "true")
    assert json.loads(first["settings"])["model"] == "good"


async def test_a_wrong_answer_fails_with_a_label(lamps, store, run):
    """A wrong value is a failed verdict, labelled as an argument mismatch of that parameter."""
    model = FunctionModel(lambda _: [call("cellar")])
    await run(lamps, model)
    episode = next(store.select())
    assert not episode.verdict.passed
    assert episode.diagnosis.label == "argument_mismatch"
    assert episode.diagnosis.turns[0].parameter == "room"


async def test_the_library_describes_the_tools(lamps, good, store, run):
    """With a library, the model reads its texts, and the rest comes from the benchmark."""
    evolved = replace(
        lamps.definitions[0],
        description=replace(lamps.definitions[0].description, summary="Evolved."),
    )
    await run(lamps, good, library=Library([evolved], version=7))
    assert {r.tools[0].description.summary for r in good.requests} == {"Evolved."}
    assert {e.library_version for e in store.select()} == {7}


async def test_tools_go_by_the_names_of_the_benchmark(lamps, store, run):
    """A tool that the catalogue had to rename is offered, called and judged by its own name."""
    origin = replace(lamps.definitions[0].origin, original_name="lamp.set")
    renamed = replace(lamps.definitions[0], name="lamp.set__2", origin=origin)
    expects = gold("a", tool="lamp.set__2")
    task = replace(lamp_task("a"), offered=("lamp.set__2",), expects=expects)
    model = FunctionModel(lambda request: [call("a", tool=request.tools[0].name)])
    benchmark = Benchmark(name="b", tasks=(task,), definitions=(renamed,))
    await run(benchmark, model)
    (episode,) = store.select()
    assert (episode.calls[0].name, episode.library_names) == (
        "lamp.set",
        {"lamp.set": "lamp.set__2"},
    )
    assert episode.verdict.passed


async def test_tools_can_be_retrieved(lamps, good, store, run):
    """With retrieved tools the whole library is searched, and the trace is in the episode."""
    await run(lamps, good, settings=EvaluationSettings(tools="retrieved"))
    episode = next(store.select())
    assert "set_lamp" in episode.turns[0].retrieval.offered
    assert episode.verdict.passed


@pytest.mark.parametrize("is_later", [False, True])
async def test_a_rubric_needs_a_judge_before_anything_is_asked(lamps, good, is_later, run):
    """Tasks that nobody can judge are refused up front, those of later user turns as well."""
    rubric = (Rubric(criteria={"polite": "The answer is polite."}),)
    first, *rest = lamps.tasks
    if is_later:
        first = replace(first, follow_ups=(UserTurn(request="Thank you.", expects=rubric),))
    else:
        first = replace(first, expects=rubric)
    benchmark = replace(lamps, tasks=(first, *rest))
    with pytest.raises(UsageError, match=r"1 of 4 tasks .* \('simple-hall'\).*--judge NAME"):
        await run(benchmark, good)
    assert not good.requests


async def test_attempts_repeat_with_their_own_seed(lamps, store, run):
    """Each attempt is kept under its number, and generates with a seed of its own."""
    seeds = []

    def answer(request):
        seeds.append(request.settings.seed)
        return "no"

    settings = EvaluationSettings(attempts=3, settings=ModelSettings(seed=10))
    outcome = await run(
        replace(lamps, tasks=lamps.tasks[:1]), FunctionModel(answer), settings=settings
    )
    assert outcome.planned == 3
    assert sorted(e.metadata["attempt"] for e in store.select()) == ["0", "1", "2"]
    assert len(set(seeds)) == 3
    assert all(0 <= one < 2**31 for one in seeds)


async def test_history_and_instructions_come_before_the_request(lamps, run):
    """A task's own system message and history stand before what the user asks."""
    task = replace(lamps.tasks[0], instructions="Be brief.", history=(UserMessage(text="Hello"),))
    model = FunctionModel(lambda _: "no")
    settings = EvaluationSettings(instructions="You are an agent.")
    await run(replace(lamps, tasks=(task,)), model, settings=settings)
    said = [message.text for message in model.requests[0].messages]
    assert said == ["You are an agent.\n\nBe brief.", "Hello", task.request]


async def test_a_task_that_can_not_be_asked_is_kept_apart(lamps, good, store, run):
    """A task about a tool that nobody has is a fault of the task, with a reason; the rest goes on."""
    broken = replace(lamps.tasks[0], offered=("set_lamps",))
    outcome = await run(replace(lamps, tasks=(broken, *lamps.tasks[1:])), good)
    assert outcome.finished == 4
    (episode,) = (e for e in store.select() if e.verdict.fault)
    assert episode.verdict.fault == "gold_error"
    assert "Did you mean 'set_lamp'" in episode.error
    assert len(good.requests) == 3


class Flooded:
    """A house that breaks where it is told to."""

    def __init__(self, task, *, at):
        self._at = at
        self._fail("made")

    def tools(self):
        """Breaks, or one tool."""
        self._fail("tools")
        return [Tool(definition=ToolDefinition(name="set_lamp"), function=lambda: None)]

    def state(self):
        """Breaks, or nothing."""
        self._fail("state")
        return {}

    def _fail(self, where):
        if where == self._at:
            raise RuntimeError("the cellar is under water")


@pytest.mark.parametrize("at", ["made", "tools", "state"])
async def test_a_broken_world_is_a_fault(house, good, store, at, run):
    """An environment that raises ends its own attempt only, and says what it raised."""
    benchmark = replace(house, environment=partial(Flooded, at=at))
    await run(benchmark, good)
    (episode,) = store.select()
    assert episode.verdict.fault == "gold_error"
    assert "RuntimeError: the cellar is under water" in episode.error


async def test_a_spent_time_budget_leaves_attempts_for_another_start(lamps, good, run):
    """No attempt begins after the budget; the same run goes on with those that are left."""
    first = await run(lamps, good, seconds=0.0)
    assert (first.finished, first.unfinished, first.left) == (0, 0, 4)
    again = await run(lamps, good, seconds=600.0)
    assert (again.finished, again.left) == (4, 0)


def diligent(request):
    """Does what the last user message asks, then says so."""
    last = request.messages[-1]
    if isinstance(last, ToolMessage):
        return "Done."
    tool = "set_fan" if "fan" in last.text else "set_lamp"
    return [call("hall", tool=tool, call_id=f"c{len(request.messages)}")]


async def test_each_user_turn_is_an_episode_of_one_session(house, store, run):
    """Two user turns give two episodes of one session, each judged; the last one ends it."""
    await run(house, FunctionModel(diligent))
    second, first = store.select()
    assert first.session_id == second.session_id
    assert [e.metadata["user_turn"] for e in (first, second)] == ["0", "1"]
    assert [e.metadata.get("ends") for e in (first, second)] == [None, "true"]
    assert first.verdict.passed
    assert second.verdict.passed
    assert is_passed([first, second])


async def test_a_wrong_state_belongs_to_the_turn_that_changed_it(house, store, run):
    """Of three steps the second one changes the world, and the wrong state is put down to it."""
    script = [
        [call("hall", "off", call_id="a")],
        [call("attic", call_id="b")],
        [call("hall", "off", call_id="c")],
        "Done.",
    ]
    (task,) = house.tasks
    await run(replace(house, tasks=(replace(task, follow_ups=()),)), ScriptedModel(script))
    (episode,) = store.select()
    labels = [turn.label for turn in episode.diagnosis.turns]
    assert labels == ["pass", "state_mismatch", "pass", "pass"]


async def test_a_failure_left_open_is_followed_into_the_next_turn(house, store, run):
    """A call that failed in the first user turn and succeeds in the second one counts as mended."""
    script = [[call("hall", "bright")], "I could not.", [call("hall", call_id="b")], "Now it is."]
    await run(house, ScriptedModel(script))
    second, first = store.select()
    assert [one.outcome for one in first.diagnosis.recoveries] == ["abandoned"]
    assert [one.outcome for one in second.diagnosis.recoveries] == ["recovered"]
    assert second.diagnosis.recoveries[0].episode == first.episode_id


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_at_most_so_many_are_under_way(lamps, concurrency, run):
    """Attempts run side by side, never more than asked for."""
    now = most = 0

    async def answer(request):
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1
        return "no"

    await run(lamps, FunctionModel(answer), concurrency=concurrency)
    assert most == concurrency


async def test_attempts_do_not_share_a_world(house, store, run):
    """What one attempt changed is not there for the next."""
    settings = EvaluationSettings(attempts=2)
    expects = (FinalState(state={"on": ["fan/hall", "lamp/hall"]}),)
    (task,) = house.tasks
    task = replace(task, follow_ups=(replace(task.follow_ups[0], expects=expects),))
    await run(replace(house, tasks=(task,)), FunctionModel(diligent), settings=settings)
    assert all(e.verdict.passed for e in store.select())


async def test_imported_answers_are_no_answers_of_the_run(lamps, good, store, run):
    """A file that names a run decides no task: each is asked, and none of its answers counts."""
    elsewhere = open_store("memory:")
    await evaluate(lamps, model=good, store=elsewhere, run="r")
    for episode in elsewhere.select():
        store.append(as_imported(episode, "theirs.jsonl"))
    assert list(episodes_of_run(store, "r")) == []
    outcome = await run(lamps, good)
    assert (outcome.resumed, outcome.finished) == (0, 4)


async def test_finished_tasks_are_not_asked_again(lamps, good, store, run):
    """Cancelled after two tasks, the second start asks the other two only."""
    asked = []

    async def slow(request):
        asked.append(request.messages[-1].text)
        if len(asked) == 3:
            await asyncio.sleep(100)
        return await answer(request)

    async def answer(request):
        return (await good.complete(request)).message

    first = asyncio.create_task(run(lamps, FunctionModel(slow, name="good"), concurrency=1))
    while len(asked) < 3:
        await asyncio.sleep(0.001)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    before = len(good.requests)
    outcome = await run(lamps, good, concurrency=1)
    assert (outcome.resumed, outcome.finished) == (2, 4)
    assert len(good.requests) - before == 2
    assert len(list(store.select())) == 4


async def test_other_settings_are_refused(lamps, good, run):
    """A run cannot be gone on with under other settings; the message names the difference."""
    await run(replace(lamps, tasks=lamps.tasks[:1]), good)
    with pytest.raises(UsageError, match="refine was 'none', is 'adaptive'"):
        await run(lamps, good, settings=EvaluationSettings(refine="adaptive"))


async def test_a_lasting_error_counts_as_failed(lamps, store, run):
    """A prompt that is too long would be too long again: the task is finished, and failed."""

    def refuse(request):
        raise ModelStatusError("too long", status=400, body="", retry_after=None)

    outcome = await run(lamps, FunctionModel(refuse))
    assert (outcome.finished, outcome.unfinished) == (4, 0)
    assert not any(episode.verdict.passed for episode in store.select())


async def test_a_broken_model_ends_the_run(lamps, store, run):
    """After several errors in a row the run stops and says how to go on."""

    def broken(request):
        raise ModelConnectionError("the line is dead")

    settings = EvaluationSettings(attempts=5)
    with pytest.raises(RunError, match="the same command resumes from there"):
        await run(lamps, FunctionModel(broken), settings=settings, concurrency=1)
    assert len(list(store.select())) == MOST_FAILURES


async def test_strangers_of_the_same_name_do_not_disturb_a_run(lamps, good, store, run):
    """An episode that only shares the run's name is no finished attempt and in no number."""
    labels = {"run": "r", "ends": "true", "settings": "{"}
    store.append(Episode(episode_id="1", request="?", stop_reason="finished", metadata=labels))
    outcome = await run(lamps, good)
    assert (outcome.resumed, outcome.finished) == (0, 4)
    episodes = list(store.select())
    assert summarise(episodes).total.attempts == 4


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (ModelConnectionError("the line is dead"), "the line is dead"),
        (OSError("no route to host"), "good raised OSError: no route to host"),
    ],
)
async def test_a_passing_error_is_tried_again(lamps, good, raised, told, run):
    """What a model or its client raises leaves one task unfinished, for the next start to ask."""
    failures = iter([raised])

    async def moody(request):
        if error := next(failures, None):
            raise error
        return (await good.complete(request)).message

    outcome = await run(lamps, FunctionModel(moody, name="good"))
    assert (outcome.finished, outcome.unfinished) == (3, 1)
    assert told in outcome.error
    outcome = await run(lamps, good)
    assert (outcome.resumed, outcome.finished, outcome.error) == (3, 4, "")
