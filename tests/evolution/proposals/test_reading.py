"""What is read of an answer, and how what can not be read is told."""

from __future__ import annotations

import json

import pytest

from agentkit.evolution.proposal import Proposal, UnreadableProposal
from agentkit.evolution.proposers.blocks import Question, read_answer
from agentkit.tools.rules import OneOf


def block(**said):
    """One block in the form of the prompts."""
    return f"<description>{json.dumps(said)}</description>"


def codes(found):
    """The codes of everything that could not be read."""
    return [check.code for one in found for check in getattr(one, "failed", ())]


def test_a_block_becomes_a_candidate(question, loan):
    """What the block says replaces the words, and everything else stays as it was."""
    answer = "Sure!\n" + block(
        tool="calculate_loan",
        summary="Monthly rate of a loan.",
        parameters={"periods": "Loan term; 36, 48 or 60."},
        usage_rules=["Ask for the price first."],
    )
    [found] = read_answer(answer, question)
    assert isinstance(found, Proposal)
    assert found.base == loan.digest
    assert found.candidate.signature == loan.signature
    assert found.candidate.text == "Monthly rate of a loan.\nAsk for the price first."
    assert found.candidate.description.parameters == {
        "total_price": "Price in units of 10,000.",
        "periods": "Loan term; 36, 48 or 60.",
    }
    assert found.author.prompt_hash
    assert found.evidence == ("e1",)


def test_rules_are_read_as_data(question):
    """A block may state a rule beside its words."""
    rule = {"kind": "one_of", "parameter": "periods", "values": [36, 48, 60]}
    [found] = read_answer(block(tool="calculate_loan", rules=[rule]), question)
    assert found.candidate.specification.rules == (OneOf(parameter="periods", values=(36, 48, 60)),)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("", "empty_answer"),
        (" \n\t", "empty_answer"),
        ("The description is fine as it is.", "no_block"),
        ("x" * 1_000_000, "answer_too_long"),
        ("<description>" * 90_000, "answer_too_long"),
        ("<description>{", "half_block"),
        ('{"tool": "calculate_loan"}</description>', "half_block"),
        (block(tool="no_such_tool"), "unknown_tool"),
        (block(summary="Which tool?"), "no_tool_name"),
        (block(tool="", summary="Which tool?"), "no_tool_name"),
        (block(tool=7), "no_tool_name"),
        (block(tool="calculate_loan", effects=["reads"]), "unknown_field"),
        (block(tool="calculate_loan", summary="a", description="b"), "duplicate_field"),
        (block(tool="calculate_loan", summary=["a"]), "wrong_field_type"),
        (block(tool="calculate_loan", parameters="all"), "wrong_field_type"),
        (block(tool="calculate_loan", parameters={"periods": 36}), "wrong_field_type"),
        (block(tool="calculate_loan", usage_rules="one"), "wrong_field_type"),
        (block(tool="calculate_loan", examples=[{"periods": 36}]), "wrong_field_type"),
        (block(tool="calculate_loan", rules=[{"kind": "never"}]), "invalid_rule"),
        (block(tool="calculate_loan", rules=[{"kind": "one_of", "values": [1]}]), "invalid_rule"),
        (block(tool="calculate_loan", parameters={"periods": {"type": "period"}}), "unknown_type"),
        ("<description>{'tool': 'calculate_loan'}</description>", "invalid_json"),
        ('<description>{"tool": "calculate_loan"</description>', "invalid_json"),
        ('<description>["calculate_loan"]</description>', "invalid_json"),
        ('<description>{"tool": "a", "tool": "b"}</description>', "invalid_json"),
        ('<description>{"tool": NaN}</description>', "invalid_json"),
        (f'<description>{{"tool": {"9" * 5000}}}</description>', "invalid_json"),
        ('<description>{"examples": [{"arguments": {"a": 1e999}}]}</description>', "invalid_json"),
        (f"<description>{'[' * 40_000}</description>", "invalid_json"),
        (f"<description>{chr(0xD800)}</description>", "invalid_text"),
        ('<description>{"tool": "\\ud800"}</description>', "invalid_json"),
        ("<description></description>", "no_tool_name"),
        ("<description>Make it better.</description>", "no_tool_name"),
    ],
)
def test_what_can_not_be_read_has_a_code(question, answer, code):
    """Every answer that is no change of a tool comes back as a value that says why."""
    found = read_answer(answer, question)
    assert codes(found) == [code]
    assert all(isinstance(one, UnreadableProposal) for one in found)
    assert all(len(one.text) <= 4_000 for one in found)


