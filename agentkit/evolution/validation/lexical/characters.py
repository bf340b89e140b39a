"""Characters that nobody sees, but a model reads."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from agentkit.evolution.validation.reasons import shown
from agentkit.evolution.validation.report import FailedCheck, ProposedChange

_SUSPECT = re.compile(
    r"[^\n\t\x20-\x7e\u00a0-\u00ac\u00ae-\u02ff\u3001-\u3029\u3041-\u3096\u30a1-\u30fc\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff9f]"
)
"""Everything but the blocks that hold nothing invisible; the rest is looked at one by one."""

_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2028\u2029\u2800\u3164\uffa0"
)
"""Invisible, though Unicode counts them as letters, marks or separators."""

_JOINERS = frozenset("\u200c\u200d")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})
_JOINED_SCRIPTS = re.compile(r"[\u0600-\u07ff\u0840-\u0dff\u0e80-\u109f\u1780-\u18af]")
_ARABIC_SIGNS = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2")
_TEXT_OR_EMOJI = frozenset("\ufe0e\ufe0f")


def no_invisible_characters(change: ProposedChange) -> Iterator[FailedCheck]:
    r"""Invisible, bidirectional, control, private-use and unassigned characters.

    Wider than ``agentkit.tools.invisible``, which mends texts of other people: here a proposer can
    be asked to write again. Joiners pass inside words of the scripts that need them and inside
    emoji; variation selectors only behind a pictograph. Spaces of all widths pass, French and
    Japanese set them.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> list(no_invisible_characters(rewrite("cars_search", {"rule": "价格以欧元计、含税。"})))
        []
        >>> hidden = rewrite("cars_search", {"rule": "Cheapest" + chr(0x200B) + " first."})
        >>> [(found.code, found.excerpt) for found in no_invisible_characters(hidden)]
        [('invisible_characters', 'Cheapest<U+200B> first.')]
    """
    for edit in change.edits:
        found = hidden_at(edit.after)
        if found:
            at = found[0]
            names = ", ".join(dict.fromkeys(f"U+{ord(edit.after[i]):04X}" for i in found[:8]))
            yield FailedCheck(
                code="invisible_characters",
                layer="lexical",
                field=edit.field,
                message=f"it holds {len(found)} characters that nobody sees ({names})",
                advice="write the text again without them; they carry no meaning for a reader",
                excerpt=shown(edit.after, max(at - 20, 0), at + 30),
            )


def hidden_at(text: str) -> list[int]:
    """Where in a text the characters stand that nobody sees."""
    return [
        match.start()
        for match in _SUSPECT.finditer(text)
        if _is_hidden(text, match.start(), match.group())
    ]


def _is_hidden(text: str, at: int, char: str) -> bool:
    if char in _JOINERS:
        return not _joins(text, at)
    if char == "\r":  # lines end with both on Windows; alone it lets a line write over itself
        return text[at + 1 : at + 2] != "\n"
    if char in _TEXT_OR_EMOJI:
        return unicodedata.category(text[at - 1 : at] or "a") not in {"So", "Sm", "Po", "Nd"}
    if char in _BLANK or 0xFE00 <= ord(char) <= 0xFE0D or 0xE0100 <= ord(char) <= 0xE01EF:
        return True
    return unicodedata.category(char) in _HIDDEN_CATEGORIES and char not in _ARABIC_SIGNS


def _joins(text: str, at: int) -> bool:
    """Whether a joiner stands between two characters that can be joined."""
    before, after = text[at - 1 : at] if at else "", text[at + 1 : at + 2]
    if _JOINED_SCRIPTS.match(before) and _JOINED_SCRIPTS.match(after):
        return True
    return _is_pictograph(before) and _is_pictograph(after)


def _is_pictograph(char: str) -> bool:
    """Whether emoji are made of it: a symbol, a skin tone or an emoji selector."""
    return char == "\ufe0f" or (
        char != "" and unicodedata.category(char) in {"So", "Sk"} and ord(char) > 0x2000
    )
