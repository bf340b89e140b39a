"""Which values of one argument a gold call allows; the rules stand in ``allowed_values``.

Everything that can be worked out from the gold call and the tool alone is worked out once, in
``argument_rule``. Judging a value is then mostly a look into a set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentkit.messages import JsonObject
from agentkit.metrics.foreign_values import ForeignType, Language, foreign_type

ValueFault = Literal["wrong_type", "wrong_value"]

_STANDARDISED = str.maketrans(dict.fromkeys(" ,./-_*^") | {"'": '"'})
_PYTHON_TYPES: Mapping[object, type] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ArgumentRule:
    """What one argument of a gold call may be.

    Attributes:
        allowed: The allowed values as gold lists them.
        declared: The types that the tool declares for the argument.
        items: The types that it declares for the elements of a list; None when it does not.
        usual: The type of the first allowed value; None when there is none.
        texts: The allowed strings as they are compared.
        foreign: How source text is read; None where values are plain JSON.
    """

    allowed: tuple[Any, ...]
    declared: frozenset[type]
    items: frozenset[type] | None
    usual: type | None
    texts: frozenset[str]
    foreign: ForeignType | None

    def fault(self, value: Any) -> ValueFault | None:
        """What is wrong with a value; None when it is allowed."""
        if self.foreign is not None:
            value = self.foreign.read(value)
        value = self._as_declared(value)
        kind = type(value)
        if kind not in self.declared:
            if kind is not self.usual:
                return "wrong_type"
            return None if value in self.allowed else "wrong_value"
        if kind is list and self.items is not None and not self._items_fit(value):
            return "wrong_type"
        if self.usual is not None and self.usual not in self.declared:
            return None if value in self.allowed else "wrong_value"
        return None if self._is_allowed(value) else "wrong_value"

    def can_be_met(self) -> bool:
        """Whether any value is allowed at all."""
        return any(self.fault(_instance(answer)) is None for answer in self.allowed)

    def _as_declared(self, value: Any) -> Any:
        kind = type(value)
        if kind is tuple:
            return list(value)
        if kind is int and float in self.declared and int not in self.declared:
            try:
                return float(value)
            except OverflowError:  # beyond any float: an integer where a number is due
                return value
        return value

    def _items_fit(self, value: list[Any]) -> bool:
        """Whether each element is of the item type, or of the type that an answer's first has."""
        items = self.items or frozenset()
        return any(
            not isinstance(answer, list) or _like(value, items, answer) for answer in self.allowed
        )

    def _is_allowed(self, value: Any) -> bool:
        if isinstance(value, str):
            return standardised(value) in self.texts
        if isinstance(value, dict):
            return any(_object_allowed(value, answer) for answer in self.allowed)
        if not isinstance(value, list):
            return value in self.allowed
        answers = [found for answer in self.allowed if (found := _elements(answer)) is not None]
        if dict in (self.items or ()):
            return any(_objects_allowed(value, answer) for answer in answers)
        plain = [_plain(item) for item in value]
        return any(plain == [_plain(item) for item in answer] for answer in answers)


def argument_rule(
    schema: JsonObject, allowed: Sequence[Any], *, source: Any = None, language: Language = "python"
) -> ArgumentRule:
    """The rule for one argument.

    Args:
        schema: The argument's JSON Schema.
        allowed: Its allowed values.
        source: Its schema as the benchmark writes it, where Java and JavaScript types stand.
        language: Of the values.
    """
    foreign = None if language == "python" else foreign_type(language, source or schema)
    items = _item_types(schema)
    return ArgumentRule(
        allowed=tuple(allowed),
        declared=_declared(schema) if foreign is None else frozenset({foreign.python}),
        items=items if foreign is None else foreign.items,
        usual=next((type(answer) for answer in allowed if answer != ""), None),
        texts=frozenset(standardised(answer) for answer in allowed if isinstance(answer, str)),
        foreign=foreign,
    )


def standardised(text: str) -> str:
    """A string without what the comparison ignores."""
    return text.translate(_STANDARDISED).lower()


def _plain(value: Any) -> Any:
    return standardised(value) if isinstance(value, str) else value


def _declared(schema: JsonObject) -> frozenset[type]:
    names = schema.get("type", "string")
    names = names if isinstance(names, list) else [names]
    return frozenset(_PYTHON_TYPES.get(name, str) for name in names)


def _item_types(schema: JsonObject) -> frozenset[type] | None:
    items = schema.get("items")
    return _declared(items) if isinstance(items, Mapping) and "type" in items else None


def _like(value: list[Any], items: frozenset[type], answer: list[Any]) -> bool:
    usual = next((type(item) for item in answer if item != ""), None)
    return all(type(item) in items or type(item) is usual for item in value)


def _elements(answer: Any) -> list[Any] | None:
    """The elements of a list among the answers; "may be left out" also allows an empty list."""
    if isinstance(answer, list | tuple):
        return list(answer)
    return [] if answer == "" else None


def _objects_allowed(value: list[Any], answer: list[Any]) -> bool:
    return len(value) == len(answer) and all(map(_object_allowed, value, answer))


def _object_allowed(value: Any, answer: Any) -> bool:
    """Whether each key holds one of the values that ``answer`` lists for it."""
    if not isinstance(value, dict) or not isinstance(answer, Mapping):
        return False
    if any(key not in value and "" not in _as_list(listed) for key, listed in answer.items()):
        return False
    return all(
        key in answer and _plain(item) in [_plain(option) for option in _as_list(answer[key])]
        for key, item in value.items()
    )


def _as_list(listed: Any) -> list[Any]:
    return list(listed) if isinstance(listed, list | tuple) else [listed]


def _instance(answer: Any) -> Any:
    """A value that an answer describes: in an object, the first option of each key."""
    if isinstance(answer, Mapping):
        options = {key: _as_list(listed) for key, listed in answer.items()}
        given = {key: [one for one in listed if one != ""] for key, listed in options.items()}
        return {key: listed[0] for key, listed in given.items() if listed}
    if isinstance(answer, list | tuple):
        return [_instance(item) for item in answer]
    return answer
