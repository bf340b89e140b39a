"""The paraphrase gate: what was served is still served in other words."""

from __future__ import annotations

import math

import pytest

from agentkit.evolution.gates import GateRules, PairedScore, paraphrase_gate


def paraphrases(requests, each, lost=0, served=1.0):
    """So many paraphrases of each request, one of which is lost for the first few requests."""
    return [
        PairedScore(
            task=f"r{request}",
            control=served,
            candidate=0.0 if request < lost and number == 0 else served,
        )
        for request in range(requests)
        for number in range(each)
    ]


def test_all_still_served_passes_once_there_are_enough():
    """150 requests of a fixed set, or 300 asked at any time, show that at most 2% are lost."""
    assert paraphrase_gate(paraphrases(150, 3), once=True).decision == "pass"
    assert paraphrase_gate(paraphrases(300, 1)).decision == "pass"
    assert paraphrase_gate(paraphrases(150, 30)).decision == "wait"


def test_one_lost_wording_loses_the_request():
    """Of three wordings one refused is enough to count, and counts once."""
    report = paraphrase_gate(paraphrases(100, 3, lost=10))
    assert report.decision == "fail"
    assert (report.statistics["lost"], report.statistics["paraphrases_lost"]) == (10, 10)


def test_what_was_never_served_can_not_be_lost():
    """Paraphrases that the control refused too say nothing."""
    report = paraphrase_gate(paraphrases(100, 2, served=0.0))
    assert (report.decision, report.statistics["of"]) == ("wait", 0)


def test_the_limit_is_the_callers():
    """Ten of a hundred may be lost where the rules allow a fifth."""
    report = paraphrase_gate(
        paraphrases(100, 3, lost=10), rules=GateRules(lost_share=0.2), once=True
    )
    assert report.decision == "pass"
    assert paraphrase_gate(paraphrases(100, 3), rules=GateRules(lost_share=0)).decision == "wait"


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_score_that_is_no_number_holds_a_pass_up(bad):
    """And nothing given waits."""
    pairs = [*paraphrases(400, 1), PairedScore(task="bad", control=bad, candidate=1)]
    assert paraphrase_gate(pairs).decision == "wait"
    assert paraphrase_gate([]).decision == "wait"
