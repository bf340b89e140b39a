"""The order of labels, and the one table that says what a failure of a call stands for."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from agentkit.diagnosis import PRECEDENCE, describe_failure, dominant
from agentkit.diagnosis.labels import (
    LABEL_OF_EVIDENCE,
    LABEL_OF_FAILURE,
    OUTSIDE,
    blamed_argument,
    label_of_failure,
)
from agentkit.episodes import EvidenceKind, FailureLabel
from agentkit.messages import FailureKind, ToolFailure


def test_the_order_is_that_of_the_paper():
    """SEAL's table 5, with the labels that it does not place in between and behind."""
    table_5 = [
        "invalid_tool_call",
        "argument_mismatch",
        "state_mismatch",
        "recovery_failure",
        "missing_tool_call",
        "response_mismatch",
    ]
    assert [label for label in PRECEDENCE if label in table_5] == table_5
    assert set(PRECEDENCE) | OUTSIDE == set(get_args(FailureLabel))
    assert not set(PRECEDENCE) & OUTSIDE


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(PRECEDENCE, 2)))
def test_the_earlier_label_dominates(first, second):
    """Of two labels the one that stands first in the order is the dominant one."""
    assert dominant([second, first]) == first


def test_each_failure_and_each_finding_has_its_row():
    """Both tables are complete, so no kind that is added later can be forgotten."""
    assert set(LABEL_OF_FAILURE) == set(get_args(FailureKind))
    assert set(LABEL_OF_EVIDENCE) == set(get_args(EvidenceKind))


@pytest.mark.parametrize("kind", get_args(FailureKind))
def test_what_the_model_is_told_fits_the_label(kind):
    """A call that is labelled is to be made differently; one that is not is never just repeated."""
    failure = ToolFailure(kind=kind, rule="Rule.")
    way_out = describe_failure("book", failure).splitlines()[-1]
    invites = way_out.startswith(("Send the call again", "Use only", "Correct", "Change the"))
    assert invites == (label_of_failure(failure) is not None)


@pytest.mark.parametrize(
    ("rule", "value", "is_blamed"),
    [
        ("KeyError: 'Bergen'", "Bergen", True),
        ("no station in Bergen", "Bergen", True),
        ("Bergenfield is closed", "Bergen", False),
        ("could not get the file", "get", False),
        ("KeyError: 'get'", "get", True),
        ("the value is no", "no", False),
        ("cat: notes.txt: no such file", "notes.txt", True),
        ("RuntimeError: the socket is closed", "Bergen", False),
    ],
)
def test_an_error_blames_an_argument_when_it_quotes_it(rule, value, is_blamed):
    """Whole words count; common words only in quotation marks; short ones never."""
    failure = ToolFailure(kind="tool_error", rule=rule, cause="KeyError")
    found = blamed_argument(failure, {"days": 3, "city": value})
    assert found == ("city" if is_blamed else None)
