"""Records of gates: kept in events as JSON, refused when they can not be."""

from __future__ import annotations

import json
import math
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import StoreFormatError, UsageError
from agentkit.evolution.gates import (
    GateConfig,
    GateReport,
)

REPORTS = st.builds(
    GateReport,
    gate=st.text(),
    decision=st.sampled_from(["pass", "wait", "fail"]),
    reason=st.text(),
    statistics=st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False)),
)


@given(report=REPORTS)
def test_reports_survive_json(report):
    """Written as JSON text and read again, a report is what it was."""
    text = json.dumps(report.to_json(), allow_nan=False)
    assert GateReport.from_json(json.loads(text)) == report


@given(
    record=st.dictionaries(
        st.sampled_from(["gate", "decision", "reason", "statistics", "tasks", "lost", "x"]),
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    ),
)
def test_any_other_json_is_refused_with_a_reason(record):
    """What is no report gives an error of ours, never another one."""
    with suppress(StoreFormatError):
        assert isinstance(GateReport.from_json(record), GateReport)


def test_an_unknown_decision_is_refused():
    """Only the three decisions exist."""
    with pytest.raises(UsageError, match="pass, wait, fail"):
        GateReport(gate="g", decision="maybe", reason="")
    with pytest.raises(StoreFormatError, match="not a GateReport"):
        GateReport.from_json({"gate": "g", "decision": "maybe", "reason": ""})


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_report_holds_finite_numbers_only(value):
    """JSON has no others, and an event must be readable everywhere."""
    with pytest.raises(UsageError, match="must be finite"):
        GateReport(gate="g", decision="pass", reason="", statistics={"p": value})


@pytest.mark.parametrize(
    "rules",
    [
        {"alpha": 0},
        {"alpha": 0.5},
        {"alpha": math.nan},
        {"alarm_alpha": 1},
        {"margin": 1},
        {"alarm_margin": -0.1},
        {"lost_share": math.nan},
        {"token_growth": math.inf},
        {"min_pairs": 0},
        {"min_pairs": 3_000},
        {"min_sessions": 10, "max_sessions": 9},
    ],
)
def test_rules_out_of_range_are_refused(rules):
    """The message names the rule and its value."""
    with pytest.raises(UsageError, match=next(iter(rules)).split("_", maxsplit=1)[0]):
        GateConfig(**rules)
