"""The made-up rollouts of the tests of engines, for those of several processes."""

import importlib.util
from pathlib import Path

import pytest

_FILE = Path(__file__).parents[1] / "engines" / "conftest.py"


@pytest.fixture
def recorded_source():
    """The class of sources of made-up rollouts."""
    spec = importlib.util.spec_from_file_location("recorded", _FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Recorded
