"""The corpora of attacks and valid rewrites, and the library that they are about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentkit.evolution.validation.validate import validate
from agentkit.testing import sample_library
from agentkit.testing.rewrites import read_rewrites
from agentkit.tools.definition import ToolDefinition

CORPORA = Path(__file__).parent / "corpora"


@pytest.fixture(scope="session")
def library():
    """The sample tools and eighteen further ones, in six languages."""
    records = json.loads((CORPORA / "tools.json").read_text(encoding="utf-8"))
    return sample_library().with_tools(map(ToolDefinition.from_json, records))


@pytest.fixture(scope="session")
def attacks():
    """Both halves: the one that the checks were written with, and the one held out."""
    return {
        "first": read_rewrites(CORPORA / "attacks.tsv"),
        "held_out": read_rewrites(CORPORA / "attacks_held_out.tsv"),
    }


@pytest.fixture(scope="session")
def rewrites():
    """Valid changes, in the same two halves."""
    return {
        "first": read_rewrites(CORPORA / "rewrites.tsv"),
        "held_out": read_rewrites(CORPORA / "rewrites_held_out.tsv"),
    }


@pytest.fixture(scope="session")
def passes(attacks, rewrites, library):
    """Which changes of all four files validation accepts."""
    return {
        id(case): validate(case.change(library)).is_valid
        for halves in (attacks, rewrites)
        for half in halves.values()
        for case in half
    }
