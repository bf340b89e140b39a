"""A limit in words needs a rule as data beside it, or it must stand there already."""

from __future__ import annotations

import pytest

from agentkit.evolution.validation.validate import validate
from agentkit.testing.rewrites import rewrite
from agentkit.tools.rules import Between, CallBefore, OneOf, Requires


def codes(change):
    """The codes that a change draws."""
    return [failed.code for failed in validate(change).failed]


def test_a_limit_in_words_alone_is_refused_and_passes_with_its_rule():
    """``at least 500`` is an opinion; with a ``Between`` rule it is checked on every call."""
    words = {"parameters.amount": "Amount of money, at least 500."}
    assert codes(rewrite("loan_monthly_payment", words)) == ["bounds_contradicted"]
    rule = Between(parameter="amount", minimum=500)
    with_rule = rewrite("loan_monthly_payment", words, rules=(rule,))
    # the worked call asks for 12,000 and for 10,000, so that the rule holds for both
    assert codes(with_rule) == []


def test_a_rule_that_an_example_breaks_is_refused():
    """What was answered once can not be forbidden now."""
    rule = Between(parameter="amount", minimum=20_000)
    assert codes(rewrite("loan_monthly_payment", rules=(rule,))) == ["invalid_rule"]


def test_a_choice_in_words_alone_is_refused_and_passes_with_its_rule():
    """One value of an enum is left only by a ``OneOf`` rule."""
    words = {"parameters.unit": "Always `celsius`."}
    assert codes(rewrite("weather_now", words)) == ["unsupported_rule"]


def test_tooldna_case_studies_pass(library):
    """The two rewrites that the paper shows (table 5 and appendix D) are what this is for."""
    periods = "Loan term (36/48/60). Must be 36, 48, or 60; other values cause errors."
    query = 'Search term (e.g., "BMW X3"). When users specify a model, query must exactly match.'
    assert codes(rewrite("calculate_loan", {"parameters.periods": periods}, library=library)) == []
    assert codes(rewrite("search_used_cars", {"parameters.query": query}, library=library)) == []
    rule = OneOf(parameter="periods", values=(36, 48, 60))
    assert codes(rewrite("calculate_loan", rules=(rule,), library=library)) == []


def test_tooldna_rejected_updates_are_rejected(library):
    """A changed type and an invented parameter (appendix E.1)."""
    changed = {"/signature/parameters/properties/car_age": {"type": "string"}}
    found = codes(rewrite("search_used_cars", changed, library=library))
    assert found[0] == "type_changed"
    invented = {"parameters.discount_code": "Code of a voucher."}
    assert codes(rewrite("calculate_loan", invented, library=library)) == ["unknown_parameter"]


def test_a_tool_to_call_first_may_be_named():
    """An order between tools is a rule, and the text may say it then."""
    words = {"rule": "Call cars_search first; stock_id comes from its result."}
    assert codes(rewrite("cars_details", words)) == ["other_tool"]
    rule = CallBefore(tool="cars_search", parameter="stock_id")
    assert codes(rewrite("cars_details", words, rules=(rule,))) == []


def test_a_required_pair_may_be_called_so():
    """With a ``Requires`` rule the other parameter may be called required."""
    words = {"parameters.min_year": "Earliest year of registration. Required."}
    assert codes(rewrite("cars_search", words)) == ["presence_contradicted"]
    rule = Requires(parameter="make", others=("min_year",))
    assert "presence_contradicted" not in codes(rewrite("cars_search", words, rules=(rule,)))


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        (
            "weather_now",
            "Do not use it for this, which another tool does: expected temperature in degrees Celsius for each of the coming days.",
        ),
        (
            "cars_reserve",
            "Call it only when the value of customer is known from the user or from an earlier result; otherwise ask for it.",
        ),
        (
            "cars_search",
            "Call it only when the request asks for what it does; otherwise answer without it.",
        ),
    ],
)
def test_sentences_that_tell_tools_apart_pass(tool, text):
    """What the evidence proposer writes of confused and superfluous calls is acceptable."""
    assert codes(rewrite(tool, {"rule": text})) == []


def test_taking_calls_from_another_tool_needs_others_to_agree():
    """The closed form of a comparison passes and waits; any other comparison is refused."""
    form = "Prefer it to a tool that does this, when both seem to fit: "
    closed = rewrite(
        "bill_split",
        {"rule": f"{form}what the dealer promises about returns, warranty or trade-in."},
    )
    report = validate(closed)
    assert (report.is_valid, report.needs) == (True, ("judge", "person"))
    assert validate(rewrite("bill_split", {"rule": "People split the amount."})).needs == ()
    assert codes(rewrite("bill_split", {"rule": f"{form}anything with money."})) == [
        "self_promotion"
    ]
