"""Recorded answers in the place of tools that touch the world."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from agentkit.evolution.insertion.policy import InsertPolicy
from agentkit.messages import JsonObject, ToolCall
from agentkit.metrics.calls import CanonicalCall, canonical_calls
from agentkit.tools.definition import Example, ToolDefinition
from agentkit.tools.tool import Tool


class MissingStub(Exception):  # noqa: N818 - a signal inside this package, told as a rejection
    """A tool that touches the world was asked something that no worked call answers.

    Attributes:
        tool_name: The tool.
        arguments: What it was asked.
    """

    def __init__(self, tool_name: str, arguments: JsonObject) -> None:
        self.tool_name = tool_name
        self.arguments = dict(arguments)
        super().__init__(f"no recorded answer of {tool_name} for {self.arguments}")


def runs_live(definition: ToolDefinition, policy: InsertPolicy) -> bool:
    """Whether validation may run the tool itself: it is known to touch nothing outside the call.

    A tool that reads the world is answered from its records as well: what it says tomorrow is no
    evidence for what it said.
    """
    effects = definition.signature.effects
    if policy.run_undeclared and not effects.to_json():
        return True
    return effects.is_read_only and not effects.reads and not effects.open_world


def stub(definition: ToolDefinition) -> Tool:
    """A tool that answers from the worked calls of ``definition``, and touches nothing.

    Calls are recognised whatever the order of keys and whether defaults are written out.

    Example:
        >>> from agentkit.tools.definition import Example
        >>> book = ToolDefinition(
        ...     name="book", examples=(Example(arguments={"day": "Monday"}, result="B-1"),)
        ... )
        >>> stub(book)(day="Monday")
        'B-1'
    """
    answers = {
        call_key(definition, example.arguments): example.result
        for example in reversed(
            definition.worked_calls
        )  # the first of two contradicting ones holds
    }

    def answer(**arguments: Any) -> Any:
        key = call_key(definition, arguments)
        if key not in answers:
            raise MissingStub(definition.name, arguments)
        return answers[key]

    return Tool(definition=definition, function=answer)


def with_examples(
    definition: ToolDefinition, examples: Iterable[Example], *, most: int
) -> ToolDefinition:
    """A definition with further worked calls; itself when it has them all.

    What it says of a call already stays: a call has one answer, the first. Examples without a
    result answer nothing, so they stand beside those.

    Args:
        definition: The tool.
        examples: Worked calls under the names of its own parameters.
        most: Worked calls that a tool keeps, and as many examples without a result; those beyond
            are left out.
    """
    kept = list(definition.examples)
    known = {_kind_of(definition, example) for example in kept}
    room = {is_whole: most - sum(one.is_whole is is_whole for one in kept) for is_whole in _BOTH}
    for example in examples:
        kind = _kind_of(definition, example)
        if kind not in known and room[example.is_whole] > 0:
            known.add(kind)
            kept.append(example)
            room[example.is_whole] -= 1
    if len(kept) == len(definition.examples):
        return definition
    return replace(definition, examples=tuple(kept))


_BOTH = (True, False)


def _kind_of(definition: ToolDefinition, example: Example) -> tuple[CanonicalCall, str | None]:
    """Equal for two examples one of which is enough."""
    return call_key(definition, example.arguments), None if example.is_whole else example.query


def call_key(definition: ToolDefinition, arguments: JsonObject) -> CanonicalCall:
    """Equal for two sets of arguments that make the same call of a tool."""
    call = ToolCall(call_id="", name=definition.name, arguments=arguments)
    (key,) = canonical_calls([call], [definition])
    return key
