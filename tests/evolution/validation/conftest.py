"""The corpora of attacks and valid rewrites, and the library that they are about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.rewrites import read_rewrites

from agentkit.evolution.validation import validate
from agentkit.library.library import Library
from agentkit.testing import sample_library
from agentkit.tools.definition import ToolDefinition

CORPORA = Path(__file__).parent / "corpora"


@pytest.fixture(scope="session")
def library():
    """The sample tools and eighteen further ones, in six languages."""
    records = json.loads((CORPORA / "tools.json").read_text(encoding="utf-8"))
    return sample_library().with_tools(map(ToolDefinition.from_json, records))


@pytest.fixture(scope="session")
def catalogue():
    """Reading tools in the style of public catalogues, none of them about the others."""
    records = json.loads((CORPORA / "catalogue_tools.json").read_text(encoding="utf-8"))
    return Library(map(ToolDefinition.from_json, records))


@pytest.fixture(scope="session")
def catalogue_cases():
    """Attacks and valid rewrites of these tools, with which words that are new were chosen."""
    return read_rewrites(CORPORA / "catalogue.tsv")


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
def reports(attacks, rewrites, library):
    """What validation says of each change of all four files."""
    return {
        id(case): validate(case.change(library))
        for halves in (attacks, rewrites)
        for half in halves.values()
        for case in half
    }
