"""The page about InsertTool tells every outcome that the code knows."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

from agentkit.evolution import RejectionCode
from agentkit.evolution.dry_run import InsertPolicy

PAGE = (Path(__file__).parents[2] / "docs" / "insert-tool.md").read_text(encoding="utf-8")


def test_every_rejection_code_has_a_row_in_the_order_of_the_code():
    """The table of codes and the type are the same list."""
    rows = re.findall(r"^\| `(\w+)` \| .+ \| .+ \|$", PAGE, re.MULTILINE)
    codes = [row for row in rows if row not in {"added", "merged", "rejected"}]
    assert codes == list(get_args(RejectionCode))


def test_every_policy_field_that_the_page_names_exists():
    """A renamed knob has to be renamed in the page."""
    named = set(re.findall(r"InsertPolicy[.(](\w+)", PAGE))
    assert named <= {field.name for field in fields(InsertPolicy)}
