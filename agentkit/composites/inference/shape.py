"""``Shape``: a set of JSON values, as far as types can tell them apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

Kind = Literal["null", "boolean", "integer", "number", "string", "array", "object"]
KINDS: frozenset[Kind] = frozenset(get_args(Kind))
"""``number`` is a float; ``integer`` is an int that is no truth value."""

NUMERIC: frozenset[Kind] = frozenset({"boolean", "integer", "number"})
"""Kinds that Python calculates with."""

_DEEPEST = 6
_MOST_KEYS = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """A set of values.

    Attributes:
        kinds: Their JSON types; none at all for a value that never comes to be.
        items: Items of an array; None for anything.
        elements: Each item of an array of known length; None when the length is not known.
        may_be_empty: Whether an array is made so that it may have no items. One that is declared
            is taken to have some: a program that only works on empty lists does not work.
        properties: Known keys of an object.
        required: Keys that an object certainly has.
        others: What further keys of an object hold; None for anything.
        constant: The only value, as a tuple of one; None when there are several.
    """

    kinds: frozenset[Kind] = KINDS
    items: Shape | None = None
    elements: tuple[Shape, ...] | None = None
    may_be_empty: bool = False
    properties: Mapping[str, Shape] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    others: Shape | None = None
    constant: tuple[Any] | None = None

    @property
    def is_never(self) -> bool:
        """Whether there is no such value."""
        return not self.kinds

    @property
    def is_anything(self) -> bool:
        """Whether nothing is known."""
        return self.kinds == KINDS

    @property
    def item(self) -> Shape:
        """What an item of the array is."""
        if self.elements is not None:
            return join(self.elements)
        return ANYTHING if self.items is None else self.items

    def key(self, name: str) -> Shape:
        """What the object holds under a key, if it has that key."""
        known = self.properties.get(name)
        if known is not None:
            return known
        return ANYTHING if self.others is None else self.others

    def lacks(self, name: str) -> bool:
        """Whether it is an object that certainly has no such key."""
        return self.kinds == {"object"} and self.key(name).is_never

    def without(self, *kinds: Kind) -> Shape:
        """The values of other kinds."""
        left = self.kinds.difference(kinds)
        if left == self.kinds:
            return self
        return replace(self, kinds=left, constant=self.constant if left else None)


ANYTHING = Shape()
NEVER = Shape(kinds=frozenset())


def of_kind(*kinds: Kind) -> Shape:
    """All values of some types."""
    return Shape(kinds=frozenset(kinds))


def array_of(item: Shape, *, may_be_empty: bool = False) -> Shape:
    """Arrays of such items."""
    return Shape(kinds=frozenset({"array"}), items=item, may_be_empty=may_be_empty)


def array_with(elements: Iterable[Shape]) -> Shape:
    """Arrays of exactly these items."""
    each = tuple(elements)
    constants = [element.constant for element in each]
    known = [constant[0] for constant in constants if constant is not None]
    return Shape(
        kinds=frozenset({"array"}),
        elements=each,
        may_be_empty=not each,
        constant=(known,) if len(known) == len(each) else None,
    )


def of_constant(value: Any) -> Shape:
    """The one value, which is JSON data."""
    if isinstance(value, list):
        return array_with(map(of_constant, value))
    if isinstance(value, dict):
        return Shape(
            kinds=frozenset({"object"}),
            properties={key: of_constant(item) for key, item in value.items()},
            required=frozenset(value),
            others=NEVER,
            constant=(value,),
        )
    names: Mapping[type, Kind] = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        type(None): "null",
    }
    return Shape(kinds=frozenset({names[type(value)]}), constant=(value,))


def join(shapes: Iterable[Shape], *, depth: int = 0) -> Shape:
    """The values of all of them."""
    joined = NEVER
    for shape in shapes:
        joined = _joined(joined, shape, depth)
    return joined


def _joined(left: Shape, right: Shape, depth: int) -> Shape:
    if left.is_never or left == right:
        return right
    if right.is_never:
        return left
    if depth > _DEEPEST:
        return Shape(kinds=left.kinds | right.kinds)
    kinds = left.kinds | right.kinds
    array, other = _with_kind("array", left, right), _with_kind("object", left, right)
    return Shape(
        kinds=kinds,
        **(_joined_arrays(*array, depth) if array else {}),
        **(_joined_objects(*other, depth) if other else {}),
        constant=None,
    )


def _with_kind(kind: Kind, left: Shape, right: Shape) -> tuple[Shape, Shape] | None:
    """The two as far as they are of a kind; one twice when the other is not."""
    if kind not in left.kinds and kind not in right.kinds:
        return None
    return (left if kind in left.kinds else right, right if kind in right.kinds else left)


def _joined_arrays(left: Shape, right: Shape, depth: int) -> dict[str, Any]:
    empty = left.may_be_empty or right.may_be_empty
    one, two = left.elements, right.elements
    if one is not None and two is not None and len(one) == len(two):
        pairs = zip(one, two, strict=True)
        return {
            "elements": tuple(join(pair, depth=depth + 1) for pair in pairs),
            "may_be_empty": empty,
        }
    item = join((left.item, right.item), depth=depth + 1)
    return {"items": None if item.is_anything else item, "may_be_empty": empty}


def _joined_objects(left: Shape, right: Shape, depth: int) -> dict[str, Any]:
    keys = [*left.properties, *(key for key in right.properties if key not in left.properties)]
    if len(keys) > _MOST_KEYS:
        return {}
    others = (
        None
        if left.others is None or right.others is None
        else join((left.others, right.others), depth=depth + 1)
    )
    return {
        "properties": {key: join((left.key(key), right.key(key)), depth=depth + 1) for key in keys},
        "required": left.required & right.required,
        "others": others,
    }
