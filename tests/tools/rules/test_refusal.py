"""A call that breaks a rule is refused with the rule, the value and what is allowed instead."""

from __future__ import annotations

import math

import pytest

from agentkit.composites import RuleChecker
from agentkit.tools import Signature, Specification, ToolDefinition
from agentkit.tools.rules import (
    Between,
    CallBefore,
    Condition,
    EarlierCall,
    Form,
    OneOf,
    Requires,
)

PERIODS = OneOf(parameter="periods", values=(36, 48, 60))


def test_the_failure_says_all_that_a_model_needs(loan_with) -> None:
    """Sentence with the offending value, path, schema and nearest values, under a typed kind."""
    failure = RuleChecker(loan_with(PERIODS)).refusal({"amount": 1, "periods": 50})
    assert failure is not None
    assert failure.kind == "contract_violated"
    assert failure.cause == "one_of"
    assert failure.rule == "`periods` must be one of 36, 48, 60, got the number 50"
    assert failure.path == "periods"
    assert failure.schema_excerpt == {
        "type": "integer",
        "description": "How long.",
        "enum": [36, 48, 60],
    }
    assert failure.nearest == ("48", "60", "36")
    assert failure.retryable


@pytest.mark.parametrize(
    ("rule", "arguments", "sentence", "nearest"),
    [
        (
            OneOf(parameter="currency", values=("EUR", "USD")),
            {"currency": "EURO"},
            "`currency` must be one of \"EUR\", \"USD\", got the string 'EURO'",
            ("EUR",),
        ),
        (
            OneOf(parameter="periods", values=(1,)),
            {"periods": True},
            "`periods` must be 1, got true",
            (),
        ),
        (
            Between(parameter="periods", minimum=12, maximum=60, multiple_of=12),
            {"periods": 40},
            "`periods` must be from 12 to 60 and a multiple of 12, got the number 40",
            ("36", "48"),
        ),
        (
            Between(parameter="amount", maximum=100, unit="euros"),
            {"amount": 100.5},
            "`amount` must be at most 100, in euros, got the number 100.5",
            ("100",),
        ),
        (
            Between(parameter="amount", multiple_of=0.01),
            {"amount": 19.999},
            "`amount` must be a multiple of 0.01, got the number 19.999",
            ("19.99", "20"),
        ),
        (
            Form(parameter="start", format="date"),
            {"start": "2024-02-30"},
            (
                "`start` must be a date (YYYY-MM-DD), such as 2026-05-31, "
                "got the string '2024-02-30'"
            ),
            ("2026-05-31",),
        ),
        (
            Form(parameter="address.country", pattern="[A-Z]{2}", words="two capitals", example="DE"),
            {"address": {"country": "DEU"}},
            "`address.country` must be two capitals, such as DE, got the string 'DEU'",
            ("DE",),
        ),
        (
            OneOf(parameter="items[].sku", values=("A1", "B2")),
            {"items": [{"sku": "A1"}, {}, {"sku": "a"}]},
            "`items[2].sku` must be one of \"A1\", \"B2\", got the string 'a'",
            ("A1",),
        ),
        (
            Requires(parameter="start", others=("end",)),
            {"start": "2024-01-01"},
            "`end` must be given too when `start` is given",
            (),
        ),
        (
            Condition(expression="start <= end", words="start must not be after end."),
            {"start": "b", "end": "a"},
            "start must not be after end, got start = 'b' and end = 'a'",
            (),
        ),
    ],
)  # fmt: skip
def test_each_kind_of_rule(loan_with, rule, arguments, sentence, nearest) -> None:
    """The sentence names the place, the demand and the value; allowed values come best first."""
    failure = RuleChecker(loan_with(rule)).refusal(arguments)
    assert failure is not None
    assert (failure.rule, failure.nearest, failure.cause) == (sentence, nearest, rule.kind)


