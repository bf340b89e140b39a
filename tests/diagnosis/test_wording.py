"""Failures are worded for recovery: what happened, what is allowed, what to do next."""

from __future__ import annotations

from typing import get_args

import pytest

from agentkit.diagnosis.wording import describe_failure
from agentkit.messages import FailureKind, ToolFailure


@pytest.mark.parametrize("kind", get_args(FailureKind))
def test_every_kind_has_words(kind):
    """Each kind of failure names the tool, the rule and a way out."""
    text = describe_failure("book", ToolFailure(kind=kind, rule="Rule."))

    assert "book" in text
    assert "Rule." in text
    assert len(text.splitlines()) == 2


def test_schema_and_nearest_are_shown():
    """The excerpt and the nearest names stand on lines of their own."""
    failure = ToolFailure(
        kind="invalid_arguments",
        rule="`colour` must be one of the listed values",
        path="colour",
        schema_excerpt={"enum": ["red", "blue"]},
        nearest=("red",),
    )

    lines = describe_failure("paint", failure).splitlines()

    assert lines[1] == 'Schema of colour: {"enum": ["red", "blue"]}'
    assert lines[2] == "Nearest: red."
