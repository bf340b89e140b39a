"""What is read of the answer of a model."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.episodes import Evidence, Verdict
from agentkit.evolution.proposal import Observations, Proposal, UnreadableProposal
from agentkit.evolution.proposers.blocks import Question, block_schema, read_answer
from agentkit.evolution.proposers.streams import EvolutionStream, FeedbackStream
from agentkit.library.events import Author
from agentkit.testing import FunctionModel

# --- What is read of an answer, and how what can not be read is told -----------------------------


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


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("", "empty_answer"),
        ("The description is fine as it is.", "no_block"),
        ("x" * 1_000_000, "answer_too_long"),
        ("<description>{", "half_block"),
        ('{"tool": "calculate_loan"}</description>', "half_block"),
        (block(tool="no_such_tool"), "unknown_tool"),
        (block(summary="Which tool?"), "no_tool_name"),
        (block(tool="calculate_loan", effects=["reads"]), "unknown_field"),
        (block(tool="calculate_loan", summary="a", description="b"), "duplicate_field"),
        (block(tool="calculate_loan", summary=["a"]), "wrong_field_type"),
        (block(tool="calculate_loan", parameters="all"), "wrong_field_type"),
        (block(tool="calculate_loan", usage_rules="one"), "wrong_field_type"),
        (block(tool="calculate_loan", rules=[{"kind": "never"}]), "invalid_rule"),
        ("<description>{'tool': 'calculate_loan'}</description>", "invalid_json"),
        ('<description>{"tool": "a", "tool": "b"}</description>', "invalid_json"),
        ('<description>{"tool": NaN}</description>', "invalid_json"),
        (f'<description>{{"tool": {"9" * 5000}}}</description>', "invalid_json"),
        (f"<description>{'[' * 40_000}</description>", "invalid_json"),
        (f"<description>{chr(0xD800)}</description>", "invalid_text"),
        ('<description>{"tool": "\\ud800"}</description>', "invalid_json"),
        ("<description>Make it better.</description>", "no_tool_name"),
    ],
)
def test_what_can_not_be_read_has_a_code(question, answer, code):
    """Every answer that is no change of a tool comes back as a value that says why."""
    found = read_answer(answer, question)
    assert codes(found) == [code]
    assert all(isinstance(one, UnreadableProposal) for one in found)
    assert all(len(one.text) <= 4_000 for one in found)


def test_the_contract_is_not_the_models_to_change(question, loan):
    """Of a schema in place of texts the descriptions are read, and types and examples left out."""
    schema = {
        "type": "object",
        "properties": {
            "periods": {"type": "string", "description": "Term in months."},
            "total_price": {"enum": [1, 2]},
        },
        "required": ["periods"],
    }
    for parameters in (schema, schema["properties"]):
        answer = block(name="calculate_loan", parameters=parameters, examples=[{"arguments": {}}])
        [found] = read_answer(answer, question)
        assert found.candidate.signature == loan.signature
        assert found.candidate.examples == loan.examples
        assert found.candidate.description.parameters == {
            "periods": "Term in months.",
            "total_price": "Price in units of 10,000.",
        }


# --- ToolDNA's own form of a block, with the habits of models that write it ----------------------


PAPER = """\
<description>
Tool Name: calculate_loan
Tool Description: What a loan costs a month. **The term is fixed.**
Required Parameters:
total_price(float): Price in units of 10,000.
periods(int): Loan term (36/48/60). Must be 36, 48, or 60; other values cause errors.
Usage Examples: calculate_loan(total_price=8.5, periods=36)
</description>
"""


def test_the_block_of_the_paper(question, loan):
    """The refined text of ToolDNA's second case study is read as it stands there."""
    [found] = read_answer(PAPER, question)
    words = found.candidate.description
    assert words.summary == "What a loan costs a month. **The term is fixed.**"
    assert words.parameters["periods"].endswith("Must be 36, 48, or 60; other values cause errors.")
    assert found.candidate.signature == loan.signature
    assert found.candidate.examples == loan.examples


# --- Any text at all gives values: the reader of answers is total --------------------------------


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
        *("<description>", "</description>", '{"tool": "loan"}', "Tool Name: loan\n"),
        *('{"tool": "loan", "summary": "', '"parameters": {', "Required Parameters:\n"),
        *("periods(int): ", "```json\n", "}", '"', "[", "\ud800", "\x00"),
    ]
)


@given(st.lists(TOKENS | st.text(max_size=30), max_size=12).map("".join))
def test_any_text_gives_values(answer):
    """Tags, halves of JSON and noise in any order give proposals that can be stored, or reasons."""
    for one in read_answer(answer, QUESTION):
        if isinstance(one, Proposal):
            assert Proposal.from_json(json.loads(json.dumps(one.to_json()))) == one
        else:
            assert one.failed


# --- Models that can be held to a schema are asked for the block as JSON -------------------------


CALL = ("calculate_loan", {"total_price": 8.5, "periods": 36}, 250.0)
WRONG = Verdict(
    passed=False,
    score=0.0,
    evidence=(Evidence(kind="wrong_value", message="no", tool="calculate_loan"),),
)
PERFECT = Verdict(passed=True, score=1.0)


def answering(**fields):
    """A model that keeps what it is asked, and answers with JSON as its schema wants it."""
    asked = []

    def answer(request):
        asked.append(request)
        return json.dumps({"tool": "calculate_loan", **fields})

    return FunctionModel(answer, name="critic"), asked


@pytest.mark.parametrize(
    ("stream", "verdict"),
    [
        (lambda model: FeedbackStream(model, structured=True), WRONG),
        (lambda model: EvolutionStream(model, min_episodes=1, structured=True), PERFECT),
    ],
)
async def test_both_streams_read_a_bare_object(library, make_episode, stream, verdict):
    """The answer needs no tags, and the request holds the schema of the tool's block."""
    model, asked = answering(summary="Monthly rate of a loan.")
    seen = Observations(library=library, episodes=(make_episode("e", CALL, verdict=verdict),))
    [found] = await stream(model).propose(seen)
    assert isinstance(found, Proposal)
    assert found.candidate.description.summary == "Monthly rate of a loan."
    assert asked[0].output_schema == block_schema(library["calculate_loan"].definition)


async def test_a_block_that_changes_nothing_is_nothing(library, make_episode):
    """Who has to answer with a block has no other way to say that nothing should change."""
    model, _ = answering()
    seen = Observations(library=library, episodes=(make_episode("e", CALL, verdict=WRONG),))
    assert list(await FeedbackStream(model, structured=True).propose(seen)) == []
