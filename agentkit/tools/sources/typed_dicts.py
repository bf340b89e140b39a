"""``typing.TypedDict`` in the form that pydantic accepts on Python 3.11."""

from __future__ import annotations

import sys
import types
import typing
from functools import reduce
from operator import or_
from typing import Any


def portable(annotation: Any) -> Any:
    """The annotation with ``typing.TypedDict`` as pydantic accepts it on this Python.

    Before Python 3.12 pydantic insists on ``typing_extensions.TypedDict``, because the one in
    ``typing`` forgot which keys are required when classes are inherited.
    """
    if sys.version_info >= (3, 12):
        return annotation
    return _portable(annotation, frozenset())


def _portable(annotation: Any, within: frozenset[Any]) -> Any:
    if typing.is_typeddict(annotation):
        return annotation if annotation in within else _typed_dict(annotation, within)
    arguments = typing.get_args(annotation)
    origin = typing.get_origin(annotation)
    if not arguments or origin in {typing.Literal, typing.Callable}:
        return annotation
    if origin is typing.Annotated:
        inner = _portable(arguments[0], within)
        return annotation if inner is arguments[0] else typing.Annotated[inner, *arguments[1:]]
    replaced = tuple(_portable(item, within) for item in arguments)
    if all(new is old for new, old in zip(replaced, arguments, strict=True)):
        return annotation
    if not hasattr(annotation, "copy_with"):  # list[X] and X | Y
        return reduce(or_, replaced) if origin is types.UnionType else origin[replaced]
    return annotation.copy_with(replaced)


def _typed_dict(kind: Any, within: frozenset[Any]) -> Any:
    import typing_extensions

    if type(kind).__module__ == "typing_extensions":
        return kind
    hints = typing.get_type_hints(kind, include_extras=True)
    fields: dict[str, Any] = {}
    for key, hint in hints.items():
        required = key in kind.__required_keys__
        inner = hint
        if typing.get_origin(hint) in {typing.Required, typing.NotRequired}:
            # Python 3.11 overlooks the marker when annotations are strings, so it goes first.
            required = typing.get_origin(hint) is typing.Required
            (inner,) = typing.get_args(hint)
        inner = _portable(inner, within | {kind})
        marker = typing_extensions.Required if required else typing_extensions.NotRequired
        fields[key] = marker[inner]
    make: Any = typing_extensions.TypedDict  # the functional form, with computed fields
    made = make(kind.__name__, fields)
    made.__doc__ = kind.__doc__
    return made
