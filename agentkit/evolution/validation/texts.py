"""The texts of a definition, what a candidate changed of them, and how texts and data are read.

Nothing here trusts the types of a definition: one that was read from foreign JSON may hold
anything where a text is expected. What is no text is left out, and ``malformed`` reports it.
"""

from __future__ import annotations

import re
import reprlib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentkit.tools.definition import ToolDefinition

LONGEST_SCANNED = 8_000
"""Characters of one text that are looked at. ``lengths_kept`` rejects every longer one."""

MOST_SCANNED = 40_000
"""Characters of all changed texts together that are looked at, and that may change at once."""

_MOST_TEXTS = 2_000
_MOST_LEAVES = 500

TextKind = Literal["summary", "tag", "parameter", "usage_rule", "condition", "rule", "example"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """One text of a definition.

    Attributes:
        field: Where it stands, as in ``FailedCheck.field``.
        kind: What it is for.
        text: The text itself.
        parameter: Dotted path of the parameter that it is about; empty for none.
    """

    field: str
    kind: TextKind
    text: str
    parameter: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """A text that a candidate has and its base has not.

    Attributes:
        field: Where it stands, as in ``FailedCheck.field``.
        kind: What it is for.
        before: The text of the base in the same place; empty for none.
        after: The text of the candidate, at most ``LONGEST_SCANNED`` characters of it.
        parameter: Dotted path of the parameter that it is about; empty for none.
        length: Characters of the whole text.
    """

    field: str
    kind: TextKind
    before: str
    after: str
    parameter: str = ""
    length: int = 0


def edits_between(base: Sequence[Text], candidate: Sequence[Text]) -> tuple[Edit, ...]:
    """The texts that are new in ``candidate``, in the order in which a definition lists them.

    A text that merely moved, such as a usage rule that now stands first, is not new.
    """
    there = {(text.kind, text.parameter, text.text) for text in base}
    places = {text.field: text.text for text in base}
    edits, left = [], MOST_SCANNED
    for text in candidate:
        if text.text and left > 0 and (text.kind, text.parameter, text.text) not in there:
            edit = Edit(
                field=text.field,
                kind=text.kind,
                before=places.get(text.field, ""),
                after=text.text[: min(LONGEST_SCANNED, left)],
                parameter=text.parameter,
                length=len(text.text),
            )
            left -= len(edit.after)
            edits.append(edit)
    return tuple(edits)


def texts_of(definition: ToolDefinition) -> tuple[Text, ...]:
    """Every text of a definition that evolution may touch; of huge ones the first 2,000."""
    found: list[Text] = []
    for text in _texts(definition):
        found.append(text)
        if len(found) == _MOST_TEXTS:
            break
    return tuple(found)


def _texts(definition: ToolDefinition) -> Iterator[Text]:
    words, conditions = definition.description, definition.specification
    if isinstance(words.summary, str):
        yield Text(field="summary", kind="summary", text=words.summary)
    yield from _listed("usage_rules", "usage_rule", words.usage_rules)
    for path, text in mapping(words.parameters).items():
        if isinstance(path, str) and isinstance(text, str):
            yield Text(field=f"parameters.{path}", kind="parameter", text=text, parameter=path)
    yield from _listed("tags", "tag", words.tags)
    yield from _listed("text", "condition", conditions.text)
    if isinstance(conditions.complexity, str):
        yield Text(field="complexity", kind="condition", text=conditions.complexity)
    for at, rule in enumerate(rules_of(definition)):
        yield from _of_rule(f"rules[{at}]", rule)
    for at, example in enumerate(sequence(definition.examples)):
        parts = [getattr(example, name, None) for name in ("arguments", "result", "query")]
        for text in leaves(parts):
            yield Text(field=f"examples[{at}]", kind="example", text=text)


def _listed(name: str, kind: TextKind, values: Any) -> Iterator[Text]:
    for at, text in enumerate(sequence(values)):
        if isinstance(text, str):
            yield Text(field=f"{name}[{at}]", kind=kind, text=text)


def _of_rule(field: str, rule: Any) -> Iterator[Text]:
    """The words of a learned rule. A regular expression is no sentence: it is left to rules."""
    names = getattr(rule, "__dataclass_fields__", {})
    about = getattr(rule, "parameter", "")
    for name in names:
        if name not in {"kind", "pattern", "expression", "parameter", "tool", "format"}:
            for text in leaves(getattr(rule, name)):
                yield Text(
                    field=field,
                    kind="rule",
                    text=text,
                    parameter=about if isinstance(about, str) else "",
                )


def rules_of(definition: ToolDefinition) -> Sequence[Any]:
    """The learned rules of a definition."""
    return sequence(getattr(definition.specification, "rules", ()))


def leaves(value: Any) -> Iterator[str]:
    """The texts in JSON data, names of fields included; of huge data the first 500 parts."""
    waiting, seen = [value], 0
    while waiting and seen < _MOST_LEAVES:
        part = waiting.pop()
        seen += 1
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping):
            waiting.extend(reversed([*part.keys(), *part.values()]))
        elif isinstance(part, list | tuple):
            waiting.extend(reversed(part))


