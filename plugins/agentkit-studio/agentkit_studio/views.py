"""Two definitions side by side, part by part as models see them, and two texts line by line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from agentkit.evolution.differences import DESCRIPTION, PARAMETER, ViewChange, view_changes
from agentkit.tools.definition import ToolDefinition

_LONGEST = 20_000
_MOST_WORDS = 1_500
_MOST_LINES = 1_500
_AROUND = 3
"""Equal lines that are shown on each side of a change."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """A stretch of text.

    Attributes:
        text: The text.
        is_changed: Whether the other side does not have it.
    """

    text: str
    is_changed: bool = False


Pieces = tuple[Piece, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """What models see of one part of a tool.

    Attributes:
        text: What its description says.
        facts: What its schema says, each in words: ``integer``, ``required``, ``one of 24, 36``.
    """

    text: Pieces = ()
    facts: Pieces = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One part of a tool, before and after.

    Attributes:
        place: The parameter; empty for the tool itself.
        before: As it is; None for a part that is new.
        after: As it would be; None for a part that is gone.
    """

    place: str
    before: Side | None
    after: Side | None

    @property
    def is_same(self) -> bool:
        """Whether nothing changed."""
        return self.before == self.after


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """Two lines side by side.

    Attributes:
        before: On the left; None for nothing.
        after: On the right; None for nothing.
        left_out: How many equal lines stand here, which are not shown.
    """

    before: Pieces | None = None
    after: Pieces | None = None
    left_out: int = 0

    @property
    def is_same(self) -> bool:
        """Whether nothing changed."""
        return self.before == self.after


def side_by_side(before: ToolDefinition | None, after: ToolDefinition | None) -> Sequence[Part]:
    """All that models see of a tool, in the order of its parameters; what differs is marked."""
    old, new = _sides(before), _sides(after)
    order = [name for one in (after, before) if one for name in one.signature.properties]
    places = sorted(old.keys() | new.keys(), key=lambda place: (_rank(order, place), place))
    return [_part(place, old.get(place), new.get(place)) for place in places]


def _rank(order: Sequence[str], place: str) -> int:
    name = re.split(r"[.\[]", place, maxsplit=1)[0]
    return order.index(name) if name in order else -1 if not place else len(order)


def _sides(definition: ToolDefinition | None) -> dict[str, tuple[str, list[str]]]:
    """Text and facts of each part."""
    found: dict[str, tuple[str, list[str]]] = {}
    for one in view_changes(None, definition):
        text, facts = found.get(one.place, ("", []))
        if one.keyword == DESCRIPTION:
            text = one.after[:_LONGEST]
        elif one.keyword != PARAMETER:
            facts.append(_fact(one))
        found[one.place] = text, facts
    return {place: (text, sorted(facts, key=_fact_rank)) for place, (text, facts) in found.items()}


def _fact(one: ViewChange) -> str:
    """What a schema says, without the name of the parameter."""
    if one.keyword == "required":
        return "required"
    if one.keyword == "type":
        said = json.loads(one.after)
        return said if isinstance(said, str) else " or ".join(map(str, said))
    if (one.keyword, one.after) == ("additionalProperties", "false"):
        return "no other arguments"
    name = one.place or "the call"
    words = one.sentence.removeprefix(name).removeprefix(":").strip().removesuffix(".")
    return words.removeprefix("must be ").replace("may only be", "only")[:_LONGEST]


def _fact_rank(fact: str) -> tuple[bool, bool, str]:
    return " " in fact, fact == "required", fact


def _part(place: str, old: tuple[str, list[str]] | None, new: tuple[str, list[str]] | None) -> Part:
    texts = words(old[0] if old else "", new[0] if new else "")
    sides: list[Side | None] = []
    for at, (mine, other) in enumerate(((old, new), (new, old))):
        known = () if other is None else other[1]
        facts = () if mine is None else mine[1]
        told = tuple(Piece(text=fact, is_changed=fact not in known) for fact in facts)
        sides.append(None if mine is None else Side(text=texts[at], facts=told))
    return Part(place=place, before=sides[0], after=sides[1])


def words(before: str, after: str) -> tuple[Pieces, Pieces]:
    """Two texts with the words marked that only one of them has."""
    if before == after:
        same = (Piece(text=before),) if before else ()
        return same, same
    old, new = (re.findall(r"\w+|\s+|[^\w\s]", text) for text in (before, after))
    if max(len(old), len(new)) > _MOST_WORDS:
        old, new = [before], [after]
    sides: tuple[list[Piece], list[Piece]] = ([], [])
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, old, new).get_opcodes():
        for side, text in zip(sides, ("".join(old[i1:i2]), "".join(new[j1:j2])), strict=True):
            if text:
                side.append(Piece(text=text, is_changed=kind != "equal"))
    return tuple(sides[0]), tuple(sides[1])


def lines(before: str, after: str) -> Iterator[Line]:
    """Two texts line by line; of many equal lines those next to a change are shown."""
    old, new = (text[: 5 * _LONGEST].splitlines()[:_MOST_LINES] for text in (before, after))
    blocks = SequenceMatcher(None, old, new).get_opcodes()
    for at, (kind, i1, i2, j1, j2) in enumerate(blocks):
        left, right = old[i1:i2], new[j1:j2]
        if kind == "equal":
            yield from _equal(left, is_first=at == 0, is_last=at == len(blocks) - 1)
            continue
        for row in range(max(len(left), len(right))):
            one = left[row] if row < len(left) else None
            other = right[row] if row < len(right) else None
            pieces = words(one or "", other or "")
            yield Line(
                before=None if one is None else pieces[0],
                after=None if other is None else pieces[1],
            )


def _equal(texts: Sequence[str], *, is_first: bool, is_last: bool) -> Iterator[Line]:
    head = 0 if is_first else _AROUND
    tail = 0 if is_last else _AROUND
    cut = len(texts) - head - tail
    shown = [Line(before=(Piece(text=text),), after=(Piece(text=text),)) for text in texts]
    if cut < 2:
        yield from shown
        return
    yield from shown[:head]
    yield Line(left_out=cut)
    yield from shown[len(texts) - tail :]


def pretty(record: Mapping[str, object]) -> str:
    """A record as JSON for people."""
    return json.dumps(record, indent=2, ensure_ascii=False)
