"""``Record``: a dataclass that knows its JSON form; and changes of what it holds, however deep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import (
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from agentkit.media import Media, media_from_json

T = TypeVar("T")


class Record:
    """A dataclass whose JSON form follows from its fields."""

    __slots__ = ()

    _OPTIONAL: ClassVar[tuple[str, ...]] = ()
    """Fields that are left out of the JSON form where they hold their default."""

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object; empty parts are left out."""
        record = {}
        kind: Any = type(self)
        for name, default, (write, _, _) in _plan(kind):
            held = getattr(self, name)
            if default is MISSING or held != default:
                record[name] = held if write is None or held is None else write(held)
        return record

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """The inverse of ``to_json``.

        Raises:
            AttributeError, KeyError, TypeError, ValueError: It is not such a record.
        """
        return from_record(cls, record)


class _Form(NamedTuple):
    """How one kind of value is written and read; None: as it is."""

    write: Callable[[Any], Any] | None = None
    read: Callable[[Any], Any] | None = None
    passes_null: bool = True


def from_record(kind: type[T], record: Mapping[str, Any]) -> T:
    """The inverse of ``Record.to_json``.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: It is not such a record.
    """
    values = dict(record)
    for name, _, (_, read, passes_null) in _plan(cast("Any", kind)):
        if read is None or name not in values or (values[name] is None and passes_null):
            continue
        values[name] = read(values[name])
    return kind(**values)


@cache
def _plan(kind: Any) -> tuple[tuple[str, Any, _Form], ...]:
    """The fields of a record: name, the value with which it is left out, how it is written."""
    hints = get_type_hints(kind)
    plan = []
    for one in fields(kind):
        default = one.default if one.default_factory is MISSING else one.default_factory()
        left_out = default if one.name in getattr(kind, "_OPTIONAL", ()) else MISSING
        plan.append((one.name, left_out, _form(hints[one.name])))
    return tuple(plan)


def _form(hint: Any) -> _Form:
    origin, inner = get_origin(hint), get_args(hint)
    if plain := _TEXT if _is_of_texts(hint) else _PLAIN.get(origin or hint):
        return plain
    if origin in {UnionType, Union}:
        kind = next(one for one in inner if one is not NoneType)
        return _form(kind)._replace(passes_null=True)
    if origin is tuple:
        write, read, _ = _form(inner[0])
        return _Form(
            write=list if write is None else lambda held: [write(one) for one in held],
            read=tuple if read is None else lambda held: tuple([read(one) for one in held]),
            passes_null=False,
        )
    if not is_dataclass(hint):
        return _Form()
    if hint is Media:
        return _Form(write=Media.reference, read=media_from_json, passes_null=False)
    kind = cast("Any", hint)
    return _Form(write=kind.to_json, read=kind.from_json, passes_null=False)


def _is_of_texts(hint: Any) -> bool:
    """Whether a field holds a text, or one of a list of them."""
    of = get_args(hint) if get_origin(hint) is Literal else ()
    return hint is str or (bool(of) and all(isinstance(one, str) for one in of))


def _only(kinds: tuple[type, ...], what: str) -> _Form:
    """Anything else would be stored and break later listings of the episode."""

    def read(value: Any) -> Any:
        if not isinstance(value, kinds):
            raise TypeError(f"it holds {type(value).__name__} where {what} belongs")
        return value

    return _Form(read=read, passes_null=False)


_TEXT, _NUMBER = _only((str,), "a text"), _only((int, float), "a number")
_PLAIN: Mapping[Any, _Form] = {
    int: _NUMBER,
    float: _NUMBER,
    Mapping: _only((dict, Mapping), "an object")._replace(write=dict),
}


def changed(
    record: T,
    fields: Mapping[type, Sequence[str]],
    change: Callable[[Any], Any],
    also: Callable[[Any], Mapping[str, Any]] = lambda _: {},
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
