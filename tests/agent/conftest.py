"""Tools and calls that the agent tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from agentkit import Tool, open_store, tool
from agentkit.library.store import Store
from agentkit.messages import ToolCall


@pytest.fixture
def add() -> Tool:
    @tool
    def add(a: int, b: int) -> int:
        """Add two whole numbers.

        Args:
            a: The first number.
            b: The second number.
        """
        return a + b

    return add


@pytest.fixture
def call() -> Callable[..., ToolCall]:
    """``call("add", a=1)`` makes a call whose id is its name, or ``id=`` when given."""

    def make(name: str, /, id: str | None = None, **arguments: object) -> ToolCall:  # noqa: A002
        return ToolCall(call_id=id or name, name=name, arguments=arguments)

    return make


@pytest.fixture
def store() -> Iterator[Store]:
    opened = open_store("memory:")
    yield opened
    opened.close()
