"""Records of episodes with some of their fields changed, however deep these lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

T = TypeVar("T")

Also = Callable[[Any], Mapping[str, Any]]
"""Further fields of a record, which take more than its texts to change."""


def _nothing(_: Any) -> Mapping[str, Any]:
    return {}


def changed(
    record: T,
    fields: Mapping[type, Sequence[str]],
    change: Callable[[Any], Any],
    also: Also = _nothing,
) -> T:
    """The record with what stands in these fields changed; records in them are changed in turn.

    Args:
        record: A dataclass that ``fields`` names, a tuple of such, or what is changed itself.
        fields: The fields to change, by the class of the record.
        change: Changes a value that is neither a tuple nor such a record.
        also: What else to change in a record, as its fields and their new values.
    """
    value: Any = record
    if isinstance(value, tuple):
        return cast("T", tuple(changed(one, fields, change, also) for one in value))
    names = fields.get(type(value))
    if names is None:
        return cast("T", change(value))
    new = {name: changed(getattr(value, name), fields, change, also) for name in names}
    return cast("T", replace(value, **{**new, **also(value)}))
