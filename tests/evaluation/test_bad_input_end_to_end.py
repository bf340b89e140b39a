"""Whatever gold, tools, calls and worlds hold, there is a verdict, a diagnosis and a report."""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from agentkit import Library, Tool, ToolDefinition, open_store
from agentkit.diagnosis import FailureProfile, diagnose
from agentkit.episodes import Episode, Turn
from agentkit.evaluation import (
    AllowedCalls,
    AnyCall,
    Benchmark,
    ExactCalls,
    FinalState,
    GoldCall,
    NoCall,
    NumberAnswer,
    Rubric,
    Task,
    TextAnswer,
    UserTurn,
    episodes_of_run,
    evaluate,
)
from agentkit.evaluation.results import report_html, report_markdown, summarise
from agentkit.evaluation.verifiers import AllOf, Scene, verifier_for
from agentkit.library import EpisodeFilter
from agentkit.messages import AssistantMessage, ToolCall, ToolResult
from agentkit.metrics import AllowedCall
from agentkit.testing import FunctionModel
from agentkit.tools import Signature

FULLWIDTH, CYRILLIC = "\uff42ook", "b\u043e\u043ek"
NAMES = st.sampled_from(["book", "book", "find", "boook", FULLWIDTH, CYRILLIC, "", "\ud800"])
KEYS = st.sampled_from(["day", "seats", "where", "d\u0430y", "", "\ud800"])


def nested(levels):
    """A list in a list in a list."""
    value = []
    for _ in range(levels):
        value = [value]
    return value


def storable(value):
    """Whether a model could have written it: JSON that Python reads and writes."""
    try:
        return json.loads(json.dumps(value)) == value or value != value  # noqa: PLR0124
    except (RecursionError, TypeError, ValueError):
        return False


ODD = [
    *(None, True, False, 0, 1, -3, 2**53 + 1, 10**400, -(10**5_000)),
    *(1.5, 1.0, -0.0, float("nan"), float("inf"), 1e308),
    *("", "mon", "MON.", "\uff4don", "m\u043en", "\ud800", "3", "[1", "$var1.x$", "x" * 5_000),
    *([], [1, "1", True], ["mon"], [[]], {}, {"x": [1]}, {"x": {"y": None}}, [{"x": "a"}]),
    *((1, 2), nested(90), nested(2_000)),
]
VALUES = st.integers(0, len(ODD) - 1).map(ODD.__getitem__)  # so that failures can be printed
ARGUMENTS = st.dictionaries(KEYS, VALUES, max_size=3)
SAID = st.sampled_from([value for value in ODD if storable(value)])
NO_JSON = st.sampled_from([None, 3, "text", ["day"], object(), {1: 2}, {"day": object()}, b"day"])

PARTS = st.sampled_from(
    [
        *({"type": kind} for kind in ("string", "integer", "number", "boolean", "null", "odd")),
        {"type": ["integer", "null"], "default": None},
        {"type": "number", "default": float("nan")},
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
        {"enum": ["mon", 1, float("inf")]},
        {"$ref": "#/properties/day"},
        {"pattern": "(", "type": "string"},
        {"anyOf": "nothing"},
        {},
    ]
)
SCHEMAS = st.builds(
    lambda parts, required: {"type": "object", "properties": parts, "required": required},
    st.dictionaries(st.sampled_from(["day", "seats", "where"]), PARTS, max_size=3),
    st.lists(st.sampled_from(["day", "seats", "absent"]), max_size=2, unique=True),
)
TOOLS = st.builds(
    lambda book, find: (
        ToolDefinition(name="book", signature=Signature(parameters=book)),
        ToolDefinition(name="find", signature=Signature(parameters=find)),
    ),
    SCHEMAS,
    SCHEMAS,
)

IN_WORLDS = VALUES | st.sampled_from([object(), {1: 2}, ValueError("no day"), OSError(), b"day"])

GOLD = st.builds(GoldCall, name=NAMES, arguments=ARGUMENTS | NO_JSON)
GOLDS = st.lists(GOLD, max_size=3).map(tuple)
LISTED = st.dictionaries(KEYS, st.lists(VALUES, max_size=3) | VALUES, max_size=3)
ALLOWED = st.builds(AllowedCall, name=NAMES, allowed=LISTED | NO_JSON)
EXPECTATIONS = st.one_of(
    st.builds(AllowedCalls, calls=st.lists(ALLOWED, max_size=3).map(tuple)),
    st.builds(ExactCalls, calls=GOLDS),
    st.builds(FinalState, state=st.none() | ARGUMENTS, calls=GOLDS, responses=st.booleans()),
    st.builds(NumberAnswer, value=VALUES, tolerance=st.sampled_from([0, -1, float("nan"), 1e-6])),
    st.builds(TextAnswer, text=VALUES, match=st.sampled_from(["equal", "contains", "nearly"])),
    st.builds(Rubric, criteria=st.sampled_from([{}, {"a": "It is so."}, {"\ud800": ""}])),
    st.just(AnyCall()),
    st.just(NoCall()),
)

