"""What a definition says, and how its words are read.

Nothing here trusts the types of a definition: one that was read from foreign JSON may hold
anything where a text is expected. What is no text is left out, and ``malformed`` reports it.

Words and patterns are data in ``phrases/``, compiled when first asked for. A line of a file is a
pattern over folded text (``ü`` stands there as ``u``), a comment (``# ...``), the ``[name]`` of a
section, or ``@name pattern``, which the lines below it use as ``<name>``. Sections that are called
``words of ...`` hold words.
"""

from __future__ import annotations

import re
import reprlib
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any, Literal

from agentkit.tools.definition import ToolDefinition
from agentkit.tools.patterns import is_unseen

LONGEST_SCANNED = 8_000
"""Characters of one text that are looked at. ``lengths_kept`` rejects every longer one."""

LONGEST_OF_RULE = 2_000
"""Characters of any text of a rule. One that is longer is rejected before anything reads it."""

MOST_SCANNED = 40_000
"""Characters of all changed texts together that are looked at, and that may change at once."""

DEEPEST = 64
"""Levels of nesting that a definition may have."""

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
    """Every text of a definition that evolution may touch; of worked calls the first 2,000."""
    return (*_texts(definition), *islice(_texts_of_examples(definition), _MOST_TEXTS))


def _texts(definition: ToolDefinition) -> Iterator[Text]:
    words, conditions = definition.description, definition.specification
    yield from _listed("summary", "summary", words.summary)
    yield from _listed("usage_rules", "usage_rule", sequence(words.usage_rules))
    for path, text in mapping(words.parameters).items():
        if isinstance(path, str) and isinstance(text, str):
            yield Text(field=f"parameters.{path}", kind="parameter", text=text, parameter=path)
    yield from _listed("tags", "tag", sequence(words.tags))
    yield from _listed("text", "condition", sequence(conditions.text))
    yield from _listed("complexity", "condition", conditions.complexity)
    for at, rule in enumerate(rules_of(definition)):
        about = text_or_empty(getattr(rule, "parameter", ""))
        for text in leaves(_words_of_rule(rule)):
            yield Text(field=f"rules[{at}]", kind="rule", text=text, parameter=about)


def _texts_of_examples(definition: ToolDefinition) -> Iterator[Text]:
    for at, example in enumerate(sequence(definition.examples)):
        parts = [getattr(example, name, None) for name in ("arguments", "result", "query")]
        for text in leaves(parts):
            yield Text(field=f"examples[{at}]", kind="example", text=text)


def _listed(name: str, kind: TextKind, value: Any) -> Iterator[Text]:
    if isinstance(value, str):
        yield Text(field=name, kind=kind, text=value)
    for at, text in enumerate(sequence(value)):
        if isinstance(text, str):
            yield Text(field=f"{name}[{at}]", kind=kind, text=text)


def _words_of_rule(rule: Any) -> list[Any]:
    """What a learned rule says in words. A regular expression is no sentence."""
    no_words = {"kind", "pattern", "expression", "parameter", "tool", "format"}
    names = getattr(rule, "__dataclass_fields__", {})
    return [getattr(rule, name) for name in names if name not in no_words]


def overlong_rules(
    definition: ToolDefinition, known: Sequence[Any] = ()
) -> Iterator[tuple[int, str]]:
    """The places of rules with a text that nobody reads, and the text; but for known rules."""
    for at, rule in enumerate(rules_of(definition)):
        parts = [getattr(rule, name) for name in getattr(rule, "__dataclass_fields__", {})]
        texts = () if rule in known else leaves(parts, most=sys.maxsize)
        if long := next((text for text in texts if len(text) > LONGEST_OF_RULE), ""):
            yield at, long


def rules_of(definition: ToolDefinition) -> Sequence[Any]:
    """The learned rules of a definition."""
    return sequence(getattr(definition.specification, "rules", ()))


def leaves(value: Any, most: int = _MOST_LEAVES) -> Iterator[str]:
    """The texts in JSON data, names of fields included; of huge data the first parts."""
    waiting, seen = [value], 0
    while waiting and seen < most:
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


# --- Foreign data --------------------------------------------------------------------------------


_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxstring, _REPR.maxother = 3, 60, 60


def same(left: Any, right: Any) -> bool:
    """As ``agentkit.tools.canonical.same_json``, without recursion and for records as well.

    What is compared was made by a proposer, who may nest it as deep as a parser lets through.

    Example:
        >>> same({"a": [1, 2]}, {"a": (1.0, 2)}), same([1], [True])
        (True, False)
    """
    waiting = [(left, right)]
    while waiting:
        one, other = map(_as_data, waiting.pop())
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


