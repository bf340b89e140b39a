"""References to results of earlier calls, as NESTFUL writes them: ``$var1.rows[0].id$``.

Reading is strict. A reference is a dollar sign, the label of a call, steps into its result, and a
dollar sign. Steps are ``.name`` and ``[0]``; ``.0`` is read as ``[0]``. A label is one that a call
of the answer has, or ``var`` with a number; other texts between dollar signs (``$20 - US$``) are
text. A text may hold several references among words.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

_STEPS = r"(?:\.\w[^.$\[\]]*|\[[0-9]{1,9}\])*"
_REFERENCE = re.compile(rf"\$(?P<label>[A-Za-z_][A-Za-z0-9_]*)(?P<path>{_STEPS})\$")
_STEP = re.compile(r"\.(\w[^.$\[\]]*)|\[([0-9]{1,9})\]")
_NUMBERED = re.compile(r"var_?\d+", re.ASCII)
_BROKEN = re.compile(r"\$var_?\d+(?![\w])", re.ASCII)

Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """A part of the result of another call.

    Attributes:
        label: The label of that call, as written.
        path: Steps into its result: names and indexes. Empty for the whole result.
    """

    label: str
    path: Path = ()

    def __str__(self) -> str:
        steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return f"${self.label}{steps}$"


Piece: TypeAlias = "str | Reference"


def pieces_of(text: str, labels: Container[str]) -> tuple[Piece, ...]:
    """The text as words and references in turns; a text without references is one piece.

    Example:
        >>> pieces_of("from $var1.place$ to Bonn", ["var1"])
        ('from ', Reference(label='var1', path=('place',)), ' to Bonn')
        >>> pieces_of("$20 - US$30", ["var1"])
        ('$20 - US$30',)
    """
    found: list[Piece] = []
    start = end = 0
    while (match := _REFERENCE.search(text, start)) is not None:
        label = match["label"]
        if label not in labels and _NUMBERED.fullmatch(label) is None:
            start = match.start() + 1
            continue
        if text[end : match.start()]:
            found.append(text[end : match.start()])
        found.append(Reference(label, _path(match["path"])))
        start = end = match.end()
    if text[end:] or not found:
        found.append(text[end:])
    return tuple(found)


def is_broken(piece: Piece) -> bool:
    """Whether words hold the beginning of a reference that does not end as one.

    Example:
        >>> is_broken("$var1.name"), is_broken("$20")
        (True, False)
    """
    return isinstance(piece, str) and _BROKEN.search(piece) is not None


def _path(written: str) -> Path:
    """The steps, without an index 0 before a name: NESTFUL's names into lists mean the first."""
    steps: list[str | int] = []
    for name, index in _STEP.findall(written):
        number = index or name
        step: str | int = int(number) if number.isascii() and number.isdecimal() else name
        if isinstance(step, str) and steps and steps[-1] == 0:
            steps.pop()
        steps.append(step)
    return tuple(steps)


NOWHERE = object()
"""What a path leads to where there is nothing. ``None`` is a value."""


def value_at(result: Any, path: Path) -> Any:
    """The part of a result that a path means, or ``NOWHERE``.

    A name where there is a list is looked for in its first item; a number may be an index or the
    name of a field.

    Example:
        >>> value_at({"rows": [{"id": 7}]}, ("rows", "id"))
        7
    """
    for step in path:
        while isinstance(step, str) and isinstance(result, list | tuple):
            if not result:
                return NOWHERE
            result = result[0]
        if isinstance(result, Mapping):
            key = step if step in result else str(step)
            result = result.get(key, NOWHERE)
        elif isinstance(result, list | tuple) and isinstance(step, int) and step < len(result):
            result = result[step]
        else:
            return NOWHERE
    return result
