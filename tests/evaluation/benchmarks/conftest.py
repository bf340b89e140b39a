"""Files of tasks that a test writes down, tools for them, and where the public corpora are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agentkit import Tool, ToolDefinition, tool
from agentkit.evaluation.benchmarks import gsm8k_benchmark, nestful_benchmark

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


@pytest.fixture(scope="session")
def corpus(project_root):
    """The folder of one public corpus; skips where it is not beside the checkout."""

    def folder(name):
        root = Path(os.environ.get("AGENTKIT_CORPORA", project_root.parent / "shared" / "data"))
        if not (root / name).is_dir():
            pytest.skip(f"no corpus {name!r} in {root}; name the folder in AGENTKIT_CORPORA")
        return root / name

    return folder


@pytest.fixture(scope="session")
def word_problems(corpus):
    """The whole of GSM8K."""
    return gsm8k_benchmark(corpus("gsm8k"))


@pytest.fixture(scope="session")
def planned(corpus):
    """The whole of NESTFUL as plans."""
    return nestful_benchmark(corpus("nestful"))


@pytest.fixture(scope="session")
def executed(corpus):
    """The whole of NESTFUL on recorded responses."""
    return nestful_benchmark(corpus("nestful"), asking="executed")
