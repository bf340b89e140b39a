"""Structured output: from a Python type to a schema, and from the model's text to a value."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentkit.episodes import Turn
from agentkit.messages import AssistantMessage, JsonObject, ToolCall
from agentkit.tools.error_messages import problems_of
from agentkit.tools.schema_validator import UncheckableError, schema_errors

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputProblem:
    """Why a final answer is not what was asked for, in words that the model reads."""

    text: str


@dataclass(frozen=True, kw_only=True)
class OutputFormat:
    """What the final answer must look like.

    Attributes:
        schema: JSON Schema of the answer.
        adapter: Pydantic adapter that makes the Python value; None when a bare schema was given.
    """

    schema: JsonObject
    adapter: Any = field(default=None, repr=False)

    @classmethod
    def of(cls, output_type: Any) -> OutputFormat | None:
        """The format for an agent's ``output_type``: a type, a JSON Schema, or None for text."""
        if output_type is None or output_type is str:
            return None
        if isinstance(output_type, dict):
            return cls(schema=output_type)
        from pydantic import TypeAdapter

        adapter: TypeAdapter[Any] = TypeAdapter(output_type)
        return cls(schema=adapter.json_schema(), adapter=adapter)

    def parse(self, text: str) -> Any | OutputProblem:
        """The value in ``text``, which may be wrapped in a code fence, or what is wrong with it."""
        try:
            data = json.loads(_unfenced(text))
        except (ValueError, RecursionError) as error:
            return OutputProblem(text=f"The answer is not JSON: {error}.")
        return self._against_schema(data) if self.adapter is None else self._adapted(data)

    def _adapted(self, data: object) -> Any | OutputProblem:
        from pydantic import ValidationError

        try:
            return self.adapter.validate_python(data)
        except ValidationError as error:
            found = "; ".join(
                f"{'.'.join(map(str, e['loc'])) or 'answer'}: {e['msg']}"
                for e in error.errors()[:5]
            )
            return OutputProblem(text=f"The answer does not fit: {found}.")

    def _against_schema(self, data: object) -> Any | OutputProblem:
        try:
            errors = schema_errors(data, self.schema)
        except UncheckableError as unknown:
            return OutputProblem(text=f"The answer can not be checked: {unknown}.")
        for problem in problems_of(errors, owner="a field", noun="field", whole="answer"):
            return OutputProblem(text=f"The answer does not fit: {problem.rule}.")
        return data

    def to_data(self, value: Any) -> Any:
        """The value as JSON data, for the episode."""
        return value if self.adapter is None else self.adapter.dump_python(value, mode="json")


def _unfenced(text: str) -> str:
    fenced = _FENCED.search(text)
    return fenced.group(1) if fenced else text.strip()


MAX_ARGUMENT_DEPTH = 64
"""Deeper nesting is no argument that a tool asks for; it would only exhaust the stack of whoever
walks it."""


def normalize_response(message: AssistantMessage, turns: Sequence[Turn]) -> AssistantMessage:
    """The answer as the run goes on with it.

    Some servers number calls anew in each answer, but ids must be unique within a run. Arguments
    nested deeper than ``MAX_ARGUMENT_DEPTH`` become malformed.
    """
    if not message.tool_calls:
        return message
    taken = {call.call_id for turn in turns for call in turn.message.tool_calls}
    return replace(
        message, tool_calls=tuple(_renamed(_bounded(call), taken) for call in message.tool_calls)
    )


def _renamed(call: ToolCall, taken: set[str]) -> ToolCall:
    call_id, suffix = call.call_id, 2
    while call_id in taken:
        call_id, suffix = f"{call.call_id}-{suffix}", suffix + 1
    taken.add(call_id)
    return call if call_id == call.call_id else replace(call, call_id=call_id)


def _bounded(call: ToolCall) -> ToolCall:
    if not _is_deeper(call.arguments, MAX_ARGUMENT_DEPTH):
        return call
    text = f"arguments nested more than {MAX_ARGUMENT_DEPTH} levels deep"
    return replace(call, arguments={}, malformed=text)


def _is_deeper(value: Any, depth: int) -> bool:
    if isinstance(value, Mapping):
        return depth == 0 or any(_is_deeper(item, depth - 1) for item in value.values())
    if isinstance(value, list | tuple):
        return depth == 0 or any(_is_deeper(item, depth - 1) for item in value)
    return False
