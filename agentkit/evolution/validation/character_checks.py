"""What may stand in a text at all: characters, scripts, lengths."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator

from agentkit.evolution.validation.report import FailedCheck, ProposedChange, failed
from agentkit.evolution.validation.texts import (
    LONGEST_SCANNED,
    LOOKALIKES,
    MOST_SCANNED,
    TextKind,
    sequence,
)

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
    """Invisible, bidirectional, control, private-use and unassigned characters.

    Wider than ``agentkit.tools.invisible``, which mends texts of other people: here a proposer can
    be asked to write again. Joiners pass inside words of the scripts that need them and inside
    emoji; variation selectors only behind a pictograph. Spaces of all widths pass, French and
    Japanese set them.
    """
    for edit in change.edits:
        if found := hidden_at(edit.after):
            names = ", ".join(dict.fromkeys(f"U+{ord(edit.after[i]):04X}" for i in found[:8]))
            excerpt = edit.after[max(found[0] - 20, 0) : found[0] + 30]
            yield failed(
                "invisible_characters",
                field=edit.field,
                excerpt=excerpt,
                count=len(found),
                names=names,
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


_WORD = re.compile(r"[^\W\d_]+")
_FOREIGN = re.compile(r"[\u0370-\u058f\u13a0-\u13ff\u1f00-\u1fff]")
_ASCII = re.compile(r"[A-Za-z]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_SIGNS = frozenset("µμΔΩπλθβσδφψΣΦΨΠΛΘΓ")
"""Greek letters that stand beside Latin ones in units and formulas: µm, Δt, kΩ."""

_STYLED = re.compile(
    r"[\u0250-\u02af\u1d00-\u1d7f\u1d80-\u1dbf\u2c60-\u2c7f\ua720-\ua7ff\u24b6-\u24e9"
    r"\U0001d400-\U0001d7ff\U0001f130-\U0001f189]"
)
_FULL_WIDTH = re.compile(r"[\uff21-\uff3a\uff41-\uff5a]{2,}")
_COMPATIBLE = "".join(
    char
    for char in map(chr, (*range(0x2100, 0x2180), *range(0xFF21, 0xFF5B)))
    if re.fullmatch("[A-Za-z]", unicodedata.normalize("NFKC", char))
)
"""Roman numerals, letter-like symbols and full-width letters that stand for one plain letter."""

_DISGUISED = re.compile(rf"[A-Za-z][{_COMPATIBLE}]\w*|[{_COMPATIBLE}][A-Za-z]\w*")
_EAST_ASIAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_STACKED = re.compile(
    r"(?:[A-Za-z\u00c0-\u024f][\u0300-\u036f\u1ab0-\u1aff\u20d0-\u20ff]){2,}"
    r"|[\u0300-\u036f\u20d0-\u20ff]{3,}|[\u0334-\u0338\u20d0-\u20ff]"
)


def no_mixed_scripts(change: ProposedChange) -> Iterator[FailedCheck]:
    """Words that mix Latin with letters of another script that look Latin.

    Chinese, Japanese and Korean text writes Latin words without spaces beside its own, so that
    these never count as mixed; nor do Greek letters in units and formulas.
    """
    return _first_words("mixed_scripts", change, _mixed_word)


def no_confusables(change: ProposedChange) -> Iterator[FailedCheck]:
    """Whole words of look-alikes in Latin text, styled letters and stacked marks.

    A compatibility character, such as the Roman numeral for 1,000, passes by itself and not as a
    letter of a word. Texts in Greek, Cyrillic or Armenian pass: they hold letters that look like no
    Latin ones. Accents pass, composed or not. Full-width letters pass in Chinese and Japanese text.
    """
    return _first_words("confusable_characters", change, _confusable_word)


def _first_words(
    code: str, change: ProposedChange, look: Callable[[str, str], str]
) -> Iterator[FailedCheck]:
    for edit in change.edits:
        found = "" if edit.after.isascii() else look(edit.after, change.known)
        if found:
            yield failed(code, field=edit.field, excerpt=found, found=found)


def _mixed_word(text: str, known: str) -> str:
    found = (word for word in _WORD.findall(text) if word.casefold() not in known)
    return next(filter(_is_mixed, found), "")


def _confusable_word(text: str, known: str) -> str:
    found = _styled(text) or _lookalike_word(text)
    return "" if found.casefold() in known else found


def _is_mixed(word: str) -> bool:
    foreign = _FOREIGN.findall(word)
    return bool(foreign) and _LATIN.search(word) is not None and not _SIGNS.issuperset(foreign)


def _styled(text: str) -> str:
    match = _STYLED.search(text) or _DISGUISED.search(text)
    if match is None and not _EAST_ASIAN.search(text):
        match = _FULL_WIDTH.search(text)
    if match is None:
        match = _STACKED.search(unicodedata.normalize("NFC", text))
    return match.group() if match else ""


def _lookalike_word(text: str) -> str:
    """A word whose letters all look Latin, in a text that is otherwise written in Latin."""
    if not _FOREIGN.search(text) or not _ASCII.search(text):
        return ""
    words = [match.group() for match in _WORD.finditer(text)]
    foreign = [word for word in words if _FOREIGN.search(word)]
    alike = [word for word in foreign if len(word) > 2 and word.translate(LOOKALIKES).isascii()]
    return alike[0] if alike and len(alike) == len([w for w in foreign if len(w) > 1]) else ""


LONGEST: dict[TextKind, int] = {
    "summary": 1_000,
    "parameter": 500,
    "usage_rule": 300,
    "condition": 300,
    "tag": 40,
    "rule": 300,
    "example": 1_000,
}
"""Characters of one text. Providers cut or refuse descriptions beyond about a thousand."""

_GROWTH_FACTOR = 3
_GROWTH_ROOM = 600
_WORDS: frozenset[TextKind] = frozenset({"summary", "parameter", "usage_rule", "condition", "tag"})


def lengths_kept(change: ProposedChange) -> Iterator[FailedCheck]:
    """One text beyond the cap of its kind, or too many of a kind.

    A text that was longer in the base already may stay as long as it was, up to the length that
    the other checks look at.
    """
    for edit in change.edits:
        allowed = min(max(LONGEST[edit.kind], len(edit.before)), LONGEST_SCANNED)
        if edit.length > allowed:
            yield failed(
                "too_long",
                field=edit.field,
                excerpt=edit.after[:60],
                length=edit.length,
                allowed=allowed,
            )
    if sum(len(edit.after) for edit in change.edits) >= MOST_SCANNED:
        yield failed("too_long.together", allowed=MOST_SCANNED)
    before, after = change.base, change.candidate
    for name, had, has, most in (
        ("usage_rules", before.description.usage_rules, after.description.usage_rules, 12),
        ("tags", before.description.tags, after.description.tags, 16),
        ("examples", before.examples, after.examples, 64),
    ):
        count, allowed = len(sequence(has)), max(most, len(sequence(had)))
        if count > allowed:
            yield failed("too_long.many", field=name, count=count, name=name, allowed=allowed)


def growth_bounded(change: ProposedChange) -> Iterator[FailedCheck]:
    """All texts together beyond three times what they were, and 600 characters of room.

    Texts are paid for in every prompt. Many small additions are seen here, where each of them is
    short enough.
    """
    before = sum(len(text.text) for text in change.texts if text.kind in _WORDS)
    after = sum(len(text.text) for text in change.candidate_texts if text.kind in _WORDS)
    allowed = before * _GROWTH_FACTOR + _GROWTH_ROOM
    if after > allowed:
        yield failed("grew_too_much", before=before, after=after, allowed=allowed)
