"""Reading YAML into frozen dataclasses: types checked, unknown names refused, places named.

The records are those that the code works with; pydantic checks what a file says about them.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import pydantic
import yaml

from agentkit.errors import UsageError

T = TypeVar("T")
Place = tuple[int | str, ...]


def read_config(
    path: str | os.PathLike[str],
    kind: type[T],
    *,
    changes: Iterable[str] = (),
    ignores_rest: bool = False,
) -> T:
    """The record that a YAML file describes.

    Args:
        path: The file.
        kind: A dataclass whose fields are the file's keys; nested dataclasses are its sections.
        changes: Changes of single keys, such as ``optimizer.learning_rate=1e-4``.
        ignores_rest: Whether sections that the record does not have are passed by, for a record
            that is a part of the file.

    Raises:
        UsageError: There is no such file, it is no YAML, or what it says does not fit; every
            mistake is named with its line.
    """
    text = _text_of(path)
    return parse_config(text, kind, name=str(path), changes=changes, ignores_rest=ignores_rest)


def keys_of(path: str | os.PathLike[str], *, changes: Iterable[str] = ()) -> frozenset[str]:
    """The sections and keys that a file has at its top, or a change gives it.

    Args:
        path: The file.
        changes: Changes of single keys.

    Raises:
        UsageError: There is no such file, or it is no YAML.
    """
    _, given = _given(_text_of(path), str(path), changes)
    return frozenset(map(str, given))


def parse_config(
    text: str,
    kind: type[T],
    *,
    name: str = "configuration",
    changes: Iterable[str] = (),
    ignores_rest: bool = False,
) -> T:
    """As ``read_config``, for text.

    Example:
        >>> from agentkit_training.engines.base import OptimizerSettings
        >>> parse_config("learning_rate: 0.5", OptimizerSettings).learning_rate
        0.5
    """
    node, given = _given(text, name, changes)
    if ignores_rest:
        known = {field.name for field in dataclasses.fields(cast("Any", kind))}
        given = {name: value for name, value in given.items() if name in known}
    try:
        checked = _model(cast("Any", kind)).model_validate(given)
    except pydantic.ValidationError as errors:
        lines = [_told(error, node) for error in errors.errors()]
        raise UsageError(f"{name} can not be used:\n  " + "\n  ".join(lines)) from errors
    try:
        return _built(checked, kind)
    except ValueError as error:
        raise UsageError(f"{name} can not be used: {error}") from error


def written_config(record: Any) -> str:
    """A record as YAML, every default written out; ``parse_config`` reads it back."""
    return yaml.dump(_plain(record), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def _text_of(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the configuration {path} can not be read: {error}") from error


def _given(text: str, name: str, changes: Iterable[str]) -> tuple[yaml.Node | None, dict[str, Any]]:
    """What a text says, as YAML's nodes with their lines and as values with the changes."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        given = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f"{name} is not YAML: {error}") from error
    if twice := [*_twice(node)]:
        raise UsageError(f"{name} can not be used:\n  " + "\n  ".join(twice))
    given = {} if given is None else given
    if not isinstance(given, dict):
        raise UsageError(f"{name} holds a {type(given).__name__}; a configuration is keys: values")
    for change in changes:
        _change(given, change)
    return node, given


