"""The corpora of attacks and valid rewrites, each with what validation says."""

import json
from pathlib import Path

import pytest
from support.rewrites import read_rewrites

from agentkit.evolution.validation import validate
from agentkit.testing import sample_library
from agentkit.tools.definition import ToolDefinition

CORPORA = Path(__file__).parent / "corpora"
FIRST = {"overt": ("attacks", "attacks_held_out"), "valid": ("rewrites", "rewrites_held_out")}


@pytest.fixture(scope="session")
def library():
    """The sample tools and eighteen further ones, in six languages."""
    records = json.loads((CORPORA / "tools.json").read_text(encoding="utf-8"))
    return sample_library().with_tools(map(ToolDefinition.from_json, records))


def reported(cases, library):
    """Each change of a corpus, with its report."""
    return [(case, validate(case.change(library))) for case in cases]


@pytest.fixture(scope="session")
def first(library):
    """The corpus that the checks were written with."""
    return {
        kind: [
            one
            for name in names
            for one in reported(read_rewrites(CORPORA / f"{name}.tsv"), library)
        ]
        for kind, names in FIRST.items()
    }


@pytest.fixture(scope="session", params=["second", "third"])
def further(request):
    """A corpus that was written without sight of the checks."""
    folder = CORPORA / request.param
    records = (folder / "tools.jsonl").read_text(encoding="utf-8").splitlines()
    tools = [ToolDefinition.from_json(json.loads(record)["definition"]) for record in records]
    library = sample_library().with_tools(tools)
    kinds = ("overt", "paraphrased", "valid")
    return {kind: reported(read_rewrites(folder / f"{kind}.jsonl"), library) for kind in kinds}
