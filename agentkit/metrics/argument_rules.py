"""Which values of one argument a gold call allows; the rules stand in ``allowed_values``.

Everything that can be worked out from the gold call and the tool alone is worked out once, in
``argument_rule``. Judging a value is then mostly a look into a set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentkit.metrics.argument_types import (
    LISTS,
    ArgumentType,
    GivenValue,
    first_type,
    is_object,
    plain,
    standardised,
)

ValueFault = Literal["wrong_type", "wrong_value"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ArgumentRule:
    """What one argument of a gold call may be.

    Attributes:
        declared: What the tool declares for the argument.
        allowed: The allowed values as gold lists them.
        usual: The type of the first allowed value; None when there is none.
        is_literal: Whether values are compared as they are, since the allowed ones are not of a
            declared type.
        texts: The allowed strings as they are compared; None where strings are not compared
            leniently, since none is declared or listed.
        lists: The allowed lists, with the type of their first element, as they are compared.
        objects: The allowed objects as they are compared: the options of each key.
    """

    declared: ArgumentType
    allowed: tuple[Any, ...]
    usual: type | None
    is_literal: bool
    texts: frozenset[str] | None
    lists: tuple[_AllowedList, ...]
    objects: tuple[_AllowedObject, ...]

    def fault(self, given: GivenValue) -> ValueFault | None:
        """What is wrong with a value; None when it is allowed."""
        if given.text is not None and self.texts is not None:
            return None if given.text in self.texts else "wrong_value"
        if not given.is_declared:
            if given.kind is not self.usual:
                return "wrong_type"
            return None if given.value in self.allowed else "wrong_value"
        if given.kind is list and not self._items_fit(given):
            return "wrong_type"
        return None if self._is_allowed(given) else "wrong_value"

    def can_be_met(self) -> bool:
        """Whether any value is allowed at all."""
        return any(
            self.fault(self.declared.read(_instance(answer))) is None for answer in self.allowed
        )

    def _items_fit(self, given: GivenValue) -> bool:
        """Whether each element is of the item type, or of the type that an answer's first has."""
        items = self.declared.items
        if items is None or len(self.lists) < len(self.allowed):
            return True  # an answer that is no list asks nothing of items
        if given.items_declared and self.lists:
            return True
        return any(
            all(type(item) in items or type(item) is answer.usual for item in given.value)
            for answer in self.lists
        )

    def _is_allowed(self, given: GivenValue) -> bool:
        value = given.value
        if self.is_literal:
            return value in self.allowed
        if given.kind is dict:
            return any(answer.allows(value) for answer in self.objects)
        if given.kind is not list:
            return value in self.allowed
        if not value and "" in self.allowed:  # "may be left out" also allows an empty list
            return True
        if given.elements is None:
            return any(answer.allows_objects(value) for answer in self.lists)
        return any(given.elements == answer.plain for answer in self.lists)


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
            options={key: [plain(one) for one in options] for key, options in listed.items()},
        )

    def allows(self, value: dict[str, Any]) -> bool:
        for key in self.must:
            if key not in value:
                return False
        for key, item in value.items():
            if key not in self.options or plain(item) not in self.options[key]:
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
            usual=first_type(answer),
            plain=[plain(item) for item in answer],
            objects=[_AllowedObject.of(item) if is_object(item) else None for item in answer],
        )

    def allows_objects(self, value: list[Any]) -> bool:
        return len(value) == len(self.objects) and all(
            answer is not None and isinstance(item, dict) and answer.allows(item)
            for item, answer in zip(value, self.objects, strict=True)
        )


def argument_rule(declared: ArgumentType, allowed: Sequence[Any]) -> ArgumentRule:
    """The rule for one argument.

    Args:
        declared: What the tool declares for it.
        allowed: Its allowed values.
    """
    usual = first_type(allowed)
    is_literal = usual is not None and usual not in declared.kinds
    texts = None
    if str in declared.kinds and not is_literal:
        texts = frozenset([standardised(one) for one in allowed if isinstance(one, str)])
    return ArgumentRule(
        declared=declared,
        allowed=tuple(allowed),
        usual=usual,
        is_literal=is_literal,
        texts=texts,
        lists=tuple([_AllowedList.of(one) for one in allowed if isinstance(one, LISTS)]),
        objects=tuple([_AllowedObject.of(one) for one in allowed if is_object(one)]),
    )


def _as_list(listed: Any) -> list[Any]:
    return list(listed) if isinstance(listed, LISTS) else [listed]


def _instance(answer: Any) -> Any:
    """A value that an answer describes: in an object, the first option of each key."""
    if isinstance(answer, Mapping):
        options = {key: _as_list(listed) for key, listed in answer.items()}
        given = {key: [one for one in listed if one != ""] for key, listed in options.items()}
        return {key: listed[0] for key, listed in given.items() if listed}
    if isinstance(answer, LISTS):
        return [_instance(item) for item in answer]
    return answer
