"""Numbers, notes and examples as people read them."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from agentkit.episodes import Evidence
from agentkit.evaluation.results import report_markdown, summarise
from agentkit.evaluation.results.tables import notes
from agentkit.evaluation.results.texts import (
    seconds,
    shown,
)
from agentkit.messages import AssistantMessage, ToolCall


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 s"),
        (0.00021, "210 µs"),
        (0.0123, "12.3 ms"),
        (1.984, "1.98 s"),
        (600, "10.0 min"),
        (9000, "2.5 h"),
    ],
)
def test_a_time_has_the_unit_that_suits_it(value, text):
    """Microseconds to hours, with the digits that matter."""
    assert seconds(value) == text


def test_a_sound_run_needs_no_note(maker):
    """Where all that was planned is finished and judged there is nothing to warn of."""
    assert notes(summarise([maker.episode("t")], planned=1)) == ()


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


@given(st.text(max_size=300), st.integers(10, 100))
def test_shown_text_is_one_printable_line(text, limit):
    """Any text can be encoded, has no line break and is not much longer than allowed."""
    line = shown(text, limit)
    line.encode("utf-8")
    assert len(line.splitlines()) <= 1
    assert len(shown(text[:limit], limit)) <= 10 * limit


def test_episodes_are_not_kept(maker):
    """Reading three hundred failed episodes of 100 kB each takes a few megabytes."""

    def stream():
        for at in range(300):
            episode = maker.episode(f"t-{at}", passed=False, request=f"{at} " + "long " * 20_000)
            yield episode

    tracemalloc.start()
    report = summarise(stream())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert report.total.attempts == 300
    assert peak < 4_000_000
