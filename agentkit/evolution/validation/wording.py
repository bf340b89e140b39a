"""How texts are read: folded, in sentences, by words, patterns and numbers.

Words and patterns are data in ``phrases/``, compiled when first asked for. A line of a file is a
pattern over folded text (``ü`` stands there as ``u``), a comment (``# ...``), the ``[name]`` of a
section, or ``@name pattern``, which the lines below it use as ``<name>``. Sections that are called
``words of ...`` hold words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

# --- Phrases -------------------------------------------------------------------------------------


_PART = re.compile(r"<(\w+)>")


@cache
def sections(name: str) -> Mapping[str, tuple[str, ...]]:
    """The lines of ``phrases/<name>.txt`` by section; those above the first one have no name.

    Example:
        >>> list(sections("units"))
        ['time', 'temperature', 'length', 'mass', 'share', 'money', 'data']
    """
    file = files(__package__ or "").joinpath("phrases", f"{name}.txt")
    found: dict[str, list[str]] = {}
    parts: dict[str, str] = {}
    section = ""
    for line in file.read_text(encoding="utf-8").splitlines():
        filled = _PART.sub(lambda part: parts.get(part[1], part[0]), line)
        if line.startswith("[") and line.endswith("]") and "|" not in line:
            section = line[1:-1]
        elif line.startswith("@"):
            part, _, meant = filled[1:].partition(" ")
            parts[part] = meant
        elif line and not line.startswith("#"):
            found.setdefault(section, []).append(filled)
    return {section: tuple(lines) for section, lines in found.items()}


@cache
def words(name: str, section: str = "") -> frozenset[str]:
    """The words of a section of a file."""
    return frozenset(" ".join(sections(name).get(section, ())).split())


@cache
def pattern(name: str, section: str = "") -> re.Pattern[str]:
    """One pattern of all lines of a section."""
    return re.compile("|".join(sections(name)[section]))


@cache
def patterns(name: str, code: str = "") -> Mapping[str, re.Pattern[str]]:
    """The patterns of the sections ``code``, or ``code.kind`` by kind; of all by section."""
    kinds = {
        section: section.partition(".")[2] if code else section
        for section in sections(name)
        if not code or section.partition(".")[0] == code
    }
    return {kind: pattern(name, section) for section, kind in kinds.items()}


def matches(looked_for: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Every match, also one that begins inside another: an excused one must hide nothing.

    Example:
        >>> [found.group() for found in matches(re.compile("a.b|b"), "a b")]
        ['a b', 'b']
    """
    at = 0
    while (found := looked_for.search(text, at)) is not None:
        yield found
        at = found.start() + 1


# --- Letters and sentences -----------------------------------------------------------------------


LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁһӏԛԝвкмнтгпАВЕКМНОРСТУХІЈЅԌԚԜοανρτικυχγεηωΑΒΕΖΗΙΚΜΝΟΡΤΥΧօոսցզհյլՕՍᎪᏴᏟᎬᎻᎫᏦᏞᎷᏀᏢᏒᏚᎢᏙᎳᏃ",
    "aeopcyxijsdhlqwbkmhtrnABEKMHOPCTYXIJSGQWoavptikuxyenwABEZHIKMNOPTYXonugqhjlOUABCEHJKLMGPRSTVWZ",
)
"""Letters of other scripts and the Latin ones that they look like."""

FIRST_EAST_ASIAN = 0x2E80
"""From here on scripts put no spaces between words."""

_ACCENTS = re.compile(r"[\u0300-\u036f]")
_INVISIBLE = re.compile(
    r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufe00-\ufe0f\U000e0000-\U000e01ef]"
)
_UNSEEN = frozenset({"Cc", "Cf"})
_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。\uff01\uff1f\uff1b])|\n+")
_SPACE = re.compile(r"\s+")
_ARTICLES = re.compile(r"\b(?:an?|the|der|die|das|eine?|l[ea]s?|une?|el|los|las|una)\b")


