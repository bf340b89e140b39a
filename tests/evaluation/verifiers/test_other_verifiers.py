"""Texts, functions, several together, and the guard around all of them."""

from __future__ import annotations

import asyncio
import math

import pytest

from agentkit.episodes import Evidence, Verdict
from agentkit.evaluation import TextAnswer
from agentkit.evaluation.verifiers import (
    AllOf,
    Scene,
    guarded,
    verifier_for,
)


class Says:
    """A verifier that gives what it is told to."""

    def __init__(self, verdict):
        self._verdict = verdict

    async def verify(self, episode):
        if isinstance(self._verdict, BaseException):
            raise self._verdict
        return self._verdict


PASS = Verdict(passed=True, score=1.0, metrics={"x": 1.0})
FAIL = Verdict(passed=False, score=0.5, evidence=(Evidence(kind="other", message="No."),))
GOLD = Verdict(
    passed=False, fault="gold_error", evidence=(Evidence(kind="gold_error", message="?"),)
)
BREAKS = RuntimeError("boom")


@pytest.mark.parametrize(
    ("answer", "expected", "passes"),
    [
        (" Oslo\n", TextAnswer(text="oslo"), True),
        ("In Oslo.", TextAnswer(text="oslo"), False),
        ("In Oslo.", TextAnswer(text="oslo", match="contains"), True),
        ("stra\u00dfe", TextAnswer(text="STRASSE"), True),
        ("cafe\u0301", TextAnswer(text="caf\u00e9"), True),
        ("\u041eslo", TextAnswer(text="Oslo"), False),
        ({"city": "Oslo"}, TextAnswer(text='"oslo"', match="contains"), True),
        (5, TextAnswer(text="5"), True),
    ],
)
async def test_text_answers(episode, answer, expected, passes):
    """Case, surrounding space and forms of one letter do not count; look-alikes do."""
    verdict = await verifier_for(expected, Scene()).verify(episode(answer=answer))
    assert verdict.passed is passes
    if not passes:
        assert (verdict.evidence[0].kind, verdict.evidence[0].turn) == ("wrong_answer", 0)


async def test_no_text_is_missing(episode):
    """Without a final answer there is nothing to compare."""
    verdict = await verifier_for(TextAnswer(text="x"), Scene()).verify(
        episode(stop_reason="step_limit")
    )
    assert verdict.evidence[0].kind == "missing_answer"
    assert "step_limit" in str(verdict.evidence[0])


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        (BREAKS, "RuntimeError: boom"),
        (SystemError(), "SystemError"),
        (TimeoutError("late"), "TimeoutError: late"),
        (None, "not a Verdict"),
        (True, "not a Verdict"),
        (Verdict(passed=True, score=math.nan), "the score nan"),
        (Verdict(passed=True, score=1.5), "the score 1.5"),
    ],
)
async def test_a_guarded_verifier_never_raises(episode, verdict, told):
    """What it raises, and what is no verdict, is a checker error with type and text."""
    result = await guarded(Says(verdict)).verify(episode())
    assert (result.passed, result.fault, result.verifier) == (False, "checker_error", "Says")
    assert told in str(result.evidence[0])


async def test_cancellation_passes_through_the_guard(episode):
    """Ctrl-C is no verdict."""
    with pytest.raises(asyncio.CancelledError):
        await guarded(Says(asyncio.CancelledError())).verify(episode())


async def test_a_fault_never_passes(episode):
    """A verdict with a fault says nothing, so it does not say that the agent passed."""
    verdict = await guarded(Says(Verdict(passed=True, score=1.0, fault="gold_error"))).verify(
        episode()
    )
    assert not verdict.passed


@pytest.mark.parametrize(
    ("parts", "passed", "score", "fault"),
    [
        ([PASS, PASS], True, 1.0, None),
        ([PASS, FAIL], False, 0.75, None),
        ([FAIL, GOLD], False, 0.25, "gold_error"),
        ([BREAKS, PASS], False, 0.5, "checker_error"),
        ([BREAKS, GOLD], False, 0.0, "gold_error"),
    ],
)
async def test_all_parts_have_to_pass(episode, parts, passed, score, fault):
    """A fault of a part is a fault of the whole."""
    verdict = await AllOf(Says(part) for part in parts).verify(episode())
    assert (verdict.passed, verdict.score, verdict.fault) == (passed, score, fault)
    assert bool(verdict.evidence) is not passed
    assert len(verdict.details["parts"]) == len(parts)
