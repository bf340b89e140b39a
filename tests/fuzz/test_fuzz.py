"""Whatever strangers send ends within bounds of time and memory."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from support.cost import EXAMPLES, check_cost, fuzzing
from support.hostile import DOCUMENTS, LISTINGS, RULES, SCHEMAS, Foreign, calls, doubling, edited

from agentkit import Library
from agentkit.agent.checks import ContractChecker
from agentkit.composites import rule_problems
from agentkit.errors import AgentKitError
from agentkit.evaluation.doctor import Catalogue, examine
from agentkit.evolution import ToolManager
from agentkit.interop.export import artifact_of, artifact_text, parse_artifact
from agentkit.interop.mcp.listing import RawListing
from agentkit.interop.mcp.screening import ImportPolicy, Memory, import_listing
from agentkit.interop.openapi import openapi_tools
from agentkit.library import Author, open_store
from agentkit.messages import UserMessage
from agentkit.models import ModelRequest
from agentkit.models.chat_completions import RequestEncoder
from agentkit.models.grammar import call_schema
from agentkit.retrieval import default_retriever
from agentkit.testing import sample_library
from agentkit.tools import ToolDefinition
from agentkit.tools.definition import Specification
from agentkit.tools.rules import rule_from_json
from agentkit.tools.validation import validate_arguments

# A frozen interpreter hears no signal: a thread prints the stack and ends the process.
pytestmark = [
    pytest.mark.timeout(120 + EXAMPLES, method="thread"),
    pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning"),
]


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
def test_arguments_are_checked_within_a_bound(call):
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
def test_schemas_are_read_within_a_bound(reader, schema):
    """What is done with a tool's schema beside checking calls ends within the bound, too."""

    def work() -> None:
        with suppress(AgentKitError):
            READERS[reader](defined(schema.value))

    check_cost(work, schema.size)


def small_artifact() -> str:
    """An artifact of two tools with their history."""
    store = open_store("memory:")
    tools = [sample_library()[name] for name in ("cars_search", "bill_split")]
    ToolManager(store, author=Author(kind="person", name="ada")).register(tools, reason="a start")
    return artifact_text(artifact_of(store))


ARTIFACT = small_artifact()


@fuzzing
@given(listing=LISTINGS)
def test_listings_of_mcp_servers_are_sorted_within_a_bound(listing):
    """Each entry is offered or held; nothing raises, however it is written."""

    def work() -> None:
        raw = RawListing(records=tuple(listing.value))
        import_listing(raw, ImportPolicy(server="foreign"), Memory())

    check_cost(work, listing.size)


@fuzzing
@given(document=DOCUMENTS)
def test_openapi_descriptions_are_read_within_a_bound(document):
    """A description becomes tools and a report, or is refused."""

    def work() -> None:
        with suppress(AgentKitError):
            openapi_tools(document.value)

    check_cost(work, document.size)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@fuzzing
@given(text=edited(ARTIFACT))
def test_damaged_artifacts_are_refused_within_a_bound(packed, text):
    """An artifact that somebody edited is read as it is, or refused with what is wrong."""
    data = gzip.compress(text.encode(), 1) if packed else text.encode()

    def work() -> None:
        with suppress(AgentKitError):
            parse_artifact(data)

    check_cost(work, len(text))


BOMBS = {
    "zeros": lambda: b"0," * 40_000_000,
    "brackets": lambda: b"[" * 80_000_000,
    "objects": lambda: b'{"a":{"b":[]}},' * 5_000_000,
    "one text": lambda: b"a" * 80_000_000,
    "digits": lambda: b"9" * 80_000_000,
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_small_files_that_expand_are_refused(bomb):
    """Neither the bytes nor the values that a few kilobytes expand to fill the memory."""
    data = gzip.compress(b'{"agentkit_artifact": [' + BOMBS[bomb]() + b"0]}", 9)

    def work() -> None:
        with suppress(AgentKitError):
            parse_artifact(data)

    check_cost(work, len(data))


@fuzzing
@given(rule=RULES, call=calls())
def test_rules_are_judged_and_applied_within_a_bound(rule, call):
    """A record is no rule, or a rule with problems, or one that every call is held to."""
    schema, arguments = call

    def work() -> None:
        with suppress(AgentKitError):
            tool = ToolDefinition.from_schema("foreign", "Looks a thing up.", schema.value)
            try:
                learned = rule_from_json(rule.value)
            except TypeError:
                return
            if rule_problems(learned, tool, {"foreign"}):
                return
            ruled = replace(tool, specification=Specification(rules=(learned,)))
            if isinstance(arguments.value, dict):
                ContractChecker("always").before(ruled, arguments.value)

    check_cost(work, rule.size + schema.size + arguments.size)
