"""Texts, functions, several together, and the guard around all of them."""

from __future__ import annotations

import asyncio
import json
import math
import threading

import pytest

from agentkit.episodes import Evidence, Verdict
from agentkit.errors import UsageError
from agentkit.evaluation import AnyCall, NoCall, NumberAnswer, TextAnswer
from agentkit.evaluation.verifiers import (
    AllOf,
    FunctionVerifier,
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
    ("judgement", "passed", "score"),
    [(True, True, 1.0), (False, False, 0.0), (1, True, 1.0), (0.4, False, 0.4), (PASS, True, 1.0)],
)
async def test_functions_say_yes_a_score_or_a_verdict(episode, judgement, passed, score):
    """Sync and async functions are both fine."""

    async def waits(_):
        return judgement

    class Object:
        async def __call__(self, _):
            return judgement

    for function in (lambda _: judgement, waits, Object()):
        verdict = await FunctionVerifier(function, name="f").verify(episode())
        assert (verdict.passed, verdict.score, bool(verdict.evidence)) == (
            passed,
            score,
            not passed,
        )


@pytest.mark.parametrize("judgement", [None, "yes", 2, -0.1, math.nan, [True]])
async def test_other_judgements_are_checker_errors(episode, judgement):
    """What is no judgement says nothing about the agent."""
    verdict = await FunctionVerifier(lambda _: judgement).verify(episode())
    assert (verdict.passed, verdict.fault) == (False, "checker_error")


async def test_a_slow_function_holds_nobody_up(episode):
    """A function that blocks runs beside the others."""
    others_are_done = threading.Event()

    async def others():
        await asyncio.sleep(0)
        others_are_done.set()

    slow = FunctionVerifier(lambda _: others_are_done.wait(30))
    verdict, _ = await asyncio.gather(slow.verify(episode()), others())
    assert verdict.passed


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


async def test_a_fault_that_claims_to_pass_is_kept_as_any_other(episode):
    """It can be stored, and says whose it is, whatever its evidence holds."""
    finding = Evidence(kind="gold_error", message="No.", actual=object())
    given = Verdict(passed=True, score=1.0, fault="gold_error", evidence=(finding,))
    verdict = await guarded(Says(given)).verify(episode())
    assert (verdict.fault, verdict.verifier) == ("gold_error", "Says")
    assert json.dumps(verdict.to_json())


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, 10**5000, "x" * 10**6, [0] * 10**5],
    ids=lambda one: type(one).__name__,
)
async def test_evidence_can_always_be_stored(episode, value):
    """Values that JSON can not hold, and very large ones, are shown as text."""
    finding = Evidence(kind="other", message="No.", expected=value, actual=value)
    verdict = await guarded(Says(Verdict(passed=False, evidence=(finding,)))).verify(episode())
    assert verdict.fault is None
    assert len(json.dumps(verdict.to_json())) < 10_000


def test_a_guarded_verifier_is_guarded_once():
    """Guarding twice changes nothing."""
    one = guarded(Says(PASS))
    assert guarded(one) is one


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


async def test_metrics_of_parts_are_kept_apart(episode):
    """A name that two parts use is told apart by their place."""
    verdict = await AllOf([Says(PASS), Says(PASS)]).verify(episode())
    assert verdict.metrics == {"x.0": 1.0, "x.1": 1.0}
    assert (await AllOf([Says(PASS), Says(FAIL)]).verify(episode())).metrics == {"x": 1.0}


def test_what_is_no_expectation_has_no_verifier():
    """The message lists what there is."""
    with pytest.raises(UsageError, match="str is no expectation; there are AllowedCalls"):
        verifier_for("72", Scene())


async def test_verdicts_survive_their_json_form(episode, call):
    """What a verifier finds can be stored with the episode and read again."""
    for expected in (NumberAnswer(value="72"), AnyCall(), NoCall(), TextAnswer(text="x")):
        verdict = await verifier_for(expected, Scene()).verify(episode([call("f")], answer="71"))
        assert Verdict.from_json(verdict.to_json()) == verdict
