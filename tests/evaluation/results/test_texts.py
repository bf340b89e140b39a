"""Numbers, notes and examples as people read them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit.episodes import Evidence
from agentkit.evaluation.results import report_markdown, summarise
from agentkit.evaluation.results.tables import notes
from agentkit.evaluation.results.texts import (
    shown,
)
from agentkit.messages import AssistantMessage, ToolCall


def test_all_that_spoils_a_run_is_noted(maker):
    """Each thing a reader has to know first is one sentence, for one and for many."""
    episodes = [
        replace(maker.episode("a", session="1"), stop_reason="error", error="ModelError: gone"),
        maker.episode("a", session="2"),
        maker.episode("b", ends=False),
        maker.episode("c", fault="checker_error"),
        maker.episode("d", judged=False),
    ]
    report = summarise(episodes, planned=9)
    told = "\n".join(notes(report))
    for sentence in (
        "Finished: 3 of 9 planned attempts.",
        "Begun and not finished: 1 attempt.",
        "broken: 1 checker error.",
        "nobody judged: 1 attempt.",
        "The model failed in 1 attempt; these count.",
    ):
        assert sentence in told
    assert "Finished: 3 of 9" in report_markdown(report)


def with_call(episode, call):
    """The episode with another call in its only turn."""
    turn = replace(episode.turns[0], message=AssistantMessage(tool_calls=(call,)))
    return replace(episode, turns=(turn,))


def with_evidence(episode, *evidence):
    """The failed episode with other evidence in its only turn."""
    turn = replace(episode.diagnosis.turns[0], evidence=evidence)
    return replace(episode, diagnosis=replace(episode.diagnosis, turns=(turn,)))


def test_an_example_shows_what_is_needed_to_judge_it(maker):
    """Request, call, expected and actual value, label and hint stand in it."""
    (example,) = summarise([maker.episode("t", passed=False)]).examples
    assert example.task == "t"
    assert example.request.startswith("What will the weather")
    assert example.calls[0].startswith("weather.forecast(")
    assert ", expected [" in example.findings[0]
    assert example.label == "argument_mismatch"
    assert example.hint


def test_examples_are_few_for_each_label(maker):
    """A hundred failures of one label leave as many examples as a person reads."""
    episodes = [maker.episode(f"t-{at}", passed=False, tool="one") for at in range(100)]
    assert 10 <= len(summarise(episodes).examples) <= 20


def test_huge_and_repeated_evidence_is_cut(maker):
    """A value of a million characters, or nested without end, takes a few hundred, once."""
    nested = []
    for _ in range(100_000):
        nested = [nested]
    huge = Evidence(
        kind="wrong_value", message="x" * 10**6, expected=list(range(10**5)), actual=10**5000
    )
    deep = Evidence(kind="wrong_value", message="deep", expected=nested)
    told = Evidence(kind="wrong_value", message="got 'off', allowed ['on']", expected=["on"])
    call = ToolCall(call_id="c1", name="t" * 10**5, arguments={"text": "y" * 10**6})
    episode = with_call(maker.episode("t", passed=False, request="z" * 10**6), call)
    (example,) = summarise([with_evidence(episode, huge, deep, told)]).examples
    assert len(repr(example)) < 6_000
    assert example.request.endswith("…")
    assert "RecursionError" not in example.findings[1]
    assert example.findings[2] == told.message


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\n\n  b", "a b"),
        ("evil \u202egnp.exe", "evil ⟨U+202E⟩gnp.exe"),
        ("half \ud800", "half ⟨U+D800⟩"),
        ("nul \x00", "nul ⟨U+0000⟩"),
        ("zero\u200bwidth", "zero⟨U+200B⟩width"),
        ("family 👨\u200d👩", "family 👨\u200d👩"),
        ("伊藤さん Pärt", "伊藤さん Pärt"),
    ],
)
def test_invisible_characters_are_named(text, seen):
    """What nobody would see, or what turns text around, is written out."""
    assert shown(text) == seen