CALLS = st.builds(
    ToolCall,
    call_id=st.sampled_from(["1", "2", "3", ""]),
    name=NAMES,
    arguments=st.dictionaries(KEYS, SAID, max_size=3),
    malformed=st.sampled_from([None, None, None, "", '{"day":', "\ud800"]),
)
MESSAGES = st.builds(
    AssistantMessage,
    text=st.sampled_from(["", "It is 3.", "NaN", "9" * 5_000, "\ud800", "[book(day=1", "{"]),
    tool_calls=st.lists(CALLS, max_size=3).map(tuple),
)
RESULTS = st.builds(
    ToolResult,
    call_id=st.sampled_from(["1", "2", "9"]),
    name=NAMES,
    status=st.sampled_from(["ok", "failed", "denied", "deferred"]),
    value=SAID,
    text=st.sampled_from(["", "\ud800"]),
)
EPISODES = st.builds(
    Episode,
    episode_id=st.just("e"),
    request=st.sampled_from(["?", "", "\ud800"]),
    turns=st.lists(
        st.builds(Turn, message=MESSAGES, results=st.lists(RESULTS, max_size=3).map(tuple)),
        max_size=3,
    ).map(tuple),
    output=SAID,
    stop_reason=st.sampled_from(["finished", "deferred", "error", "max_steps"]),
)


class World:
    """A world whose tools and states are as odd as they come; an error is raised."""

    def __init__(self, definitions, value):
        self._definitions = definitions
        self._value = value

    def tools(self):
        """Tools that give the odd value whatever they are asked."""
        return [Tool(definition=one, function=lambda **_: self._value) for one in self._definitions]

    def state(self):
        """The odd value, under a name or as it is."""
        return {"it": self._value} if self._value is not None else None


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Keeps an episode and reads it again, from a file that all examples share."""
    store = open_store(tmp_path_factory.mktemp("bad") / "episodes.db")
    numbers = itertools.count()

    def keep(episode):
        run = str(next(numbers))
        labels = {"run": run, "task": "t", "user_turns": "1", "user_turn": "0", "ends": "true"}
        store.append(replace(episode, episode_id=run, metadata=labels))
        (found,) = store.select(EpisodeFilter(labels={"run": run}))
        return found

    yield keep
    store.close()


def assert_reported(episodes):
    """The episodes give a report that can be written down in every form."""
    report = summarise(episodes)
    assert json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert report_markdown(report).encode()
    assert report_html(report).encode()
    profile = FailureProfile(name="r")
    for episode in episodes:
        assert episode.verdict is None or episode.verdict.passed or episode.verdict.evidence
        assert episode.diagnosis is not None
        profile.observe(episode, episode.diagnosis)
    assert json.dumps(profile.to_json(), allow_nan=False)


@given(
    TOOLS,
    st.lists(EXPECTATIONS, min_size=1, max_size=2),
    EPISODES,
    IN_WORLDS,
    st.sampled_from("ab"),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_gold_judges_any_episode(kept, definitions, expected, episode, value, said):
    """A verdict with a reason, the same when asked again, a diagnosis, a record and a report."""
    judge = FunctionModel(lambda _: {"a": "", "b": '{"criteria": 3}'}[said], name="judge")
    scene = Scene(
        definitions=definitions,
        environment=World(definitions, value),
        reference=World(definitions, value),
        judge=judge,
    )
    verifier = AllOf([verifier_for(one, scene) for one in expected])
    verdict = asyncio.run(verifier.verify(episode))
    assert verdict.passed or verdict.evidence
    assert all(item.message for item in verdict.evidence)
    diagnosis = diagnose(episode, Library(definitions), verdict)
    assert diagnosis.label == (verdict.fault or diagnosis.label)
    found = kept(replace(episode, verdict=verdict, diagnosis=diagnosis))
    assert found.verdict.passed == verdict.passed
    assert_reported([found])


@given(
    TOOLS,
    st.lists(st.lists(EXPECTATIONS, max_size=2), min_size=1, max_size=3),
    st.lists(MESSAGES, min_size=1, max_size=4),
    IN_WORLDS,
    st.booleans(),
)
def test_a_run_over_any_tasks_comes_to_its_end(definitions, turns, messages, value, is_world):
    """Every task ends with a verdict or without gold, and the report counts it."""
    first, *rest = (tuple(one) for one in turns)
    task = Task(
        task_id="t",
        category="c",
        request="?",
        offered=("book", "find"),
        expects=first,
        follow_ups=tuple(UserTurn(request="And?", expects=one) for one in rest),
    )
    benchmark = Benchmark(
        name="odd",
        tasks=(task, replace(task, task_id="u", offered=("absent",))),
        definitions=definitions,
        environment=(lambda _: World(definitions, value)) if is_world else None,
    )
    answers = itertools.cycle(messages)
    model = FunctionModel(lambda _: next(answers), name="odd")
    judge = FunctionModel(lambda _: "", name="judge")
    with tempfile.TemporaryDirectory() as folder, closing(open_store(f"{folder}/r.db")) as store:
        outcome = asyncio.run(evaluate(benchmark, model=model, store=store, run="r", judge=judge))
        episodes = list(episodes_of_run(store, "r"))
    assert outcome.finished == 2
    assert {episode.metadata["task"] for episode in episodes} == {"t", "u"}
    assert_reported(episodes)
