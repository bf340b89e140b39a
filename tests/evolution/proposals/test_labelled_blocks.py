"""ToolDNA's own form of a block, with the habits of models that write it."""

from __future__ import annotations

import pytest

from agentkit.evolution.proposers.blocks import read_answer

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


@pytest.mark.parametrize(
    "line",
    [
        "periods(int): Term.",
        "- periods (integer): Term.",
        "* `periods` (int, required): Term.",
        "**periods** (Optional[int]): Term.",
        "1. periods: Term.",
        "periods\uff08int\uff09\uff1aTerm.",
    ],
)
def test_how_models_write_a_parameter(question, loan, line):
    """Bullets, bold names, long names of types and full-width punctuation are read alike."""
    text = f"<description>Tool Name: calculate_loan\nParameters:\n{line}\n</description>"
    [found] = read_answer(text, question)
    assert found.candidate.description.parameters["periods"] == "Term."
    assert found.candidate.signature == loan.signature


def test_several_lines_belong_together(question):
    """A text goes on until the next label or parameter; usage rules are a line each."""
    text = """<description>
    **Tool Name:** `calculate_loan`
    ## Tool Description:
    What a loan costs.
    By the month.
    Required Parameters:
    periods(int): The term,
      in months.
    Usage Rules:
    - Ask for the price.
    2) Round nothing.
    </description>"""
    [found] = read_answer(text, question)
    words = found.candidate.description
    assert words.summary == "What a loan costs.\nBy the month."
    assert words.parameters["periods"] == "The term, in months."
    assert words.usage_rules == ("Ask for the price.", "Round nothing.")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Tool Description: Whose?", "no_tool_name"),
        ("Tool Name: calculate_loan\nTool Name: search_used_cars", "duplicate_field"),
        ("Tool Name: calculate_loan\nParameters:\nperiods: a\nperiods: b", "duplicate_field"),
        ("Tool Name: calculate_loan\nParameters:\nperiods(months): a", "unknown_type"),
    ],
)
def test_labelled_blocks_that_can_not_be_read(question, text, code):
    """What is twice, unnamed or of no type comes back with its reason."""
    [found] = read_answer(f"<description>{text}</description>", question)
    assert [check.code for check in found.failed] == [code]
