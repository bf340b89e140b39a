"""What holds of every fuzz test."""

from __future__ import annotations

import pytest
from support.cost import EXAMPLES


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A frozen interpreter hears no signal: a thread prints the stack and ends the process."""
    for item in items:
        if "fuzz" in item.path.parts:
            item.add_marker(pytest.mark.timeout(120 + EXAMPLES, method="thread"))
            item.add_marker(
                pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")
            )