@pytest.mark.parametrize(
    ("rule", "arguments"),
    [
        (PERIODS, {}),
        (PERIODS, {"periods": 36.0}),
        (Between(parameter="amount", multiple_of=0.01), {"amount": 19.99}),
        (Between(parameter="amount", minimum=1), {"amount": "many"}),
        (Between(parameter="amount", maximum=1), {"amount": None}),
        (Between(parameter="amount", multiple_of=math.nan), {"amount": 3}),
        (Between(parameter="amount", multiple_of=0), {"amount": 3}),
        (Between(parameter="periods", multiple_of=7), {"periods": 7**400}),
        (Form(parameter="start", pattern="(?=a)b", words="w"), {"start": "a" * 5_000}),
        (Form(parameter="start", pattern="(", words="w"), {"start": "x"}),
        (Form(parameter="start", format="postcode"), {"start": "x"}),
        (Form(parameter="start", pattern="[A-Z]+", words="w"), {"start": 3}),
        (Requires(parameter="start", others=("end",)), {"end": "x"}),
        (Condition(expression="start <= end", words="w"), {"start": "b"}),
        (Condition(expression="amount < periods", words="w"), {"amount": "b", "periods": 3}),
        (Condition(expression="import os", words="w"), {"amount": 1}),
        (Condition(expression="nothing > 3", words="w"), {"amount": 1}),
        (OneOf(parameter="unheard_of", values=(1,)), {"unheard_of": 2}),
        (OneOf(parameter="items[].sku", values=("A",)), {"items": {"sku": "B"}}),
        (CallBefore(tool="log_in"), {}),
    ],
)  # fmt: skip
def test_what_a_rule_can_not_judge_it_does_not_refuse(loan_with, rule, arguments) -> None:
    """Values of other types, rules that make no sense and things that are not known pass."""
    assert RuleChecker(loan_with(rule)).refusal(arguments) is None


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        (Between(parameter="amount", minimum=0), math.nan),
        (Between(parameter="amount", multiple_of=2), math.inf),
        (Between(parameter="amount", maximum=5), 10**400),
        (OneOf(parameter="amount", values=(1, 2)), 10**400),
        (OneOf(parameter="amount", values=(1, 2)), math.nan),
        (OneOf(parameter="amount", values=(1, 2)), [[1], {"a": 2}]),
        (OneOf(parameter="currency", values=("EUR",)), "ЕUR"),  # noqa: RUF001 - a Cyrillic E
        (Form(parameter="start", pattern="[A-Z]{2}", words="two capitals"), "AB\n"),
    ],
)
def test_strange_values_are_refused_in_words(loan_with, rule, value) -> None:
    """Not-a-number, huge integers, containers and look-alikes break a rule without an exception."""
    failure = RuleChecker(loan_with(rule)).refusal({rule.parameter: value})
    assert failure is not None
    assert f"`{rule.parameter}` must be" in failure.rule


def test_an_integer_that_can_not_be_printed(loan_with) -> None:
    """An integer of thousands of digits is refused without being written out."""
    for rule in (Between(parameter="amount", maximum=5, multiple_of=2), PERIODS):
        arguments = {"amount": 10**6000 + 1, "periods": 10**6000 + 1}
        failure = RuleChecker(loan_with(rule)).refusal(arguments)
        assert failure is not None
        assert "very many digits" in failure.rule


def test_rules_are_checked_in_their_order(loan_with) -> None:
    """The first broken rule is the one that is told."""
    checker = RuleChecker(loan_with(Between(parameter="amount", minimum=5), PERIODS))
    broken = checker.refusal({"amount": 1, "periods": 1})
    assert broken is not None
    assert broken.cause == "between"


@pytest.mark.parametrize(
    ("text", "value", "passes"),
    [
        ('{"id":"C-17","name":"Ada"}', "C-17", True),
        ('{"id":"C-17"}', "c-17 ", True),
        ('{"id":"C-17"}', "C-18", False),
        ('{"id":17}', 17, True),
        ('{"id":17}', 17.0, True),
        ('{"id":117}', 17, False),
        ('{"said":"a \\"b\\" c"}', 'a "b" c', True),
        ('[{"id":1},{"id":2}]', [1, 2], True),
        ('[{"id":1},{"id":2}]', [1, 3], False),
        ("x" * 300_000, "not there", True),
        ("anything", True, True),
        ("anything", None, True),
    ],
)
def test_a_value_comes_from_an_earlier_result(text, value, passes) -> None:
    """A value that is found in no result of the other tool is refused; a doubt is no reason."""
    order = ToolDefinition(
        name="order",
        signature=Signature(parameters={"properties": {"customer": {}}}),
        specification=Specification(
            rules=(CallBefore(tool="find_customer", parameter="customer"),)
        ),
    )
    earlier = [EarlierCall(name="find_customer", text=text)]
    failure = RuleChecker(order).refusal({"customer": value}, earlier)
    assert (failure is None) == passes


def test_a_call_that_is_missing_is_named() -> None:
    """Without a successful call the refusal says which, and points at the parameter if any."""
    rules = (CallBefore(tool="log_in"), CallBefore(tool="find", parameter="who"))
    definition = ToolDefinition(
        name="pay",
        signature=Signature(parameters={"properties": {"who": {}}}),
        specification=Specification(rules=rules),
    )
    checker = RuleChecker(definition)
    assert checker.wanted_before == {"log_in", "find"}
    first = checker.refusal({"who": "A"}, [])
    second = checker.refusal({"who": "A"}, [EarlierCall(name="log_in", text="ok")])
    assert first is not None
    assert first.rule == "call log_in first; it has not been called with success yet"
    assert (first.path, first.cause) == ("", "call_before")
    assert second is not None
    assert (second.rule[:10], second.path) == ("call find ", "who")
