"""A small benchmark of the shape of BFCL, written for these tests."""

from pathlib import Path

import pytest

from agentkit.evaluation.bfcl import load_bfcl

SAMPLE = Path(__file__).parent / "sample_bfcl"


@pytest.fixture
def sample_folder():
    """The folder with the sample's files."""
    return SAMPLE


@pytest.fixture
def sample():
    """The sample, loaded."""
    return load_bfcl(SAMPLE)
