"""Every line of the security page names a test that exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

_TEST = re.compile(r"`((?:plugins/[\w-]+/)?tests/[\w/]+\.py)(?:::(\w+))?`")


def test_every_line_names_a_test_that_exists(project_root: Path) -> None:
    """Each row of a table ends with a test, and the test is there under that name."""
    page = (project_root / "docs" / "security.md").read_text(encoding="utf-8")
    rows = [
        line for line in page.splitlines() if line.startswith("| ") and "| held by |" not in line
    ]
    assert len(rows) >= 30
    for row in rows:
        path, name = _TEST.findall(row.rsplit("|", 2)[1])[0]
        module = ast.parse((project_root / path).read_text(encoding="utf-8"))
        assert not name or name in {node.name for node in ast.walk(module) if hasattr(node, "name")}
