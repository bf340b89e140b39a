"""Numbers and notes as people read them."""

from dataclasses import replace

import pytest

from agentkit.episodes import FailureLabel
from agentkit.evaluation.results import report_markdown, summarise
from agentkit.evaluation.results.tables import notes, p_text, ratio_text
from agentkit.evaluation.results.texts import LABELS, dollars, seconds


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


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "unknown"), (0.0, "$0.00"), (0.00123, "$0.00123"), (1234.5, "$1,234.50")],
)
def test_a_price_that_nobody_told_is_unknown(value, text):
    """No price is not a price of zero."""
    assert dollars(value) == text


def test_small_p_values_and_missing_ratios():
    """A p-value is never shown as zero; a ratio to nothing is a dash."""
    assert (p_text(1e-9), p_text(0.05)) == ("<0.001", "0.050")
    assert (ratio_text(None), ratio_text(1.5)) == ("-", "1.50x")


def test_every_label_has_words():
    """A label that diagnosis may give is told in a report."""
    assert set(LABELS) == set(FailureLabel.__args__)


def test_a_sound_run_needs_no_note(maker):
    """Where all that was planned is finished and judged there is nothing to warn of."""
    assert notes(summarise([maker.episode("t")], planned=1)) == ()


def test_all_that_spoils_a_run_is_noted(maker):
    """Each thing a reader has to know first is one sentence, for one and for many."""
    plain = maker.episode("x")
    plain.metadata.clear()
    episodes = [
        replace(maker.episode("a", session="1"), stop_reason="error", error="ModelError: gone"),
        maker.episode("a", session="2"),
        maker.episode("b", ends=False),
        maker.episode("c", fault="checker_error"),
        maker.episode("d", judged=False),
        replace(maker.episode("e"), diagnosis=None),
        plain,
    ]
    report = summarise(episodes, planned=9)
    told = "\n".join(notes(report))
    for sentence in (
        "Finished: 4 of 9 planned attempts.",
        "Begun and not finished: 1 attempt.",
        "broken: 1 checker error.",
        "nobody judged: 1 attempt.",
        "The model failed in 1 attempt; these count.",
        "repeats another: 1 attempt.",
        "no task is named: 1 episode.",
        "Judged and not diagnosed: 1 episode.",
    ):
        assert sentence in told
    assert "Finished: 4 of 9" in report_markdown(report)
