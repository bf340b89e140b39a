"""A small benchmark of the shape of BFCL, and how much of the large corpora is gone through."""

import os
from pathlib import Path

import pytest

from agentkit_bench.bfcl import load_bfcl

SAMPLE = Path(__file__).parents[2] / "plugins/agentkit-bench/tests/sample_bfcl"


@pytest.fixture
def sample():
    """The sample, loaded."""
    return load_bfcl(SAMPLE)


@pytest.fixture(scope="session")
def every():
    """Every nth of many, for the sake of time; all of them where AGENTKIT_WHOLE_CORPORA is set."""

    def of(step, items):
        return items if os.environ.get("AGENTKIT_WHOLE_CORPORA") else items[::step]

    return of
