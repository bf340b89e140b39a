"""Fixtures of the tests of tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from agentkit.tools import Rule, Specification, ToolDefinition

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
def loan_with() -> Callable[..., ToolDefinition]:
    """Makes the same definition with rules."""

    def with_rules(*rules: Rule) -> ToolDefinition:
        return replace(LOAN, specification=Specification(rules=rules))

    return with_rules