class _Dumper(yaml.SafeDumper):
    """Puts texts with line ends of Unicode in double quotes: only there they stay as they are."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if set(text) & set("\x85\u2028\u2029") else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


@cache
def _model(kind: Any) -> type[pydantic.BaseModel]:
    """The model that checks what a file says about a dataclass."""
    hints = get_type_hints(kind)
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if not field.init:
            continue
        if field.default is not dataclasses.MISSING:
            default: Any = pydantic.Field(default=field.default)
        elif field.default_factory is not dataclasses.MISSING:
            default = pydantic.Field(default_factory=field.default_factory)
        else:
            default = ...
        fields[field.name] = (_checked(hints[field.name]), default)
    strict = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    return pydantic.create_model(kind.__name__, __config__=strict, **fields)


def _checked(hint: Any) -> Any:
    """A type with each dataclass in it replaced by the model that checks it."""
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _model(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        return Union[tuple(_checked(one) for one in arguments)]  # noqa: UP007 - made at run time
    if origin is tuple and any(dataclasses.is_dataclass(one) for one in arguments):
        return tuple[tuple(_checked(one) for one in arguments)]  # type: ignore[misc]
    return hint


def _built(value: Any, kind: type[T]) -> T:
    """The dataclass from what was checked; the fields that the file left out have their default."""
    hints = get_type_hints(kind)
    given = {name: _inner(getattr(value, name), hints[name]) for name in value.model_fields_set}
    return kind(**given)


def _inner(value: Any, hint: Any) -> Any:
    if isinstance(value, pydantic.BaseModel):
        fits = [one for one in (hint, *_parts(hint)) if _model_of(one) is type(value)]
        return _built(value, fits[0])
    if isinstance(value, tuple):
        inner = [one for one in get_args(hint) if dataclasses.is_dataclass(one)]
        return tuple(_inner(one, inner[0]) if inner else one for one in value)
    return value


def _parts(hint: Any) -> tuple[Any, ...]:
    return tuple(part for one in get_args(hint) for part in (one, *_parts(one)))


def _model_of(hint: Any) -> type[pydantic.BaseModel] | None:
    is_record = isinstance(hint, type) and dataclasses.is_dataclass(hint)
    return _model(hint) if is_record else None


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {one.name: _plain(getattr(value, one.name)) for one in fields if one.init}
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | frozenset | set):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, Path) else value


def _change(given: dict[str, Any], change: str) -> None:
    """Set one key, as ``section.key=value`` says."""
    name, equals, text = change.partition("=")
    if not equals or not name:
        raise UsageError(f"{change!r} is no change; write it as section.key=value")
    *sections, key = name.split(".")
    for section in sections:
        inner = given.get(section)
        if inner is None:
            inner = given[section] = {}
        if not isinstance(inner, dict):
            raise UsageError(f"{change!r}: {section} is a value, not a section")
        given = inner
    try:
        given[key] = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f"{change!r}: the value is not YAML: {error}") from error


def _told(error: Any, node: yaml.Node | None) -> str:
    """One mistake: where in the file, which key, what is wrong."""
    place: Place = error["loc"]
    keys = [part for part in place if not (isinstance(part, str) and part[:1].isupper())]
    line = _line(node, keys)
    where = f"line {line}: " if line else ""
    name = ".".join(map(str, keys))
    if error["type"] == "extra_forbidden":
        return f"{where}{name} is not known here"
    given = "" if error["type"] == "missing" else f", not {error['input']!r}"
    return f"{where}{name}: {error['msg']}{given}"


def _twice(root: yaml.Node | None) -> Iterator[str]:
    """Keys that stand twice in one place, of which YAML's reader would take the last in silence."""
    todo, known = [root], set[int]()
    while todo:
        node = todo.pop()
        if not isinstance(node, yaml.CollectionNode) or id(node) in known:
            continue
        known.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            todo.extend(reversed(node.value))
            continue
        seen: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if key.value in seen:
                yield f"line {line}: {key.value} is given in line {seen[key.value]} already"
            seen[key.value] = line
        todo.extend(value for _, value in reversed(node.value))


def _line(node: yaml.Node | None, keys: Sequence[int | str]) -> int | None:
    """The line of the deepest key of a place that is in the file."""
    found: int | None = None
    for key in keys:
        if isinstance(node, yaml.MappingNode):
            pairs = [(name, value) for name, value in node.value if name.value == str(key)]
            if not pairs:
                return found
            name, node = pairs[0]
            found = name.start_mark.line + 1
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int):
            node = node.value[key]
            found = node.start_mark.line + 1
    return found
