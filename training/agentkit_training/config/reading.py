"""Reading YAML into frozen dataclasses: types checked, unknown names refused, places named."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import pydantic
import yaml
from pydantic_core import to_jsonable_python

from agentkit.errors import UsageError

T = TypeVar("T")
Place = tuple[int | str, ...]
_LARGEST = 100_000


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
        return cast("T", _checker(cast("Any", kind)).model_validate({"record": given}).record)
    except pydantic.ValidationError as errors:
        lines = [_told(error, node) for error in errors.errors()]
        raise UsageError(f"{name} can not be used:\n  " + "\n  ".join(lines)) from errors
    except UsageError as error:
        raise UsageError(f"{name} can not be used: {error}") from error


def written_config(record: Any) -> str:
    """A record as YAML, every default written out; ``parse_config`` reads it back."""
    plain = to_jsonable_python(record)
    return yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


@cache
def _checker(kind: type[Any]) -> Any:
    """Checks a record: keys that no field has are refused in it and in all of its sections."""
    strict = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    return pydantic.create_model("Checked", __config__=strict, record=(kind, ...))


def _text_of(path: str | os.PathLike[str]) -> str:
    try:
        with Path(path).open("rb") as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise UsageError(f"{path} has more than {_LARGEST:,} bytes, which is no configuration")
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the configuration {path} can not be read: {error}") from error


def _given(text: str, name: str, changes: Iterable[str]) -> tuple[yaml.Node | None, dict[str, Any]]:
    """What a text says, as YAML's nodes with their lines and as values with the changes."""
    try:
        node = yaml.compose(text, Loader=_Loader)
        given = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError) as error:  # a number of more digits than Python reads
        raise UsageError(f"{name} is not YAML: {error}") from error
    if twice := [*_twice(node)]:
        raise UsageError(f"{name} can not be used:\n  " + "\n  ".join(twice))
    given = {} if given is None else given
    if not isinstance(given, dict):
        raise UsageError(f"{name} holds a {type(given).__name__}; a configuration is keys: values")
    for change in changes:
        _change(given, change)
    return node, given


class _Loader(yaml.SafeLoader):
    """Reads ``off`` and ``on`` as words, as YAML 1.2 does: ``interface.cues: off`` is a mode.

    Where a field is a boolean, pydantic takes these words for one.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 - as PyYAML has it
        first: [one for one in found if one[0] != "tag:yaml.org,2002:bool"]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile("^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)


class _Dumper(yaml.SafeDumper):
    """Puts texts with line ends of Unicode in double quotes: only there they stay as they are."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if set(text) & set("\x85\u2028\u2029") else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


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
        given[key] = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except yaml.YAMLError as error:
        raise UsageError(f"{change!r}: the value is not YAML: {error}") from error


def _told(error: Any, node: yaml.Node | None) -> str:
    """One mistake: where in the file, which key, what is wrong."""
    place: Place = error["loc"][1:]
    keys = [part for part in place if not (isinstance(part, str) and part[:1].isupper())]
    line = _line(node, keys)
    where = f"line {line}: " if line else ""
    name = ".".join(map(str, keys))
    if error["type"] in {"extra_forbidden", "unexpected_keyword_argument"}:
        return f"{where}{name} is not known here"
    given = "" if error["type"] == "missing" else f", not {error['input']!r}"
    return f"{where}{name}: {error['msg']}{given}"


def _twice(node: yaml.Node | None) -> Iterator[str]:
    """Keys that stand twice in one place, of which YAML's reader would take the last in silence."""
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.value in seen:
                yield f"line {line}: {key.value} is given in line {seen[key.value]} already"
            seen[key.value] = line
            yield from _twice(value)


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
    return found
