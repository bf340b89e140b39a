"""How checks say what they found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from agentkit.evolution.validation.report import FailedCheck, Layer, ProposedChange
from agentkit.evolution.validation.texts import Edit

_LONGEST_EXCERPT = 120
_PLAIN = re.compile(
    r"[^\x20-\x7e\u00a1-\u00ac\u00ae-\u02ff\u0370-\u1fff\u3001-\u9fff\uac00-\ud7a3]"
)


def shown(text: str, start: int = 0, end: int | None = None) -> str:
    """A part of a text that can be shown to a person: short, and with nothing hidden in it.

    Example:
        >>> shown("pay" + chr(0x202E) + "ments", 0, 5)
        'pay<U+202E>m'
    """
    part = text[start : len(text) if end is None else end]
    if len(part) > _LONGEST_EXCERPT:
        part = part[: _LONGEST_EXCERPT - 3] + "..."
    return _PLAIN.sub(lambda found: _escaped(found.group()), part)


def _escaped(char: str) -> str:
    if char.isprintable() and not 0xFE00 <= ord(char) <= 0xFE0F:
        return char
    return f"<U+{ord(char):04X}>"


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """Something that a text must not hold.

    Attributes:
        pattern: How it is written.
        counts: Whether a match is what is meant.
        gate: A quick pattern without which ``pattern`` can not match; None for none.
        holds: Parts in small letters, one of which stands in every match; looked for first, which
            costs next to nothing. Empty when there are no such.
        what: What it is, in words.
    """

    pattern: re.Pattern[str]
    counts: Callable[[str], bool] = bool
    gate: re.Pattern[str] | None = None
    holds: tuple[str, ...] = ()
    what: str = ""

    def matches(self, text: str) -> Iterator[str]:
        """What in a text has this form."""
        if self._may_match(text):
            for match in self.pattern.finditer(text):
                if self.counts(match.group()):
                    yield match.group()

    def _may_match(self, text: str) -> bool:
        if self.holds:
            small = text.casefold()
            if not any(part in small for part in self.holds):
                return False
        return self.gate is None or self.gate.search(text) is not None


def holds_any(text: str, forms: Iterable[Form]) -> bool:
    """Whether a text holds something of one of the forms; what ``first_found`` says in full."""
    return any(True for form in forms for _ in form.matches(text))


def first_found(change: ProposedChange, forms: Sequence[Form]) -> Iterator[tuple[Edit, str, Form]]:
    """In each changed text the first thing of one of the forms that the base does not hold already.

    Args:
        change: What is looked at.
        forms: What is sought, in order.
    """
    for edit in change.edits:
        found = (
            (edit, text, form)
            for form in forms
            for text in form.matches(edit.after)
            if text.casefold() not in change.known
        )
        yield from islice(found, 1)


def reason(
    code: str,
    layer: Layer,
    edit: Edit,
    excerpt: str,
    *,
    message: str,
    advice: str,
) -> FailedCheck:
    """A failed check about one edit."""
    return FailedCheck(
        code=code,
        layer=layer,
        field=edit.field,
        message=message,
        advice=advice,
        excerpt=shown(excerpt),
    )
