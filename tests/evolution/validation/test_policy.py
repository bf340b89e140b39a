"""Who must agree to a change beyond the checks."""

from __future__ import annotations

import pytest

from agentkit.evolution.validation import ValidationPolicy, validate
from agentkit.evolution.validation.approvals import is_about_money
from agentkit.testing.rewrites import rewrite
from agentkit.tools.definition import Effects, ToolDefinition

BOTH = ("judge", "person")


@pytest.mark.parametrize(
    ("tool", "needs"),
    [
        ("calendar_cancel_event", BOTH),  # destructive
        ("transfer_money", BOTH),
        ("refund_order", BOTH),
        ("weather_now", BOTH),  # open world: what it is asked leaves the house
        ("calendar_create_event", ()),  # writes, and can be undone
        ("loan_monthly_payment", ()),  # about money, and known to move none
        ("calculate_loan", ()),  # declares nothing, and moves none by its words
        ("run_sql_query", ()),
    ],
)
def test_effects_and_words_decide(tool, needs, library):
    """Destructive, open-world and money-moving tools wait for a judge and a person."""
    known = library[tool].definition.description.summary
    assert validate(rewrite(tool, {"rule": known}, library=library)).needs == needs


def test_undeclared_effects_count_as_may_write():
    """A tool that declares nothing and speaks of payments is not known to only read."""
    pays = ToolDefinition(name="pay_invoice")
    reads = ToolDefinition.from_schema(
        "payment_status", "Shows payments.", {"properties": {}}, effects=Effects.of(["reads"])
    )
    assert ValidationPolicy().needs_for(pays) == BOTH
    assert ValidationPolicy().needs_for(reads) == ()


@pytest.mark.parametrize(
    "name",
    [
        "payInvoice",
        "Überweisung",
        "rembourser",
        "buy-shares",
    ],
)
def test_money_is_seen_in_several_languages(name):
    """In names of any style."""
    assert is_about_money(ToolDefinition(name=name))


@pytest.mark.parametrize("name", ["paid_leave_days", "list_files", "weather", "display", "repay"])
def test_words_that_merely_look_alike_are_not_money(name):
    """A word within a word does not count."""
    assert not is_about_money(ToolDefinition(name=name))


def test_the_policy_can_be_changed(library):
    """Everything can be asked of everybody, or of nobody."""
    change = rewrite("calculate_loan", {"rule": "Give each value once."}, library=library)
    strict = ValidationPolicy(undeclared=("person",), always=("judge",))
    assert validate(change, policy=strict).needs == BOTH
    loose = ValidationPolicy(destructive=(), open_world=(), money=(), comparing=())
    known = library["transfer_money"].definition.description.summary
    cancel = rewrite("transfer_money", {"rule": known}, library=library)
    assert validate(cancel, policy=loose).needs == ()


def test_a_candidate_can_not_declare_its_way_out(library):
    """What the base needs is needed, whatever effects the candidate claims."""
    change = rewrite("transfer_money", {"/signature/effects": {"writes": False}}, library=library)
    report = validate(change)
    assert report.needs == BOTH
    assert not report.is_valid
