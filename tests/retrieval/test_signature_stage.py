"""Types as a score first: what fits rises, what nobody declared is left alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.errors import UsageError
from agentkit.retrieval import (
    CascadeRetriever,
    IndexConfig,
    Lexical,
    Plan,
    Signature,
    SignatureChannel,
    SubGoal,
    Survivors,
    TypeScoring,
)
from agentkit.tools.types.fit import TypedSlot, slot_of_value
from agentkit.tools.types.keys import TYPE_KEYS
from agentkit.tools.types.lattice import ANY, TypeSet

DAY = {"type": "string", "format": "date"}
FLAG = {"type": "boolean"}
COUNT = {"type": "integer"}
TEXT = {"type": "string"}
SCHEMAS = {"day": DAY, "flag": FLAG, "count": COUNT, "text": TEXT, "anything": {}}


def tool(name, *kinds, result=None, required=()):
    properties = {f"{kind}_{place}": SCHEMAS[kind] for place, kind in enumerate(kinds)}
    needed = [f"{kind}_{place}" for place, kind in enumerate(kinds) if kind in required]
    schema = {"type": "object", "properties": properties, "required": needed}
    return ToolDefinition.from_schema(name, f"Look at {name}.", schema, result=result)


LIBRARY = Library(
    [
        tool("agenda", "day"),
        tool("switch", "flag"),
        tool("report", "day", "count", result={"type": "number"}),
        tool("notes", "text", result={"type": "boolean"}),
        ToolDefinition.from_schema("bare", "Look at bare.", {}),
    ]
)
DATE = slot_of_value("2024-08-15")
YES = slot_of_value(True)
NUMBER = TypedSlot(type=TypeSet.of("number"), confidence=0.9)


async def staged(stage, library=LIBRARY, *inputs, output=None):
    goal = SubGoal(intent="look", inputs=inputs, output=output)
    return await stage("look", goal, Survivors.of(library, stage.channels))


def factor(survivors, name):
    return 1.0 if survivors.factors is None else float(survivors.factors[survivors.index.row(name)])


@pytest.mark.parametrize("mode", ["soft", "hard"])
@pytest.mark.parametrize("inputs", [(), (TypedSlot(),), (TypedSlot(type=ANY, bound=True),)])
async def test_an_untyped_goal_changes_nothing(mode, inputs):
    """The very survivors come back: no mask, no factors, no note."""
    stage = Signature(mode=mode)
    before = Survivors.of(LIBRARY, stage.channels)
    assert await stage("look", SubGoal(intent="look", inputs=inputs), before) is before


async def test_what_does_not_fit_gets_a_lower_factor_and_stays():
    """By default types move scores; nothing is dropped for one value that does not fit."""
    found = await staged(Signature(), LIBRARY, DATE)
    assert len(found) == len(LIBRARY)
    assert factor(found, "agenda") == 1
    assert factor(found, "switch") == pytest.approx(1 - 0.4 * 0.98, abs=1e-3)


async def test_undeclared_tools_keep_their_score():
    """A tool without types has factor 1, whatever the goal."""
    found = await staged(Signature(), LIBRARY, DATE, YES, output=NUMBER)
    assert factor(found, "bare") == 1


async def test_the_output_counts_like_an_input():
    """A tool whose declared result can not serve is pushed down; one without is not."""
    found = await staged(Signature(), LIBRARY, output=NUMBER)
    assert factor(found, "report") == 1
    assert factor(found, "notes") == pytest.approx(1 - 0.4 * 0.9, abs=1e-3)
    assert factor(found, "agenda") == 1


async def test_inputs_too_many_or_too_few_cost_something():
    """A tool with fewer parameters than inputs, or more required ones, fits less."""
    library = Library(
        [
            tool("one", "day"),
            tool("two", "day", "day"),
            tool("three", "day", "day", "day", "day", required=("day",)),
        ]
    )
    found = await staged(Signature(), library, DATE, slot_of_value("2024-08-16"))
    assert factor(found, "two") == 1
    assert factor(found, "one") == pytest.approx(0.7)
    assert factor(found, "three") == pytest.approx(0.81)


async def test_a_ranking_follows_the_factors(define):
    """Of two tools with the same words, the one that takes the value comes first."""
    library = Library(
        [
            define("a_lookup", "Look something up.", flag=FLAG),
            define("b_lookup", "Look something up.", day=DAY),
        ]
    )

    async def planned(query):
        return Plan(goals=(SubGoal(intent=query, inputs=(DATE,)),))

    retriever = CascadeRetriever(stages=[Signature(), Lexical()], planner=planned)
    found = await retriever.retrieve("look something up", library)
    assert [hit.definition.name for hit in found.hits] == ["b_lookup", "a_lookup"]


async def test_two_bound_values_that_surely_do_not_fit_drop_a_tool():
    """One misfit may be a slip; two real values that a tool can not take are not."""
    found = await staged(Signature(back_off=0), LIBRARY, DATE, YES)
    names = {definition.name for definition in found.pool}
    assert names == {"agenda", "switch", "report", "notes", "bare"}
    record = slot_of_value({"a": 1})
    found = await staged(Signature(back_off=0), LIBRARY, YES, record)
    assert {definition.name for definition in found.pool} == {"switch", "notes", "bare"}


async def test_guessed_types_never_drop_a_tool_by_default():
    """Types that a planner guessed are not bound, so they only move scores."""
    guesses = [TypedSlot(type=TypeSet.of(base), confidence=1.0) for base in ("boolean", "object")]
    assert len(await staged(Signature(back_off=0), LIBRARY, *guesses)) == len(LIBRARY)


async def test_it_backs_off_when_too_few_would_be_left():
    """Then nothing is dropped, factors stay, and a note says so."""
    found = await staged(Signature(back_off=4), LIBRARY, YES, slot_of_value({"a": 1}))
    assert len(found) == len(LIBRARY)
    assert factor(found, "agenda") < 0.5
    (note,) = found.notes
    assert "3 of 5 tools" in note


async def test_hard_mode_prunes_by_unification():
    """As Algorithm 2 line 6 has it: what does not unify is gone, with no factors."""
    found = await staged(Signature(mode="hard"), LIBRARY, DATE)
    assert {definition.name for definition in found.pool} == {"agenda", "report", "notes", "bare"}
    assert found.factors is None
    found = await staged(Signature(mode="hard"), LIBRARY, DATE, output=NUMBER)
    assert {definition.name for definition in found.pool} == {"agenda", "report", "bare"}


async def test_hard_mode_can_back_off_too():
    """With ``back_off`` the paper's filter gives way as well."""
    inputs = (TypedSlot(type=TypeSet.of("object")),)
    assert len(await staged(Signature(mode="hard"), LIBRARY, *inputs)) == 1
    found = await staged(Signature(mode="hard", back_off=2), LIBRARY, *inputs)
    assert len(found) == len(LIBRARY)
    assert found.notes