def mapping(value: Any) -> Mapping[Any, Any]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: Any) -> Sequence[Any]:
    """The value if it is a list or tuple, else an empty one."""
    return value if isinstance(value, list | tuple) else ()


def text_or_empty(value: Any) -> str:
    """The value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def sentences_of(definition: ToolDefinition, kinds: Iterable[TextKind]) -> str:
    """The texts of these kinds, a line each."""
    wanted = frozenset(kinds)
    return "\n".join(text.text for text in texts_of(definition) if text.kind in wanted)


LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁһӏԛԝвкмнтгпАВЕКМНОРСТУХІЈЅԌԚԜοανρτικυχγεηωΑΒΕΖΗΙΚΜΝΟΡΤΥΧօոսցզհյլՕՍᎪᏴᏟᎬᎻᎫᏦᏞᎷᏀᏢᏒᏚᎢᏙᎳᏃ",
    "aeopcyxijsdhlqwbkmhtrnABEKMHOPCTYXIJSGQWoavptikuxyenwABEZHIKMNOPTYXonugqhjlOUABCEHJKLMGPRSTVWZ",
)
"""Letters of other scripts and the Latin ones that they look like."""


_ACCENTS = re.compile(r"[\u0300-\u036f]")
_INVISIBLE = re.compile(
    r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufe00-\ufe0f\U000e0000-\U000e01ef]"
)
_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。\uff01\uff1f\uff1b])|\n+")
_FIRST_EAST_ASIAN = 0x2E80
_SPACE = re.compile(r"\s+")


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


_ARTICLES = re.compile(r"\b(?:an?|the|der|die|das|eine?|l[ea]s?|une?|el|los|las|una)\b")


def wording_key(text: str) -> str:
    """The words of a text alone: texts that differ in case, signs, spaces or articles are the same.

    Example:
        >>> wording_key("Highest price (in euros).") == wording_key("the highest price, in Euros")
        True
    """
    return " ".join(re.findall(r"[^\W_]+", _ARTICLES.sub(" ", folded(text)))) or text


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
    return char == "_" or (char.isalnum() and ord(char) < _FIRST_EAST_ASIAN)


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
    found: set[float] = set()
    for match in _NUMBER.finditer(text):
        found.update(readings_of(match.group()))
    return found


def readings_of(written: str) -> set[float]:
    """The numbers that one written number may mean: ``1.500`` is 1500 in German."""
    plain = written.replace("\u2212", "-")
    forms = {_THOUSANDS.sub("", plain).replace(",", "."), plain.replace(",", ".")}
    return {float(form) for form in forms if re.fullmatch(r"-?\d{1,300}(?:\.\d+)?", form)}


DEEPEST = 64
"""Levels of nesting that a definition may have."""

_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxstring, _REPR.maxother = 3, 60, 60


def same(left: Any, right: Any) -> bool:
    """As ``agentkit.tools.canonical.same_json``, without recursion and for any mapping or sequence.

    What is compared was made by a proposer, who may nest it as deep as a parser lets through.

    Example:
        >>> same({"a": [1, 2]}, {"a": (1.0, 2)}), same([1], [True])
        (True, False)
    """
    waiting = [(left, right)]
    while waiting:
        one, other = waiting.pop()
        if one is other:
            continue
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            if one.keys() != other.keys():
                return False
            waiting.extend((one[key], other[key]) for key in one)
        elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
            if len(one) != len(other):
                return False
            waiting.extend(zip(one, other, strict=True))
        elif isinstance(one, bool) or isinstance(other, bool) or not bool(one == other):
            return False
    return True


def is_too_deep(value: Any) -> bool:
    """Whether data are nested deeper than a definition may be.

    Example:
        >>> is_too_deep({"a": [1]})
        False
    """
    level, depth = [value], 0
    while level and depth <= DEEPEST:
        parts = (
            part.values() if isinstance(part, Mapping) else part
            for part in level
            if isinstance(part, Mapping | list | tuple)
        )
        level = [inner for part in parts for inner in part]
        depth += 1
    return bool(level)


def shown_value(value: Any) -> str:
    """A value as it is written in Python, short, whatever it is.

    Example:
        >>> shown_value({"minimum": 1, "enum": [1, 2, 3]})
        "{'enum': [1, 2, 3], 'minimum': 1}"
    """
    return _REPR.repr(value)
