"""Records of gates: kept in events as JSON, refused when they can not be."""

from __future__ import annotations

import json
import math
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import StoreFormatError, UsageError
from agentkit.evolution.gates import (
    ArmScore,
    GateReport,
    GateRules,
    PairedScore,
    PairedSelection,
)

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.lists(st.text(max_size=5), max_size=3).map(tuple)
RECORDS = st.one_of(
    st.builds(
        GateReport,
        gate=st.text(),
        decision=st.sampled_from(["pass", "wait", "fail"]),
        reason=st.text(),
        statistics=st.dictionaries(st.text(), NUMBERS),
    ),
    st.builds(PairedScore, task=st.text(), control=NUMBERS, candidate=NUMBERS, group=st.text()),
    st.builds(
        ArmScore, session=st.text(), arm=st.sampled_from(["control", "candidate"]), score=NUMBERS
    ),
    st.builds(
        PairedSelection,
        task=st.text(),
        control=NAMES,
        candidate=NAMES,
        expected=NAMES,
        accepted=st.booleans(),
    ),
    st.builds(GateRules, alpha=st.floats(0.001, 0.4), margin=st.floats(0, 0.9)),
)


@given(record=RECORDS)
def test_records_survive_json(record):
    """Written as JSON text and read again, each is what it was."""
    text = json.dumps(record.to_json(), allow_nan=False)
    assert type(record).from_json(json.loads(text)) == record


@given(
    kind=st.sampled_from([GateReport, PairedScore, ArmScore, PairedSelection, GateRules]),
    record=st.dictionaries(
        st.sampled_from(["gate", "decision", "task", "control", "candidate", "arm", "alpha", "x"]),
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3), NUMBERS),
    ),
)
def test_any_other_json_is_refused_with_a_reason(kind, record):
    """What is no such record gives an error of ours or a record, never another error."""
    with suppress(StoreFormatError, UsageError):
        assert isinstance(kind.from_json(record), kind)


@pytest.mark.parametrize(
    "record",
    [
        {"task": "t", "control": True, "candidate": 1},
        {"task": "t", "control": "1", "candidate": 1},
        {"task": "t", "control": 10**400, "candidate": 1},
        {"task": "t", "control": 1},
        {"task": 3, "control": 1, "candidate": 1},
        {"task": "t", "control": 1, "candidate": 1, "more": 1},
    ],
)
def test_values_of_other_types_are_no_scores(record):
    """A bool, a text, an integer beyond all floats, a missing or an unknown part."""
    with pytest.raises(StoreFormatError, match="not a PairedScore"):
        PairedScore.from_json(record)


def test_an_unknown_decision_or_arm_is_refused():
    """Only the three decisions and the two arms exist."""
    with pytest.raises(UsageError, match="pass, wait, fail"):
        GateReport(gate="g", decision="maybe", reason="")
    with pytest.raises(StoreFormatError, match="not a GateReport"):
        GateReport.from_json({"gate": "g", "decision": "maybe", "reason": ""})
    with pytest.raises(StoreFormatError, match="control or candidate"):
        ArmScore.from_json({"session": "s", "arm": "both", "score": 1})


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
        {"least_pairs": 0},
        {"least_pairs": 3_000},
        {"least_sessions": 10, "most_sessions": 9},
    ],
)
def test_rules_out_of_range_are_refused(rules):
    """The message names the rule and its value."""
    with pytest.raises(UsageError, match=next(iter(rules)).split("_", maxsplit=1)[0]):
        GateRules(**rules)
    with pytest.raises(UsageError):
        GateRules.from_json(rules)