def _as_data(part: Any) -> Any:
    """Rules and worked calls by the names of their fields."""
    names = getattr(part, "__dataclass_fields__", None)
    return part if names is None else {name: getattr(part, name) for name in names}


def is_too_deep(value: Any) -> bool:
    """Whether data are nested deeper than a definition may be.

    Example:
        >>> is_too_deep({"a": [1]})
        False
    """
    level, depth = [value], 0
    while level and depth <= DEEPEST:
        level = [inner for part in level for inner in (mapping(part).values() or sequence(part))]
        depth += 1
    return bool(level)


def shown_value(value: Any) -> str:
    """A value as it is written in Python, short, whatever it is.

    Example:
        >>> shown_value({"minimum": 1, "enum": [1, 2, 3]})
        "{'enum': [1, 2, 3], 'minimum': 1}"
    """
    return _REPR.repr(value)


# --- Phrases -------------------------------------------------------------------------------------


_PART = re.compile(r"<(\w+)>")


@cache
def sections(name: str) -> Mapping[str, tuple[str, ...]]:
    """The lines of ``phrases/<name>.txt`` by section; those above the first one have no name.

    Example:
        >>> list(sections("tool_names"))
        ['marked', 'called', 'orders']
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
    return {kind: pattern(name, section) for section, kind in _kinds(name, code).items()}


def _kinds(name: str, code: str) -> Mapping[str, str]:
    """The kinds of the sections ``code``, or ``code.kind``; all sections without a code."""
    return {
        section: section.partition(".")[2] if code else section
        for section in sections(name)
        if not code or section.partition(".")[0] == code
    }


_NOT_ASKED = re.compile(r"\[\^[^\]]*\]|\\.|\([^()]*\)[?*]|[^)\]][?*]|\(\?[^:(]*[:=!]")


@cache
def quick_patterns(
    name: str, code: str = "", *, is_ascii: bool
) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """The patterns of ``patterns``, cut up so that searching a text takes less time.

    Where all lines of a pattern begin with a word, it fails at once wherever none begins. Lines
    without an ASCII letter, such as Chinese ones, are left out for ASCII texts.
    """
    found = []
    for section, kind in _kinds(name, code).items():
        lines = sections(name)[section]
        if is_ascii:
            lines = tuple(line for line in lines if not _is_foreign(line))
        of_words = [line for line in lines if line.startswith("\\b")]
        others = [line for line in lines if line not in of_words]
        found += [(kind, re.compile("|".join(each))) for each in (of_words, others) if each]
    return tuple(found)


def _is_foreign(line: str) -> bool:
    """Whether a pattern asks for letters, and for none of ASCII."""
    asked = _NOT_ASKED.sub("", line)
    return not asked.isascii() and re.search("[A-Za-z]", asked) is None


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
    "аеорсухіјѕԁһӏԛԝвкмнтгпАВЕКМНОРСТУХІЈЅԌԚԜοανρτικυχγεηωΑΒΕΖΗΙΚΜΝΟΡΤΥΧօոսցզհյլՕՍᎪᏴᏟᎬᎻᎫᏦᏞᎷᏀᏢᏒᏚᎢᏙᎳᏃıɩɑɡ",
    "aeopcyxijsdhlqwbkmhtrnABEKMHOPCTYXIJSGQWoavptikuxyenwABEZHIKMNOPTYXonugqhjlOUABCEHJKLMGPRSTVWZiiag",
)
"""Letters of other scripts and the Latin ones that they look like."""

FIRST_EAST_ASIAN = 0x2E80
"""From here on scripts put no spaces between words."""

_ACCENTS = re.compile(r"[\u0300-\u036f]")
_INVISIBLE = re.compile(
    r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufe00-\ufe0f\U000e0000-\U000e01ef]"
)
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
    r"""The name of somebody as it is compared: by its letters and digits, whatever their case.

    Letters that look like Latin ones are these; what nobody sees is left out.

    Example:
        >>> name_key(" Ann\u200b  Lee "), name_key("\u0430nn.lee"), name_key("\u200b \u061c")
        ('annlee', 'annlee', '')
    """
    seen = "".join(one for one in text if one.isspace() or not is_unseen(one))
    plain = folded(folded(seen.translate(LOOKALIKES)).translate(LOOKALIKES)).strip()
    return "".join(filter(str.isalnum, plain)) or plain


def wording_key(text: str) -> str:
    """The words of a text alone: texts that differ in case, signs, spaces or articles are the same.

    Example:
        >>> wording_key("Highest price (in euros).") == wording_key("the highest price, in Euros")
        True
    """
    return (
        " ".join(re.findall(r"[^\W_]+", _ARTICLES.sub(" ", folded(text).replace("_", " ")))) or text
    )


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
