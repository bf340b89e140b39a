"""Letters that look like other letters.

A small table of our own instead of the confusables of Unicode (UTS 39, 6,000 pairs): what matters
here is whether a reader of Latin text is misled, and for that it is enough to know which letters of
Greek, Cyrillic, Armenian and Cherokee look Latin, and which letters are styled Latin ones.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from agentkit.evolution.validation.reasons import reason
from agentkit.evolution.validation.report import FailedCheck, ProposedChange

LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁһӏԛԝвкмнтгпАВЕКМНОРСТУХІЈЅԌԚԜοανρτικυχγεηωΑΒΕΖΗΙΚΜΝΟΡΤΥΧօոսցզհյլՕՍᎪᏴᏟᎬᎻᎫᏦᏞᎷᏀᏢᏒᏚᎢᏙᎳᏃ",
    "aeopcyxijsdhlqwbkmhtrnABEKMHOPCTYXIJSGQWoavptikuxyenwABEZHIKMNOPTYXonugqhjlOUABCEHJKLMGPRSTVWZ",
)
"""Letters of other scripts and the Latin ones that they look like."""

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

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> list(no_mixed_scripts(rewrite("cars_search", {"rule": "调用API查询库存。Δt in µs."})))
        []
        >>> copied = rewrite("cars_search", {"rule": "P" + chr(0x0430) + "y at once."})
        >>> [found.code for found in no_mixed_scripts(copied)]
        ['mixed_scripts']
    """
    for edit in change.edits:
        if edit.after.isascii():
            continue
        for match in _WORD.finditer(edit.after):
            word = match.group()
            if word.casefold() not in change.known and _is_mixed(word):
                yield reason(
                    "mixed_scripts",
                    "lexical",
                    edit,
                    word,
                    message=f"the word {word!a} mixes letters of several scripts",
                    advice="write each word in one script",
                )
                break


def _is_mixed(word: str) -> bool:
    foreign = _FOREIGN.findall(word)
    return bool(foreign) and _LATIN.search(word) is not None and not _SIGNS.issuperset(foreign)


def no_confusables(change: ProposedChange) -> Iterator[FailedCheck]:
    """Whole words of look-alikes in Latin text, styled letters and stacked marks.

    A compatibility character, such as the Roman numeral for 1,000, passes by itself and not as a
    letter of a word.

    Texts in Greek, Cyrillic or Armenian pass: they hold letters that look like no Latin ones.
    Accents pass, composed or not. Full-width letters pass in Chinese and Japanese text.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> list(no_confusables(rewrite("cars_search", {"rule": "Prix en euros, taxe incluse."})))
        []
        >>> bold = "".join(chr(0x1D400 + i) for i in (15, 0, 24))
        >>> styled = rewrite("cars_search", {"rule": bold})
        >>> [found.code for found in no_confusables(styled)]
        ['confusable_characters']
    """
    for edit in change.edits:
        if edit.after.isascii():
            continue
        found = _styled(edit.after) or _lookalike_word(edit.after)
        if found and found.casefold() not in change.known:
            yield reason(
                "confusable_characters",
                "lexical",
                edit,
                found,
                message=f"{found!a} is made of letters that look like others",
                advice="write plain letters; accents and full-width punctuation are welcome",
            )


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
