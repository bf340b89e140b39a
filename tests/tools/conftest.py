"""Fixtures of the tests of tools."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentkit.tools import Rule, Specification, ToolDefinition


@pytest.fixture(scope="session")
def corpus_rows(project_root: Path) -> Callable[[str], list[dict[str, Any]]]:
    """Reads the tools of a public corpus; skips the test when the corpus is not there."""
    root = Path(os.environ.get("AGENTKIT_CORPORA", project_root.parent / "shared" / "data"))

    def rows(name: str) -> list[dict[str, Any]]:
        path = root / name / "tools.jsonl.gz"
        if not path.is_file():
            pytest.skip(f"no corpus {name!r} in {root}; name the folder in AGENTKIT_CORPORA")
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    return rows


LOAN = ToolDefinition.from_schema(
    "quote_loan",
    "Quote a loan.",
    {
        "type": "object",
        "properties": {
            "amount": {"type": "number", "description": "How much."},
            "periods": {"type": "integer", "description": "How long."},
            "currency": {"type": "string"},
            "start": {"type": "string"},
            "end": {"type": "string"},
            "customer_id": {"type": "string"},
            "address": {
                "type": "object",
                "properties": {"country": {"type": "string", "description": "Where."}},
            },
            "items": {
                "type": "array",
                "items": {"type": "object", "properties": {"sku": {"type": "string"}}},
            },
        },
        "required": ["amount"],
    },
)


@pytest.fixture
def loan() -> ToolDefinition:
    """A definition that does not say which terms the tool knows."""
    return LOAN


@pytest.fixture
def loan_with() -> Callable[..., ToolDefinition]:
    """Makes the same definition with rules."""

    def with_rules(*rules: Rule) -> ToolDefinition:
        return replace(LOAN, specification=Specification(rules=rules))

    return with_rules
