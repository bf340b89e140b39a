"""Every check shows in its docstring what it accepts and what it rejects."""

from __future__ import annotations

import doctest

import pytest

from agentkit.evolution.validation import (
    ALL_CHECKS,
    LEXICAL_CHECKS,
    SEMANTIC_CHECKS,
    STRUCTURAL_CHECKS,
)


@pytest.mark.parametrize("check", ALL_CHECKS, ids=lambda check: check.__name__)
def test_a_check_shows_both_sides(check):
    """The examples hold one change without an objection and one with (they run as doctests)."""
    wants = [
        example.want.strip() for example in doctest.DocTestParser().get_examples(check.__doc__)
    ]
    assert "[]" in wants
    assert any(want.startswith("[") and want != "[]" for want in wants)


def test_the_layers_make_up_the_whole():
    """No check stands in two layers, and each in the list of all."""
    assert (*LEXICAL_CHECKS, *STRUCTURAL_CHECKS, *SEMANTIC_CHECKS) == ALL_CHECKS
    assert len(set(ALL_CHECKS)) == len(ALL_CHECKS)