def test_an_answer_about_another_tool(library, question):
    """Who was asked about one tool may not change another one."""
    asked = Question(
        library=library,
        stream="feedback",
        author=question.author,
        tools=frozenset({"calculate_loan"}),
    )
    [found] = read_answer(block(tool="search_used_cars", summary="Better."), asked)
    assert codes([found]) == ["other_tool"]
    assert found.tool_name == "search_used_cars"


def test_each_block_is_judged_alone(question):
    """A bad block takes nothing from the good ones around it."""
    answer = "\n".join(
        [
            block(tool="calculate_loan", summary="One."),
            "<description>{broken</description>",
            block(tool="search_used_cars", summary="Two."),
            "<description>never closed",
        ]
    )
    found = read_answer(answer, question)
    good = [one for one in found if isinstance(one, Proposal)]
    assert [one.candidate.description.summary for one in good] == ["One.", "Two."]
    assert codes(found) == ["invalid_json", "half_block"]


@pytest.mark.parametrize(
    ("parameters", "changed"),
    [
        ({"periods": {"type": "string", "description": "Term."}}, {"type": "string"}),
        ({"periods": {"enum": [36, 48]}}, {"type": "integer", "enum": [36, 48]}),
    ],
)
def test_a_changed_contract_is_kept_for_validation(question, loan, parameters, changed):
    """A candidate with another type is a readable, wrong change: validation says so, not we."""
    [found] = read_answer(block(tool="calculate_loan", parameters=parameters), question)
    assert isinstance(found, Proposal)
    assert found.candidate.signature.properties["periods"] == changed
    assert loan.signature.properties["periods"] == {"type": "integer"}


def test_a_schema_in_place_of_texts(question, loan):
    """Models that answer with a whole schema are understood; what it leaves out stays."""
    schema = {
        "type": "object",
        "properties": {
            "periods": {"type": "integer", "description": "Term in months."},
            "total_price": {"type": "number"},
        },
        "required": ["total_price", "periods"],
    }
    [found] = read_answer(block(name="calculate_loan", parameters=schema), question)
    assert found.candidate.signature == loan.signature
    assert found.candidate.description.parameters["periods"] == "Term in months."
    assert found.candidate.description.parameters["total_price"] == "Price in units of 10,000."
    schema["required"] = ["periods"]
    [found] = read_answer(block(name="calculate_loan", parameters=schema), question)
    assert found.candidate.signature.required == ("periods",)


@pytest.mark.parametrize(
    "hostile",
    [
        "<description>" + '{"a": 1,' * 12_000 + "</description>",
        "<description>" + '"a":1,' * 16_000 + "</description>",
        "<description>Tool Name: calculate_loan\nParameters:\n" + "a\n" * 45_000 + "</description>",
        "<description>Tool Name: x\nTool Description:\n" + "a\n" * 45_000 + "</description>",
        "<description>Tool Name: x\nUsage Rules:\n" + "- a\n" * 24_000 + "</description>",
        "<description>" + " " * 99_000 + "</description>",
        "</description>" * 7_000,
    ],
)
def test_long_hostile_answers_are_read_to_their_end(question, hostile):
    """The longest answers that are read give values, however they are made up."""
    assert read_answer(hostile, question)