def folded(text: str) -> str:
    """The text without case, accents, presentation forms and invisible characters.

    Example:
        >>> folded("Ⅷ  Überprüfung der ﬁnalen Datei")
        'viii uberprufung der finalen datei'
    """
    if not text.isascii():
        text = _INVISIBLE.sub("", text)
        text = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
        text = unicodedata.normalize("NFC", text).replace("\u2019", "'").replace("\u2018", "'")
        text = text.replace("“", '"').replace("”", '"')
    return _SPACE.sub(" ", text.casefold())


def name_key(text: str) -> str:
    r"""The name of somebody as it is compared: without case, outer spaces and what nobody sees.

    Example:
        >>> name_key(" Ann\u200b  Lee "), name_key("\u200b \u061c")
        ('ann lee', '')
    """
    seen = (one for one in text if one.isspace() or unicodedata.category(one) not in _UNSEEN)
    return " ".join(folded("".join(seen)).split())


def wording_key(text: str) -> str:
    """The words of a text alone: texts that differ in case, signs, spaces or articles are the same.

    Example:
        >>> wording_key("Highest price (in euros).") == wording_key("the highest price, in Euros")
        True
    """
    return (
        " ".join(re.findall(r"[^\W_]+", _ARTICLES.sub(" ", folded(text).replace("_", " ")))) or text
    )


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text, each folded.

    Example:
        >>> list(sentences("Price in euros. Tax included."))
        ['price in euros.', 'tax included.']
    """
    for part in _END.split(text):
        if part.strip():
            yield folded(part).strip()


def stands_in(word: str, text: str) -> bool:
    """Whether a word stands in a text as a word; in scripts without spaces, anywhere.

    Example:
        >>> stands_in("days", "how many days."), stands_in("day", "how many days.")
        (True, False)
    """
    if not word.isascii():
        return word in text
    start = text.find(word) if word else -1
    while start >= 0:
        end = start + len(word)
        if not (_goes_on(text[max(start - 1, 0) : start]) or _goes_on(text[end : end + 1])):
            return True
        start = text.find(word, end)
    return False


def _goes_on(char: str) -> bool:
    """Whether a word goes on with this character; Chinese needs no space beside a Latin word."""
    return char == "_" or (char.isalnum() and ord(char) < FIRST_EAST_ASIAN)


# --- Numbers, and how values are written ---------------------------------------------------------


_NUMBER = re.compile(
    r"(?<![\w.])[-\u2212]?\d{1,3}(?:[ ,.'\u2019]\d{3})+(?:[.,]\d+)?(?!\d)"
    r"|(?:(?<!\w)[-\u2212])?\d+(?:[.,]\d+)?"
)
_THOUSANDS = re.compile(r"(?<=\d)[ ,.'\u2019](?=\d{3}(?!\d))")


def numbers_in(text: str) -> set[float]:
    """The numbers in a text, in each way in which they can be read.

    Example:
        >>> sorted(numbers_in("1.500 or 2,5, from 3-7"))
        [1.5, 2.5, 3.0, 7.0, 1500.0]
    """
    found = (readings_of(match.group()) for match in _NUMBER.finditer(text))
    return set[float]().union(*found)


def readings_of(written: str) -> set[float]:
    """The numbers that one written number may mean: ``1.500`` is 1500 in German."""
    plain = written.replace("\u2212", "-")
    forms = {_THOUSANDS.sub("", plain).replace(",", "."), plain.replace(",", ".")}
    return {float(form) for form in forms if re.fullmatch(r"-?\d{1,300}(?:\.\d+)?", form)}


@cache
def units() -> Mapping[str, tuple[str, str]]:
    """What each word of a unit measures, and which unit it is."""
    return {
        word: (dimension, line.partition(": ")[0])
        for dimension, lines in sections("units").items()
        for line in lines
        for word in line.partition(": ")[2].split()
    }