async def test_it_only_narrows_what_earlier_stages_left():
    """A tool that was dropped does not come back, in either mode."""
    for stage in (Signature(), Signature(mode="hard")):
        before = Survivors.of(LIBRARY, stage.channels).where(lambda one: one.name != "agenda")
        after = await stage("look", SubGoal(intent="look", inputs=(DATE,)), before)
        assert not after.has("agenda")
        assert {one.name for one in after.pool} <= {one.name for one in before.pool}


async def test_an_empty_library_is_no_trouble():
    """No tools, no factors, no crash."""
    for stage in (Signature(), Signature(mode="hard", back_off=3)):
        assert len(await staged(stage, Library(), DATE, YES)) == 0


async def test_scoring_can_be_changed():
    """A milder factor moves scores less."""
    found = await staged(Signature(scoring=TypeScoring(misfit=0.9)), LIBRARY, YES)
    assert factor(found, "agenda") == pytest.approx(0.905, abs=1e-3)


def test_an_unknown_mode_is_refused():
    """The message says which there are."""
    with pytest.raises(UsageError, match="use 'soft' or 'hard'"):
        Signature(mode="strict")


# --- the index behind it ---------------------------------------------------------------------------

TYPES = SignatureChannel()
CONFIG = IndexConfig(channels=(TYPES,))
NAMES = [f"tool_{number}" for number in range(10)]
definitions = st.builds(
    lambda name, kinds, result: tool(name, *kinds, result=result),
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(sorted(SCHEMAS)), max_size=3),
    st.sampled_from([None, COUNT, FLAG, {"type": "object", "properties": {"price": COUNT}}]),
)
steps = st.lists(
    st.one_of(
        st.lists(definitions, min_size=1, max_size=5, unique_by=lambda one: one.name),
        st.sets(st.sampled_from(NAMES), max_size=4),
    ),
    max_size=10,
)


def answers(library):
    """What the index says about each tool, by name."""
    index = library.derived(CONFIG)
    columns = [TYPES.fits(index, slot) for slot in (DATE, YES, NUMBER)]
    columns.append(TYPES.fits(index, NUMBER, is_output=True))
    rows = np.flatnonzero(index.alive).tolist()
    return {index.name(row): [float(column[row]) for column in columns] for row in rows}


@settings(max_examples=40, deadline=None)
@given(steps=steps)
def test_a_grown_index_answers_like_a_fresh_one(steps):
    """Insertions, edits and removals leave what building at once gives."""
    library = Library()
    library.derived(CONFIG)
    for step in steps:
        library = library.without(step) if isinstance(step, set) else library.with_tools(step)
        library.derived(CONFIG)
    assert answers(library) == answers(Library(library.definitions))


@settings(max_examples=40, deadline=None)
@given(several=st.lists(definitions, max_size=8))
def test_the_data_survive_storage(several):
    """What is read back from bytes equals what was kept."""
    data = TYPES.build(several)
    back = TYPES.from_bytes(TYPES.to_bytes(data))
    assert back.kinds == data.kinds
    assert back.codes.tolist() == data.codes.tolist()


def test_tools_of_one_signature_are_kept_once():
    """A thousand tools that take a text cost two bytes each."""
    data = TYPES.build([tool(f"tool_{number}", "text") for number in range(1000)])
    assert (len(data.kinds), data.codes.nbytes) == (1, 2000)


def test_accepting_finds_tools_by_type():
    """The inverted index: tools with a parameter that can take a value."""
    index = LIBRARY.derived(CONFIG)
    rows = np.flatnonzero(TYPES.accepting(index, YES)).tolist()
    assert {index.name(row) for row in rows} == {"switch", "notes", "bare"}


def test_type_keys_fit_into_a_byte():
    """Stored indexes keep a key as one byte."""
    assert len(TYPE_KEYS) < 256
