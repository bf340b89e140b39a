"""Files of tasks that a test writes down, and tools for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.judging import row, tools, write  # noqa: F401 - fixtures

SHOP = Path("examples") / "shop_tasks"


@pytest.fixture
def shop(project_root):
    """The folder of the example with the shop."""
    return project_root / SHOP
