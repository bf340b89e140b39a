"""Schemas from outside end within a bound, whoever reads them and whatever they are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from support.cost import check_cost, fuzzing
from support.hostile import SCHEMAS, Foreign, calls, doubling

from agentkit import Library
from agentkit.errors import AgentKitError
from agentkit.evaluation.doctor import Catalogue, examine
from agentkit.messages import UserMessage
from agentkit.models import ModelRequest
from agentkit.models.chat_completions import RequestEncoder
from agentkit.models.grammar import call_schema
from agentkit.retrieval import default_retriever
from agentkit.tools import ToolDefinition
from agentkit.tools.validation import validate_arguments


def defined(schema: Any) -> ToolDefinition:
    """A foreign tool with that schema."""
    return ToolDefinition.from_schema("foreign", "Looks a thing up.", schema)


def with_pattern(pattern: str) -> Foreign:
    """A schema whose one parameter has a pattern."""
    return Foreign({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}})


FREEZE = Foreign({"a": "a" * 40 + "!"})


@fuzzing
@given(call=calls())
@example(call=(with_pattern("^(a|a)*$"), FREEZE))
@example(call=(with_pattern(r"^(\w+\s?)*$"), FREEZE))
@example(call=(with_pattern("^(?:a?){40}a{40}$"), Foreign({"a": "a" * 39})))
@example(call=(Foreign(doubling(26, "allOf")), Foreign({"a": 1, "b": "x"})))
@example(call=(Foreign(doubling(26, "anyOf")), Foreign({"a": 1, "b": "x"})))
def test_arguments_are_checked_within_a_bound(call) -> None:
    """Whatever a schema says, a call is judged, or refused with a reason, within the bound."""
    schema, arguments = call

    def work() -> None:
        with suppress(AgentKitError):
            validate_arguments(defined(schema.value), arguments.value)

    check_cost(work, schema.size + arguments.size)


READERS: dict[str, Callable[[ToolDefinition], object]] = {
    "offer": lambda tool: RequestEncoder("m", max_tokens_field="max_tokens").encode(
        ModelRequest(messages=(UserMessage(text="hi"),), tools=(tool,)), stream=False
    ),
    "grammar": lambda tool: call_schema([tool]),
    "retriever": lambda tool: asyncio.run(
        default_retriever().retrieve("a thing in a city", Library([tool]))
    ),
    "doctor": lambda tool: examine(Catalogue.of([tool])),
    "record": lambda tool: ToolDefinition.from_json(tool.to_json()).digest,
}


@pytest.mark.parametrize("reader", READERS)
@fuzzing
@given(schema=SCHEMAS)
@example(schema=Foreign(doubling(26, "properties")))
@example(schema=Foreign(doubling(26, "anyOf")))
def test_schemas_are_read_within_a_bound(reader, schema) -> None:
    """What is done with a tool's schema beside checking calls ends within the bound, too."""

    def work() -> None:
        with suppress(AgentKitError):
            READERS[reader](defined(schema.value))

    check_cost(work, schema.size)
