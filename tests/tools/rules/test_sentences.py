"""Each rule is one plain sentence, which a hosted model reads after the usage rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit.tools import Description
from agentkit.tools.rules import (
    Between,
    CallBefore,
    Condition,
    Form,
    OneOf,
    Requires,
    rule_sentence,
)


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (OneOf(parameter="periods", values=(36, 48, 60)), "periods must be one of 36, 48, 60."),
        (OneOf(parameter="currency", values=("EUR",)), 'currency must be "EUR".'),
        (
            OneOf(parameter="x", values=("a", 1.5, True, None)),
            'x must be one of "a", 1.5, true, null.',
        ),
        (OneOf(parameter="城市", values=("北京", "上海")), '城市 must be one of "北京", "上海".'),
        (Between(parameter="n", minimum=1), "n must be at least 1."),
        (Between(parameter="n", maximum=9, unit="days"), "n must be at most 9, in days."),
        (
            Between(parameter="n", minimum=12, maximum=60, multiple_of=12, unit="months"),
            "n must be from 12 to 60 and a multiple of 12, in months.",
        ),
        (Between(parameter="n", multiple_of=0.01), "n must be a multiple of 0.01."),
        (Between(parameter="n", unit="months"), "n is in months."),
        (
            Form(parameter="start", format="date"),
            "start must be a date (YYYY-MM-DD), such as 2026-05-31.",
        ),
        (
            Form(
                parameter="address.country",
                pattern="[A-Z]{2}",
                words="two capital letters",
                example="DE",
            ),
            "address.country must be two capital letters, such as DE.",
        ),
        (
            Requires(parameter="start", others=("end", "currency", "amount")),
            "When start is given, end, currency and amount must be given too.",
        ),
        (
            Condition(expression="start <= end", words="start must not be\n after end"),
            "start must not be after end.",
        ),
        (Condition(expression="a < b", words="a 小于 b。"), "a 小于 b。"),
        (CallBefore(tool="log_in"), "Call log_in first."),
        (
            CallBefore(tool="find_customer", parameter="customer_id"),
            "Call find_customer first; customer_id comes from its result.",
        ),
    ],
)
def test_a_rule_in_words(rule, sentence) -> None:
    """Values are written as a call would write them, and words end as a sentence does."""
    assert rule_sentence(rule) == sentence


def test_sentences_follow_the_usage_rules(loan_with) -> None:
    """The text that models and retrieval read ends with what was learned, in order."""
    ruled = loan_with(
        OneOf(parameter="periods", values=(36, 48)), Between(parameter="amount", minimum=1)
    )
    ruled = replace(ruled, description=Description(summary="Quote.", usage_rules=("Be brief.",)))
    assert ruled.text.splitlines() == [
        "Quote.",
        "Be brief.",
        "periods must be one of 36, 48.",
        "amount must be at least 1.",
    ]
