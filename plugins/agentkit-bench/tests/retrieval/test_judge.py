"""A model that judges chooses among what it is shown, in prompts that stay within the budget."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from agentkit import ToolDefinition
from agentkit.errors import ModelTimeoutError
from agentkit.messages import Usage
from agentkit.retrieval import estimate_tokens
from agentkit.testing import FunctionModel, ScriptedModel
from agentkit.tools.definition import Specification
from agentkit_bench import ModelJudge
from agentkit_bench.paper_judge import (
    CHECK_SPECIFICATIONS,
    RANK_DESCRIPTIONS,
    RANK_EXAMPLES,
    read_order,
    read_verdicts,
)

NAMES = ["add", "sub", "math.mul"]
LINE = re.compile(r"^(\d+)\. (?:tool_(\d+))?", re.MULTILINE)


def tools(count, words=3, specification=None):
    plain = (
        ToolDefinition.from_schema(f"tool_{place}", "word " * words, {}) for place in range(count)
    )
    return [replace(one, specification=specification or Specification()) for one in plain]


def names(definitions):
    return [definition.name for definition in definitions]


def shown(request):
    """Number and tool of each candidate in a prompt."""
    listed = request.messages[-1].text.split("# Tools\n", 1)[1]
    return [(int(number), int(tool or -1)) for number, tool in LINE.findall(listed)]


def by_preference(preference):
    """A judge that always orders tools the same way, ``preference`` being best first."""
    rank = {tool: place for place, tool in enumerate(preference)}

    def answer(request):
        ordered = sorted(shown(request), key=lambda pair: rank.get(pair[1], len(rank)))
        return json.dumps([number for number, _ in ordered])

    return FunctionModel(answer)


def cost(request, count):
    return sum(count(message.text) for message in request.messages)


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        "[3, 1]", "3, 1", "3. math.mul\n1. add", "```json\n[3,1,]\n```", '["MATH.MUL", "Add"]',
        '{"ranking": [3, 1]}', '[{"number": 3}, {"id": 1}]', '{"add": 0.2, "math.mul": 0.9}',
        '["3. math.mul", "1. add"]', "math.mul, then add", "I'd take [3, 1] because math.mul",
        '[3, 99, -1, 0, 1, 3, 1e9, "no_such_tool", null, true, [], {}]', "[3, 1", "[3.0, 1.0]",
    ],
)  # fmt: skip
def test_orders_are_read_in_any_form(answer):
    """Numbers or names, lists, objects, scores or prose; invented ones and repetitions go."""
    assert read_order(answer, NAMES) == [2, 0]


@pytest.mark.parametrize(
    "answer",
    [
        '{"1": true, "2": false, "3": true}', '{"1": "yes", "2": "No.", "3": "compatible"}',
        '{"add": true, "sub": "incompatible: no list", "math.mul": 1}',
        '{"verdicts": {"1": true, "2": 0, "3": 1}}', "[1, 3]", '["add", "math.mul"]',
    ],
)  # fmt: skip
def test_verdicts_are_read_in_any_form(answer):
    """Objects of numbers or names; a bare list names the accepted ones."""
    assert read_verdicts(answer, NAMES) == {0: True, 1: False, 2: True}


@given(
    answer=st.one_of(
        st.text(max_size=200),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(NAMES),
            lambda part: (
                st.lists(part, max_size=5)
                | st.dictionaries(
                    st.sampled_from(["1", "2", "add", "name", "ok", "rejected", "yes"]),
                    part,
                    max_size=4,
                )
            ),
            max_leaves=20,
        ).map(json.dumps),
    )
)
def test_any_answer_is_read_without_an_error(answer):
    """Only places of candidates come out, each once."""
    order = read_order(answer, NAMES)
    assert len(order) == len(set(order))
    assert set(order) <= {0, 1, 2}
    assert read_verdicts(answer, NAMES).keys() <= {0, 1, 2}


# --- prompts --------------------------------------------------------------------------------------


async def test_what_fits_is_judged_in_one_pass():
    """One prompt for all candidates, as the paper has it; those not named come last, in order."""
    model = FunctionModel(lambda _: "[5, 2]")
    ranked = await ModelJudge(model).rank(RANK_DESCRIPTIONS, "a step", tools(5), 3)
    assert names(ranked.order) == ["tool_4", "tool_1", "tool_0", "tool_2", "tool_3"]
    assert ranked.usage == Usage(requests=len(model.requests)) == Usage(requests=1)
    assert "at most 3" in model.requests[0].messages[0].text


@given(
    count=st.integers(0, 120),
    words=st.integers(0, 60),
    keep=st.integers(1, 40),
    room=st.integers(130, 900),
    step=st.text(max_size=400),
    counter=st.sampled_from([estimate_tokens, len, lambda text: len(text.split()) * 3 + 1]),
    answer=st.sampled_from(["[1]", "[3, 2, 1]", "no idea", "", '{"2": false}', "[9999]"]),
)
def test_no_prompt_exceeds_the_budget(count, words, keep, room, step, counter, answer):
    """Whatever candidates, step, counter and answers: prompts fit, and nobody gets lost."""
    questions = (RANK_DESCRIPTIONS, CHECK_SPECIFICATIONS, RANK_EXAMPLES)
    budget = room + max(counter(question.instructions) for question in questions)
    model = FunctionModel(lambda _: answer)
    judge = ModelJudge(model, token_budget=budget, count_tokens=counter)
    candidates = tools(count, words, Specification(text=("condition " * words,)))
    ranked = asyncio.run(judge.rank(RANK_DESCRIPTIONS, step, candidates, keep))
    checked = asyncio.run(judge.check(CHECK_SPECIFICATIONS, step, candidates))
    assert all(cost(request, counter) <= budget for request in model.requests)
    assert sorted(names(ranked.order)) == sorted(names(candidates))
    assert checked.rejected <= set(names(candidates))
    assert (ranked.usage + checked.usage).requests == len(model.requests)


@given(st.randoms(use_true_random=False), st.integers(1, 200), st.integers(1, 12))
def test_a_tournament_finds_what_one_pass_would(random, count, keep):
    """A judge that always prefers the same of two tools gives the same best, however split."""
    preference = random.sample(range(count), count)
    candidates = tools(count, words=12)
    judge = ModelJudge(by_preference(preference), token_budget=900)
    ranked = asyncio.run(judge.rank(RANK_DESCRIPTIONS, "a step", candidates, keep))
    assert names(ranked.order)[:keep] == [f"tool_{tool}" for tool in preference][:keep]
    assert ranked.notes == ()


# --- judges that fail -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("Bananas are yellow.", "no candidate in the judge's answer 'Bananas are yellow.'"),
        ('["invented_tool", 77]', "no candidate"),
        ("", "answered nothing"),
        (ModelTimeoutError("too slow"), "ModelTimeoutError: too slow"),
    ],
)
async def test_a_useless_judge_changes_nothing_and_is_noted(answer, reason):
    """The order before is kept, nobody is rejected, the note gives the reason."""
    candidates = tools(4, specification=Specification(pre=("x > 0",)))
    ranked = await ModelJudge(ScriptedModel([answer])).rank(
        RANK_DESCRIPTIONS, "a step", candidates, 2
    )
    assert list(ranked.order) == candidates
    assert reason in ranked.notes[0]
    assert "the order before was kept" in ranked.notes[0]
    checked = await ModelJudge(ScriptedModel([answer])).check(
        CHECK_SPECIFICATIONS, "a step", candidates
    )
    assert (checked.rejected, checked.usage.requests) == (frozenset(), 1)
    assert "nobody was rejected" in checked.notes[0]


async def test_without_evidence_nothing_is_asked():
    """Tools without conditions or examples cost nothing and stay as they were."""
    model = ScriptedModel([])
    judge = ModelJudge(model)
    assert (await judge.check(CHECK_SPECIFICATIONS, "a step", tools(5))).rejected == frozenset()
    ranked = await judge.rank(RANK_EXAMPLES, "a step", tools(5), 1)
    assert (names(ranked.order), model.requests) == (names(tools(5)), [])
    one = await judge.rank(RANK_DESCRIPTIONS, "a step", tools(1), 1)
    assert (names(one.order), model.requests) == (["tool_0"], [])
