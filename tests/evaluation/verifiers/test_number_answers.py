"""Numbers in final answers, read as GSM8K means them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from agentkit.evaluation import NumberAnswer
from agentkit.evaluation.expectations import final_number
from agentkit.evaluation.verifiers import Scene, verifier_for

READ = [
    ("The answer is 72.", "72"),
    ("She sold 48 + 24 = 72 clips.", "72"),
    ("It costs $1,234,567.89", "1234567.89"),
    ("**72**", "72"),
    ("so...72", "72"),
    ("7 - 10 = -3", "-3"),
    ("x = - 5", "-5"),
    ("10-5", "5"),
    ("a loss of -$5", "-5"),
    ("\u22127", "-7"),
    ("\uff0d\uff17", "-7"),
    ("\uff17\uff12", "72"),
    ("50%", "50"),
    ("3/4", "0.75"),
    (r"\frac{3}{4}", "0.75"),
    (r"-\dfrac{3}{4}", "-0.75"),
    ("1.5e3", "1500"),
    (r"1{,}250", "1250"),
    (r"\$1,250", "1250"),
    (".5", "0.5"),
    ("72km", "72"),
    (r"\boxed{72} after 3 days", "72"),
    (r"\boxed{\frac{1}{2}}", "0.5"),
    (r"\boxed{} 8", "8"),
    ("#### 72\nNext question: 5", "72"),
    ("#### 70\nWait.\n#### 72", "72"),
    ("#### $1,000 dollars", "1000"),
    ("#### 3. Conclusion\nThe total is 72", "72"),
    ("#### Step 4\nThe total is 72", "72"),
    ("100,200,300", "100200300"),
    ("1,2,3", "3"),
]


@pytest.fixture
def verdict(episode):
    """Judges an answer."""

    async def judge(answer, value, **fields):
        verifier = verifier_for(NumberAnswer(value=value, **fields), Scene())
        return await verifier.verify(episode(answer=answer))

    return judge


@pytest.mark.parametrize(("text", "value"), READ, ids=[text for text, _ in READ])
def test_the_final_number_is_found(text, value):
    """Marker, box, currency, percent, fraction and power are all read."""
    assert final_number(text) == Fraction(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot tell.",
        "NaN",
        "infinity",
        "5/0",
        "on 1/2/2024",
        "1e99999999",
        "A4",
        "9" * 10_001,
    ],
    ids=lambda text: text[:12],
)
def test_what_is_no_number_is_none(text):
    """Words, NaN, divisions by zero, dates and numbers beyond all bounds are no numbers."""
    assert final_number(text) is None


@pytest.mark.parametrize(
    "text", [" ", "\n", "#### 5 x\n", "\\frac{", "1 ", "1,234", "5 x 10^", "\\boxed{", "-", "{"]
)
def test_long_answers_are_read_in_linear_time(text):
    """No run of one sign makes the patterns go back and forth; the test's time limit would tell."""
    number = final_number(text * (200_000 // len(text)))
    assert number is None or isinstance(number, Fraction)


async def test_a_right_answer_passes(verdict):
    """The value counts, not how it is written."""
    for answer in (
        "It is 72.",
        "72.0",
        "#### 72",
        "$72",
        "144/2",
        72,
        72.0,
        {"answer": 72},
        {"n": "72"},
    ):
        assert (await verdict(answer, "72")).passed, answer
    assert (await verdict(0.1, "0.1", tolerance=0)).passed
    assert (await verdict("1,000", "1000")).passed


async def test_a_wrong_answer_tells_both_numbers(verdict):
    """The evidence names what was found and what was expected, and the turn that answered."""
    result = await verdict("It is 71.", "72")
    assert (result.passed, result.score, result.fault) == (False, 0.0, None)
    (finding,) = result.evidence
    assert (finding.kind, finding.turn, finding.expected) == ("wrong_answer", 0, "72")
    assert str(finding) == "the answer holds the number 71, expected 72"


async def test_whole_numbers_are_compared_exactly(verdict):
    """The default tolerance is for rounding; it makes no integer equal to the next one."""
    huge = 10**400
    assert (await verdict(str(huge), str(huge))).passed
    assert not (await verdict(str(huge + 1), str(huge))).passed
    assert not (await verdict("10000001", "10000000")).passed
    assert (await verdict("33.3333333", "33.33333333")).passed
    assert not (await verdict("33.33", "33.33333333")).passed
