"""Files of tasks that a test writes down, and tools for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentkit import Tool, ToolDefinition, tool

SHOP = Path("examples") / "shop_tasks"


@tool
def add(a: int, b: float = 1) -> float:
    """Add two numbers.

    Args:
        a: One.
        b: Another.
    """
    return a + b


BOOK = Tool(
    definition=ToolDefinition.from_schema(
        "book_table",
        "Book a table.",
        {
            "type": "object",
            "properties": {"day": {"enum": ["sat", "sun"]}, "guests": {"type": "integer"}},
            "required": ["day"],
        },
    )
)


@pytest.fixture
def tools():
    """A bound tool and an unbound one."""
    return [add, BOOK]


@pytest.fixture
def write(tmp_path):
    """Writes rows to a file: objects as JSON, texts and bytes as they are."""

    def written(*rows, name="tasks.jsonl"):
        path = tmp_path / name
        lines = [
            row
            if isinstance(row, bytes)
            else row.encode()
            if isinstance(row, str)
            else json.dumps(row).encode()
            for row in rows
        ]
        path.write_bytes(b"\n".join(lines) + b"\n")
        return path

    return written


@pytest.fixture
def row():
    """A row that is fine but for what the test says."""

    def made(**fields):
        return {"id": "t", "request": "What is 2 + 2?", "expects": {"number": 4}, **fields}

    return made


@pytest.fixture
def shop(project_root):
    """The folder of the example with the shop."""
    return project_root / SHOP
