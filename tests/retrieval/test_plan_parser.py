"""A plan is read out of whatever a model wrote, or there is none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from agentkit.retrieval.plan_parser import (
    MAX_INTENT,
    MAX_NAMES,
    MAX_STEPS,
    MAX_WORD,
    PlannedInput,
    parse_plan,
)

STEP = '{"intent": "find flights", "inputs": {"from": "airport code"}, "output": "list of object"}'


def intents(text, **options):
    return [step.intent for step in parse_plan(text, **options)]


@pytest.mark.parametrize(
    "answer",
    [
        f"[{STEP}]",
        f"```json\n[{STEP}]\n```",
        f"Sure! Here is the plan:\n[{STEP},]\nAnything else?",
        STEP,
        f'{{"steps": [{STEP}]}}',
        f'{{"plan": {{"sub_goals": [{STEP}]}}}}',
        f"[{STEP}",  # cut off before the end
        f'[{STEP}, {{"intent": "and th',
        (
            "[{'intent': 'find flights', 'inputs': {'from': 'airport code'}, "
            "'output': 'list of object'}]"
        ),
        (
            "[{intent: 'find flights', inputs: [{name: 'from', type: 'airport code'}], "
            "output: {type: 'list of object'}}]"
        ),
        (
            '[{"Sub-Goal": "find flights", "input": ["from: airport code"], '
            '"returns": "list of object"}]'
        ),
        '[{"T_in": "(from: airport code)", "T_out": "list of object", "intent": "find flights"}]',
    ],
)
def test_sloppy_json_gives_the_same_step(answer):
    """Fences, prose, trailing commas, other quotes, other field names and cut ends are read."""
    (step,) = parse_plan(answer)
    assert step.intent == "find flights"
    assert step.inputs == (PlannedInput(name="from", type="airport code"),)
    assert step.output == "list of object"
    assert step.argument_names == ("from",)


def test_the_form_of_the_paper_is_read():
    """CoCoDA's own example (appendix H.1) has types without names."""
    answer = """[ {"T_in":"(int,float)", "T_out":"float", "intent":"cost of notebooks"},
                  {"T_in":"(list[int, int], float)", "T_out":"float", "intent":"total spend"} ]"""
    first, second = parse_plan(answer)
    assert first.inputs == (PlannedInput(type="int"), PlannedInput(type="float"))
    assert [one.type for one in second.inputs] == ["list[int, int]", "float"]
    assert (first.argument_names, first.output) == ((), "float")


@pytest.mark.parametrize(
    "answer",
    [
        "1. Find a flight\n2. **Book** it",
        "1) Find a flight\n2) Book it",
        "My plan:\n- Find a flight\n- Book it\nGood luck!",
        "Step 1: Find a flight\nStep 2: Book it",
        '["Find a flight", "Book it"]',
    ],
)
def test_plain_lists_are_read(answer):
    """A model that ignores the format often writes a list."""
    assert intents(answer) == ["Find a flight", "Book it"]


@pytest.mark.parametrize(
    "answer",
    ["", "   ", "I am sorry, I can not do that.", "[]", "{}", "null", "42", "[1, 2, 3]", "[[[]]]",
     '{"intent": ""}', '[{"intent": "..."}]', '[{"intent": 5}]', "<<<>>>", "[" * 5000],
)  # fmt: skip
def test_an_answer_without_a_plan_is_none(answer):
    """Nothing is made up."""
    assert parse_plan(answer) == ()


def test_types_that_say_nothing_are_left_out():
    """``any`` and its like are no types."""
    (step,) = parse_plan('[{"intent": "x y", "inputs": {"a": "any", "b": null}, "output": "none"}]')
    assert step.inputs == (PlannedInput(name="a"), PlannedInput(name="b"))
    assert step.output == ""


def test_the_same_step_twice_counts_once():
    """Models repeat themselves; order stays."""
    assert intents('[{"intent": "B b"}, {"intent": "a"}, {"intent": "b B"}]') == ["B b", "a"]


def test_sizes_are_capped():
    """However much a model writes, steps, names and words stay small."""
    many = {f"argument_{number}" * 30: "x" * 500 for number in range(100)}
    step = {"intent": "long " * 1000, "inputs": many, "output": "y" * 1000}
    answer = json.dumps([step] + [{"intent": f"step {number}"} for number in range(50)])
    steps = parse_plan(answer)
    assert len(steps) == MAX_STEPS
    assert len(parse_plan(answer, limit=2)) == 2
    assert len(steps[0].intent) <= MAX_INTENT
    assert len(steps[0].inputs) == len(steps[0].argument_names[:1]) * MAX_NAMES == MAX_NAMES
    words = [word for one in steps[0].inputs for word in (one.name, one.type)]
    assert max(map(len, [*words, steps[0].output])) <= MAX_WORD


@given(
    st.one_of(
        st.text(max_size=300),
        st.lists(st.sampled_from(['{"intent":', '"a b"', "[", "]", "{", "}", ",", "1. x\n", "'"]))
        .map("".join),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=9),
            lambda part: st.lists(part, max_size=4)
            | st.dictionaries(
                st.sampled_from(["intent", "inputs", "output", "steps", "args", "type", "x"]),
                part, max_size=4,
            ),
            max_leaves=20,
        ).map(json.dumps),
    )
)  # fmt: skip
def test_any_text_is_read_without_an_error(text):
    """Parsing never raises and keeps its bounds."""
    steps = parse_plan(text)
    assert len(steps) <= MAX_STEPS
    assert all(step.intent and len(step.intent) <= MAX_INTENT for step in steps)
    assert len({step.intent.casefold() for step in steps}) == len(steps)


@pytest.mark.parametrize("text", ["[" * 90_000, '{"a":' * 20_000, "1. " * 30_000, "- \n" * 30_000])
def test_hostile_answers_come_to_an_end(text):
    """Deep or endless answers hold no plan, or one of bounded size."""
    assert len(parse_plan(text)) <= 1
