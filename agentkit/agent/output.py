"""Structured output: from a Python type to a schema, and from the model's text to a value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agentkit.messages import JsonObject, is_finite
from agentkit.reading import read_answer
from agentkit.tools.error_messages import problems_of
from agentkit.tools.schema_validator import UncheckableError, schema_errors

_MOST_PROBLEMS = 1_000  # more are only counted: a list of them takes a second


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
    def of(cls, output_type: Any) -> OutputFormat:
        """The format for an agent's ``output_type``: a type, or a JSON Schema."""
        if isinstance(output_type, dict):
            return cls(schema=output_type)
        from pydantic import TypeAdapter

        adapter: TypeAdapter[Any] = TypeAdapter(output_type)
        return cls(schema=adapter.json_schema(), adapter=adapter)

    def parse(self, text: str) -> tuple[Any, str]:
        """The value in ``text``, which may be wrapped in a code fence, and what is wrong with it.

        Returns:
            The value, and why it is not what was asked for in words that the model reads; empty
            when nothing is wrong.
        """
        try:
            data = read_answer(text)
        except ValueError as error:
            return None, f"The answer is not JSON: {error}."
        if not is_finite(data):
            return None, "The answer is not JSON: it holds a number beyond all bounds, or NaN."
        return self._against_schema(data) if self.adapter is None else self._adapted(data)

    def _adapted(self, data: object) -> tuple[Any, str]:
        from pydantic import ValidationError

        try:
            return self.adapter.validate_python(data), ""
        except ValidationError as error:
            if (count := error.error_count()) > _MOST_PROBLEMS:
                return None, f"The answer does not fit, in {count:,} places."
            found = "; ".join(
                f"{'.'.join(map(str, e['loc'])) or 'answer'}: {e['msg']}"
                for e in error.errors()[:5]
            )
            return None, f"The answer does not fit: {found}."

    def _against_schema(self, data: object) -> tuple[Any, str]:
        try:
            errors = schema_errors(data, self.schema)
        except UncheckableError as unknown:
            return None, f"The answer can not be checked: {unknown}."
        problems = problems_of(errors, owner="a field", noun="field", whole="answer")
        first = next(iter(problems), None)
        return data, "" if first is None else f"The answer does not fit: {first.rule}."

    def to_data(self, value: Any) -> Any:
        """The value as JSON data, for the episode."""
        return value if self.adapter is None else self.adapter.dump_python(value, mode="json")
