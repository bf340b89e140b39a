"""Any text at all gives values: the reader of answers is total."""

from __future__ import annotations

import json

from hypothesis import given, settings, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.evolution.proposal import Proposal, UnreadableProposal
from agentkit.evolution.proposers.blocks import Question, read_answer
from agentkit.evolution.proposers.streams import described
from agentkit.library.events import Author
from agentkit.tools.definition import Description

LOAN = ToolDefinition.from_schema(
    "loan",
    "A loan.",
    {
        "type": "object",
        "properties": {
            "periods": {"type": "integer"},
            "buyer": {"type": "object", "properties": {"name": {"type": "string"}}},
            "cars": {"type": "array", "items": {"type": "string"}},
            "anything": True,
        },
    },
)
QUESTION = Question(
    library=Library([LOAN]), stream="feedback", author=Author(kind="model", name="model")
)

TOKENS = st.sampled_from(
    [
        "<description>",
        "</description>",
        '{"tool": "loan"}',
        '{"tool": "loan", "summary": "',
        '"parameters": {',
        "Tool Name: loan\n",
        "Required Parameters:\n",
        "periods(int): ",
        "```json\n",
        "}",
        '"',
        "[",
        "\ud800",
        "\x00",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inside: (
        st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=12), inside, max_size=3)
    ),
    max_leaves=5,
)


def check(answer: str) -> None:
    """What comes out is a proposal that can be stored, or says why it is none."""
    for one in read_answer(answer, QUESTION):
        if isinstance(one, Proposal):
            assert Proposal.from_json(json.loads(json.dumps(one.to_json()))) == one
        else:
            assert isinstance(one, UnreadableProposal)
            assert one.failed


@given(st.lists(TOKENS | st.text(max_size=30), max_size=12).map("".join))
def test_any_text_gives_values(answer):
    """Tags, halves of JSON and noise in any order never raise."""
    check(answer)


WORDS = (
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=30)
    .map(str.strip)
    .filter(bool)
)


@settings(max_examples=40)
@given(
    st.builds(
        Description,
        summary=WORDS,
        parameters=st.dictionaries(st.sampled_from(["periods", "buyer.name", "cars[]"]), WORDS),
        usage_rules=st.lists(WORDS, max_size=3).map(tuple),
    )
)
def test_what_a_model_is_shown_reads_back(description):
    """The current text, in the form in which it is shown, is read as no change at all."""
    definition = ToolDefinition(name="loan", signature=LOAN.signature, description=description)
    question = Question(library=Library([definition]), stream="feedback", author=QUESTION.author)
    answer = f"<description>{json.dumps(described(definition))}</description>"
    [found] = read_answer(answer, question)
    assert isinstance(found, Proposal)
    assert found.candidate.digest == definition.digest
