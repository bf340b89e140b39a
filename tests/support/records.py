"""Records of any content, made by the types of their fields."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st


def records(hint: Any, leaves: Mapping[Any, st.SearchStrategy[Any]], *, full: bool = False) -> Any:
    """Values of a type, so that new fields of a record come in by themselves.

    Args:
        hint: The type: a dataclass, or one of a field.
        leaves: The values of the types that consist of nothing else.
        full: Whether each field holds something: no None, and just one value in each collection.
    """
    if hint in leaves:
        return leaves[hint]
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return st.sampled_from(parts)
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        named = {one.name: hints[one.name] for one in fields(hint) if one.name != "format"}
        return st.builds(
            hint, **{name: records(of, leaves, full=full) for name, of in named.items()}
        )
    below = [records(one, leaves, full=full) for one in parts if one not in {Ellipsis, type(None)}]
    if origin in {Union, types.UnionType}:
        return st.one_of(*below, *([] if full else [st.none()]))
    size = {"min_size": 1, "max_size": 1} if full else {"max_size": 2}
    if origin is Mapping:
        return st.dictionaries(*below, **size)
    if origin is tuple:
        return st.lists(*below, **size).map(tuple) if Ellipsis in parts else st.tuples(*below)
    raise TypeError(f"no values of {hint} are known")
