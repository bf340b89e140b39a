"""``Trajectory``: the calls of one episode, with where each argument came from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""Steps into JSON data: keys of objects, indexes of lists. Empty for the whole value."""

Cast = Literal["", "str", "int", "float"]

_INTEGER = re.compile(r"-?[0-9]{1,15}", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,15}\.[0-9]{1,15}", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """An argument that no earlier result holds as it stands.

    Attributes:
        value: What was given.
        uses: Positions of earlier calls that the value was made from, in a way that no path
            describes, such as a sentence with a result in it. They only order the calls.
    """

    value: Any
    uses: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Flow:
    """An argument that is part of an earlier result.

    Attributes:
        step: Position of the earlier call.
        path: Where in its result.
        cast: The function of the composite language that turns what is there into the argument:
            ``str`` for a number that is passed on as text, ``int`` or ``float`` for the reverse;
            empty when it is passed on as it is.
    """

    step: int
    path: Path = ()
    cast: Cast = ""


Source: TypeAlias = Given | Flow


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedCall:
    """What a primitive was asked, and what it answered.

    Attributes:
        tool: Its name.
        arguments: As JSON data.
        result: As JSON data.
    """

    tool: str
    arguments: Mapping[str, Any]
    result: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One call that succeeded.

    Attributes:
        tool: Name of the tool.
        sources: Where each argument came from, by name in the order of the call.
        result: What came back, as JSON data.
        is_whole: Whether ``result`` is all that came back; a recording may be cut short.
        inside: For a call of a composite, the calls of primitives that it stands for.
    """

    tool: str
    sources: Mapping[str, Source] = field(default_factory=dict)
    result: Any = None
    is_whole: bool = True
    inside: tuple[RecordedCall, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Trajectory:
    """The calls of one episode in order.

    Attributes:
        trajectory_id: Id of the episode.
        steps: The calls that succeeded.
        request: What the user asked.
        answered: Positions of calls whose results the final answer shows. Results that no later
            call uses count as shown anyway.
    """

    trajectory_id: str
    steps: tuple[Step, ...]
    request: str = ""
    answered: frozenset[int] = frozenset()

    def value(self, source: Source) -> Any:
        """The value of an argument.

        Raises:
            LookupError: The result that it is read from does not hold it, as when the recording
                of that result was cut short.
        """
        if isinstance(source, Given):
            return source.value
        value = at_path(self.steps[source.step].result, source.path)
        return cast_value(value, source.cast) if source.cast else value

    def arguments(self, position: int) -> dict[str, Any]:
        """The arguments of the call at ``position``, as the tool got them.

        Raises:
            LookupError: One of them can not be read.
        """
        sources = self.steps[position].sources
        return {name: self.value(source) for name, source in sources.items()}

    def recorded(self, position: int) -> tuple[RecordedCall, ...]:
        """The calls of primitives that the call at ``position`` stands for; itself, for one.

        Raises:
            LookupError: An argument can not be read.
        """
        step = self.steps[position]
        if step.inside:
            return step.inside
        arguments = self.arguments(position)
        return (RecordedCall(tool=step.tool, arguments=arguments, result=step.result),)


def at_path(value: Any, path: Path) -> Any:
    """The part of ``value`` at ``path``.

    Raises:
        LookupError: There is no such part.

    Example:
        >>> at_path([{"id": 7}], (0, "id"))
        7
    """
    for depth, step in enumerate(path):
        try:
            value = value[step]
        except (LookupError, TypeError) as error:
            raise LookupError(f"no {step!r} at {path[:depth]!r}") from error
    return value


def casts(value: Any) -> Iterator[tuple[Cast, Any]]:
    """What a scalar can be turned into without a loss, and how.

    Example:
        >>> list(casts(32.5)), list(casts("-7")), list(casts("seven"))
        ([('str', '32.5')], [('int', -7)], [])
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield "str", str(value)
    elif isinstance(value, str) and _INTEGER.fullmatch(value):
        yield "int", int(value)
    elif isinstance(value, str) and _NUMBER.fullmatch(value):
        yield "float", float(value)


def cast_value(value: Any, cast: Cast) -> Any:
    """``value`` turned into another type.

    Raises:
        LookupError: It can not be, without a loss.
    """
    for known, made in casts(value):
        if known == cast:
            return made
    raise LookupError(f"{cast}() does not apply to {value!r:.40}")


def used_steps(source: Source) -> tuple[int, ...]:
    """Positions of the calls that an argument depends on."""
    return (source.step,) if isinstance(source, Flow) else source.uses


def parts_of(value: Any) -> Iterator[tuple[Path, Any]]:
    """Every part of ``value`` with its path, outer ones first; empty containers included.

    Example:
        >>> list(parts_of({"a": [7]}))
        [((), {'a': [7]}), (('a',), [7]), (('a', 0), 7)]
    """
    waiting: list[tuple[Path, Any]] = [((), value)]
    while waiting:
        path, part = waiting.pop()
        yield path, part
        if isinstance(part, Mapping):
            waiting.extend(((*path, key), item) for key, item in reversed([*part.items()]))
        elif isinstance(part, list | tuple):
            waiting.extend(((*path, at), part[at]) for at in range(len(part) - 1, -1, -1))
