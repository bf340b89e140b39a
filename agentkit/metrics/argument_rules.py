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

_IGNORED_SIGNS = " ,./-_*^"
_MAPPINGS = (dict, Mapping)  # nearly all are dicts, which is quick to see
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
        is_literal: Whether values are compared as they are, since the allowed ones are not of a
            declared type.
        is_text: Whether strings are compared leniently, since one is declared and listed.
        texts: The allowed strings as they are compared.
        lists: The allowed lists, with the type of their first element, as they are compared.
        objects: The allowed objects as they are compared: the options of each key.
        foreign: How source text is read; None where values are plain JSON.
    """

    allowed: tuple[Any, ...]
    declared: frozenset[type]
    items: frozenset[type] | None
    usual: type | None
    is_literal: bool
    is_text: bool
    texts: frozenset[str]
    lists: tuple[_AllowedList, ...]
    objects: tuple[_AllowedObject, ...]
    foreign: ForeignType | None

    def fault(self, value: Any) -> ValueFault | None:
        """What is wrong with a value; None when it is allowed."""
        if self.foreign is not None:
            value = self.foreign.read(value)
        if type(value) is str and self.is_text:
            return None if standardised(value) in self.texts else "wrong_value"
        value = self._as_declared(value)
        kind = type(value)
        if kind not in self.declared:
            if kind is not self.usual:
                return "wrong_type"
            return None if value in self.allowed else "wrong_value"
        if kind is list and self.items is not None and not self._items_fit(value, self.items):
            return "wrong_type"
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

    def _items_fit(self, value: list[Any], items: frozenset[type]) -> bool:
        """Whether each element is of the item type, or of the type that an answer's first has."""
        if len(self.lists) < len(self.allowed):  # an answer that is no list asks nothing of items
            return True
        return any(
            all(type(item) in items or type(item) is answer.usual for item in value)
            for answer in self.lists
        )

    def _is_allowed(self, value: Any) -> bool:
        if self.is_literal:
            return value in self.allowed
        if isinstance(value, dict):
            return any(answer.allows(value) for answer in self.objects)
        if not isinstance(value, list):
            return value in self.allowed
        if not value and "" in self.allowed:  # "may be left out" also allows an empty list
            return True
        if dict in (self.items or ()):
            return any(answer.allows_objects(value) for answer in self.lists)
        plain = [_plain(item) for item in value]
        return any(plain == answer.plain for answer in self.lists)


@dataclass(frozen=True, slots=True)
class _AllowedObject:
    """An object whose keys hold one of the options listed for them."""

    must: tuple[str, ...]
    options: Mapping[str, list[Any]]

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> _AllowedObject:
        listed = {key: _as_list(options) for key, options in answer.items()}
        return cls(
            must=tuple(key for key, options in listed.items() if "" not in options),
            options={key: [_plain(one) for one in options] for key, options in listed.items()},
        )

    def allows(self, value: dict[str, Any]) -> bool:
        for key in self.must:
            if key not in value:
                return False
        for key, item in value.items():
            if key not in self.options or _plain(item) not in self.options[key]:
                return False
        return True


@dataclass(frozen=True, slots=True)
class _AllowedList:
    """A list: its elements, and those of them that are objects."""

    usual: type | None
    plain: list[Any]
    objects: list[_AllowedObject | None]

    @classmethod
    def of(cls, answer: Sequence[Any]) -> _AllowedList:
        return cls(
            usual=_first_type(answer),
            plain=[_plain(item) for item in answer],
            objects=[
                _AllowedObject.of(item) if isinstance(item, _MAPPINGS) else None for item in answer
            ],
        )

    def allows_objects(self, value: list[Any]) -> bool:
        return len(value) == len(self.objects) and all(
            answer is not None and isinstance(item, dict) and answer.allows(item)
            for item, answer in zip(value, self.objects, strict=True)
        )


def argument_rule(
    schema: JsonObject,
    allowed: Sequence[Any],
    *,
    source: JsonObject | None = None,
    language: Language = "python",
) -> ArgumentRule:
    """The rule for one argument.

    Args:
        schema: The argument's JSON Schema.
        allowed: Its allowed values.
        source: Its schema as the benchmark writes it, where Java and JavaScript types stand.
        language: Of the values.
    """
    foreign = None if language == "python" else foreign_type(language, source or schema)
    declared = _declared(schema) if foreign is None else frozenset({foreign.python})
    usual = _first_type(allowed)
    is_literal = usual is not None and usual not in declared
    return ArgumentRule(
        allowed=tuple(allowed),
        declared=declared,
        items=_item_types(schema) if foreign is None else foreign.items,
        usual=usual,
        is_literal=is_literal,
        is_text=str in declared and not is_literal,
        texts=frozenset([standardised(one) for one in allowed if isinstance(one, str)]),
        lists=tuple([_AllowedList.of(one) for one in allowed if isinstance(one, list | tuple)]),
        objects=tuple([_AllowedObject.of(one) for one in allowed if isinstance(one, _MAPPINGS)]),
        foreign=foreign,
    )


def _first_type(listed: Sequence[Any]) -> type | None:
    """The type of the first entry that is not the mark for "may be left out"."""
    for one in listed:
        if one != "":
            return type(one)
    return None


def standardised(text: str) -> str:
    """A string without what the comparison ignores."""
    for sign in _IGNORED_SIGNS:  # two to four times as fast as str.translate
        text = text.replace(sign, "")
    return text.replace("'", '"').lower()


def _plain(value: Any) -> Any:
    return standardised(value) if isinstance(value, str) else value


def _declared(schema: JsonObject) -> frozenset[type]:
    names = schema.get("type", "string")
    if isinstance(names, list):
        return frozenset([_python_type(name) for name in names])
    return frozenset((_python_type(names),))


def _python_type(name: object) -> type:
    return _PYTHON_TYPES.get(name, str) if isinstance(name, str) else str


def _item_types(schema: JsonObject) -> frozenset[type] | None:
    items = schema.get("items")
    return _declared(items) if isinstance(items, _MAPPINGS) and "type" in items else None


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
