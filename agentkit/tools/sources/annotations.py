"""JSON Schema of plain annotations, without pydantic.

Most tools take strings, numbers, lists and dicts. For those the schema is written down here, so
that neither declaring nor calling them loads pydantic; a test holds the result equal to
pydantic's. Everything else (models, enums, dates, constraints) goes to pydantic.
"""

from __future__ import annotations

import builtins
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin

_ANY_LIST = {"items": {}, "type": "array"}
_ANY_DICT = {"additionalProperties": True, "type": "object"}
_BARE: Mapping[Any, Mapping[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
    list: _ANY_LIST,
    dict: _ANY_DICT,
}
_LITERAL_TYPES = {str: "string", int: "integer", bool: "boolean", type(None): "null"}


def plain_schema(annotation: Any) -> dict[str, Any] | None:
    """The schema of an annotation whose values are JSON data as they stand.

    Args:
        annotation: A resolved annotation.

    Returns:
        The schema, equal to pydantic's without titles; None when pydantic has to be asked.

    Example:
        >>> plain_schema(list[int] | None)
        {'anyOf': [{'items': {'type': 'integer'}, 'type': 'array'}, {'type': 'null'}]}
        >>> plain_schema(set[int]) is None
        True
    """
    if get_origin(annotation) is not None:
        return _generic(annotation)
    try:
        known = _BARE.get(annotation)
    except TypeError:  # an annotation that can not be a key, such as a list
        known = None
    return None if known is None else dict(known)


def _generic(annotation: Any) -> dict[str, Any] | None:
    arguments = get_args(annotation)
    match get_origin(annotation):
        case builtins.list:
            return _list(*arguments)
        case builtins.dict:
            return _dict(*arguments)
        case typing.Literal:
            return _literal(arguments)
        case typing.Union | types.UnionType:
            return _union(arguments)
        case typing.Annotated if all(isinstance(item, str) for item in arguments[1:]):
            return plain_schema(arguments[0])
        case _:
            return None


def annotation_text(annotation: Any) -> str:
    """The words in ``Annotated[int, "how many"]``; the last string counts.

    Strings inside other annotations belong to them and are not looked for.
    """
    if get_origin(annotation) is not Annotated:
        return ""
    texts = [item for item in get_args(annotation)[1:] if isinstance(item, str)]
    return texts[-1] if texts else ""


def _list(item: Any = Any) -> dict[str, Any] | None:
    items = plain_schema(item)
    return None if items is None else {"items": items, "type": "array"}


def _dict(key: Any = str, item: Any = Any) -> dict[str, Any] | None:
    values = plain_schema(item)
    if key is not str or values is None:  # pydantic turns other keys into Python values
        return None
    return {"additionalProperties": values or True, "type": "object"}


def _literal(members: tuple[Any, ...]) -> dict[str, Any] | None:
    kinds = {type(member) for member in members}
    if not kinds <= _LITERAL_TYPES.keys() or len(set(members)) != len(members):
        return None
    schema: dict[str, Any] = {"enum": list(members)}
    if len(members) == 1:
        schema = {"const": members[0]}
    if len(kinds) == 1:
        schema["type"] = _LITERAL_TYPES[kinds.pop()]
    return schema


def _union(members: tuple[Any, ...]) -> dict[str, Any] | None:
    branches: list[dict[str, Any]] = []
    for member in members:
        branch = plain_schema(member)
        if branch is None or not branch:
            return None
        if "anyOf" in branch:  # pydantic flattens what only Annotated kept apart
            return None
        if branch not in branches:
            branches.append(branch)
    return {"anyOf": branches} if len(branches) > 1 else branches[0]
