"""Decoded data made plain JSON: what YAML, Python and broken texts bring along is put right."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from agentkit.errors import DefinitionError
from agentkit.reading import MAX_DEPTH

MAX_NODES = 5_000_000
"""Values in one document, aliases counted as often as they are used. The largest public API
descriptions hold some 700,000."""


def plain_json(value: object) -> Any:
    """The value as JSON data: keys are text, numbers finite, texts can be written in UTF-8.

    Raises:
        DefinitionError: The value holds itself, is nested deeper than 200 levels, or has more than
            five million parts, as aliases of YAML can make of a few lines.
    """
    return _Copy().value(value, 0)


class _Copy:
    """One pass; counts on the way."""

    def __init__(self) -> None:
        self._left = MAX_NODES

    def value(self, value: object, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise DefinitionError(
                f"the document has more than {MAX_NODES:,} values once its aliases are written "
                "out; that is no API description, so it is not read"
            )
        if depth > MAX_DEPTH:
            raise DefinitionError(
                f"the document is nested deeper than {MAX_DEPTH} levels, or holds itself; "
                "write recursion as $ref"
            )
        if isinstance(value, str):
            return plain_text(value)
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, Mapping):
            return {
                plain_text(key if isinstance(key, str) else _key(key)): self.value(item, depth + 1)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.value(item, depth + 1) for item in value]
        return plain_text(str(value))


def _key(key: object) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def plain_text(text: str) -> str:
    """The text with half surrogate pairs, which UTF-8 can not hold, replaced by ``?``."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")
