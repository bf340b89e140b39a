r"""``Phrasebook``: many patterns of phrases, of which few are tried on one text.

A regular expression of three hundred alternatives tries each of them at every character, which
takes milliseconds. A phrase begins with a word, though, and a text holds few words. So the
patterns are kept by how they begin, and each is tried only at the words of the text that it can
begin with. They are compiled when they are first tried: a process that sees English alone never
compiles the others.

The patterns stand in ``phrases/*.txt``, one a line, matched against folded text: ``ü`` stands there
as ``u``, ``ß`` as ``ss``, full-width letters as plain ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files


def shipped_lines(name: str) -> list[str]:
    """The lines of ``phrases/<name>.txt`` that are neither empty nor comments (``# ...``)."""
    file = files(__package__ or "").joinpath("phrases", f"{name}.txt")
    lines = file.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@cache
def shipped_sections(name: str) -> Mapping[str, list[str]]:
    """The lines of a file by the ``[section]`` that they stand below; for those above it is empty.

    Example:
        >>> list(shipped_sections("units"))
        ['time', 'temperature', 'length', 'mass', 'share', 'money', 'data']
    """
    sections: dict[str, list[str]] = {}
    section = ""
    for line in shipped_lines(name):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        else:
            sections.setdefault(section, []).append(line)
    return sections


_LONGEST_KEY = 7
_MOST_WORDS = 4_096
_WORD = re.compile(r"\w+")
_PART = re.compile(r"<\w+>")
_WORD_ENDS = re.compile(r"\\b| (?![?*{])")
_FAR = re.compile(r"[^\x00-\x7f]")
_OPENINGS = ("(?:", "(?P<")


class Phrasebook:
    r"""Patterns over folded text (``folding.folded``), tried where their first word occurs.

    A pattern should begin with ``\b`` and a word or a group of words, or with a character beyond
    ASCII. One that begins otherwise is tried on every text.

    Args:
        patterns: Regular expressions; each alternative at their top level stands for itself.

    Example:
        >>> book = Phrasebook(r"\b(?:ignore|forget)\b.{0,20}\brules?\b", "忽略.{0,5}规则")
        >>> [found.group() for found in book.matches("please forget these rules")]
        ['forget these rules']
    """

    def __init__(self, *patterns: str) -> None:
        self._sources = [part for pattern in patterns for part in alternatives(pattern)]
        self._compiled: dict[int, re.Pattern[str]] = {}
        self._by_beginning: dict[str, list[int]] = {}
        self._always: list[int] = []
        for at, source in enumerate(self._sources):
            begins = beginnings(source)
            if begins is None:
                self._always.append(at)
            for begin in begins or ():
                self._by_beginning.setdefault(_key(begin), []).append(at)
        self._beginnings = frozenset(self._by_beginning)
        self._begun_by = lru_cache(maxsize=_MOST_WORDS)(self._beginning_with)
        self._patterns_at = lru_cache(maxsize=_MOST_WORDS)(self._compiled_for)

    @classmethod
    def shipped(cls, name: str) -> Phrasebook:
        """The patterns of the file ``phrases/<name>.txt`` of this package.

        A line is a pattern, a comment that starts with ``#``, or ``@name pattern``, which the
        patterns below it use as ``<name>``.
        """
        return cls(*_patterns(shipped_lines(name)))

    @classmethod
    def shipped_sections(cls, name: str) -> Mapping[str, Phrasebook]:
        """The patterns of a file by section; named parts stand above the first section."""
        sections = dict(shipped_sections(name))
        parts = sections.pop("", [])
        return {section: cls(*_patterns([*parts, *lines])) for section, lines in sections.items()}

    @classmethod
    def joined(cls, books: Iterable[Phrasebook]) -> Phrasebook:
        """All patterns of several books in one, which is looked up once; in the same order."""
        return cls(*(source for book in books for source in book.sources))

    @property
    def sources(self) -> tuple[str, ...]:
        """The patterns, each alternative at the top level by itself."""
        return tuple(self._sources)

    def matches(self, text: str) -> Iterator[re.Match[str]]:
        """Every match of every pattern, pattern by pattern in the order in which they stand."""
        if not text.isascii():  # there phrases begin anywhere: scripts without spaces
            for at in self._tried(text):
                yield from self._pattern(at).finditer(text)
            return
        places: dict[int, list[int]] = {at: [] for at in self._always}
        for word in _WORD.finditer(text):
            for at in self._begun_by(word.group()):
                places.setdefault(at, []).append(word.start())
        for at, starts in sorted(places.items()):
            pattern = self._pattern(at)
            yield from _found_at(pattern, text, starts) if starts else pattern.finditer(text)

    def search(self, text: str) -> re.Match[str] | None:
        """The first of ``matches``; None when there is none."""
        return next(self.matches(text), None)

    def holds(self, text: str) -> bool:
        """Whether ``matches`` gives anything; in a long text sooner than ``search`` says it."""
        if not text.isascii():
            return self.search(text) is not None
        return any(self._pattern(at).search(text) for at in self._always) or any(
            pattern.match(text, word.start())
            for word in _WORD.finditer(text)
            for pattern in self._patterns_at(word.group())
        )

    def _tried(self, text: str) -> list[int]:
        begun = self._beginnings & _keys(text)
        if not begun:
            return self._always
        return sorted({*self._always, *(at for key in begun for at in self._by_beginning[key])})

    def _beginning_with(self, word: str) -> tuple[int, ...]:
        """The patterns that may match where a word of ASCII letters stands."""
        begun = self._beginnings & _prefixes(word)
        return tuple({at for key in begun for at in self._by_beginning[key]})

    def _compiled_for(self, word: str) -> tuple[re.Pattern[str], ...]:
        return tuple(map(self._pattern, self._begun_by(word)))

    def _pattern(self, at: int) -> re.Pattern[str]:
        pattern = self._compiled.get(at)
        if pattern is None:
            pattern = self._compiled[at] = re.compile(self._sources[at])
        return pattern


def _found_at(
    pattern: re.Pattern[str], text: str, starts: Iterable[int]
) -> Iterator[re.Match[str]]:
    """The matches that begin at one of these places, none inside another."""
    end = 0
    for start in starts:
        if start >= end and (match := pattern.match(text, start)):
            end = match.end()
            yield match


def _patterns(lines: Iterable[str]) -> Iterator[str]:
    parts: dict[str, str] = {}
    for line in lines:
        if line.startswith("@"):
            part, _, pattern = line[1:].partition(" ")
            parts[f"<{part}>"] = pattern
        else:
            yield _PART.sub(lambda found: parts.get(found[0], found[0]), line)


@lru_cache(maxsize=64)  # several books look at the same sentence, one after the other
def _keys(text: str) -> frozenset[str]:
    """Every key under which the beginning of a phrase in ``text`` may be kept."""
    keys = frozenset().union(*map(_prefixes, set(_WORD.findall(text))))
    return keys if text.isascii() else keys.union(_FAR.findall(text))


@lru_cache(maxsize=_MOST_WORDS)  # texts are made of the same words over and over
def _prefixes(word: str) -> frozenset[str]:
    """The beginnings of a word; a blank stands behind a whole one."""
    ends = range(1, min(len(word), _LONGEST_KEY) + 1)
    return frozenset((*(word[:end] for end in ends), _key(f"{word} ")))


def _key(begin: str) -> str:
    return begin[:_LONGEST_KEY] if begin[0].isascii() else begin[0]


def alternatives(pattern: str) -> list[str]:
    """The alternatives at the top level of a regular expression.

    Example:
        >>> alternatives("a(?:b|c)|d[|]e")
        ['a(?:b|c)', 'd[|]e']
    """
    parts, start = [], 0
    for at, char, depth in _structure(pattern):
        if char == "|" and depth == 0:
            parts.append(pattern[start:at])
            start = at + 1
    return [*parts, pattern[start:]]


def beginnings(pattern: str) -> set[str] | None:
    r"""With which literal texts a match can begin; None when that can not be told.

    Only beginnings of words count, as ``\b`` makes them, and characters beyond ASCII. A blank
    behind a text says that it is a whole word.

    Example:
        >>> sorted(beginnings(r"\b(?:the )?(?:best|finest) tool"))
        ['best', 'finest', 'the ']
        >>> beginnings(r"[a-z]+@") is None
        True
    """
    at_word = pattern.startswith(r"\b")
    begins = _beginnings(pattern.removeprefix(r"\b"))
    if begins is None or not all(begins):
        return None
    return begins if at_word or not any(begin[0].isascii() for begin in begins) else None


def _beginnings(rest: str) -> set[str] | None:
    """As ``beginnings``, wherever the match stands; the empty text for one that may be empty."""
    if opening := next((opening for opening in _OPENINGS if rest.startswith(opening)), ""):
        end = _group_end(rest)
        inside = rest[len(opening) : end]
        if opening == "(?P<":
            inside = inside.split(">", 1)[1]
        begins: set[str] = set()
        for part in alternatives(inside):
            own = _beginnings(part)
            if own is None:
                return None
            begins |= own
        after = rest[end + 1 :]
        optional = after[:1] in {"?", "*"} or after.startswith("{0")
        if optional or "" in begins:
            following = _beginnings(after[1:] if optional else after)
            return None if following is None else (begins - {""}) | following
        return begins
    return _literal(rest)


def _literal(rest: str) -> set[str] | None:
    at = 0
    while at < min(len(rest), _LONGEST_KEY + 1) and (rest[at].isalnum() or rest[at] == "_"):
        at += 1
    follows = rest[at : at + 1]
    if follows in {"?", "*"} or rest[at:].startswith("{0"):
        at -= 1
    elif 0 < at <= _LONGEST_KEY and _WORD_ENDS.match(rest, at):
        return {f"{rest[:at]} "}
    if at > 0:
        return {rest[:at]}
    return {""} if not rest or rest.startswith((r"\b", "$")) else None


def _group_end(pattern: str) -> int:
    """Where the group ends that a pattern begins with."""
    return next(at for at, char, depth in _structure(pattern) if char == ")" and depth == 0)


def _structure(pattern: str) -> Iterator[tuple[int, str, int]]:
    """Place, character and depth of groups, of all that stands outside of classes and escapes.

    A bracket stands at the depth of what is around its group.
    """
    at = depth = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 1
        elif char == "[":
            at = _class_end(pattern, at)
        else:
            depth -= char == ")"
            yield at, char, depth
            depth += char == "("
        at += 1


def _class_end(pattern: str, at: int) -> int:
    """Where a character class ends that begins at ``at``."""
    at += 2 if pattern[at + 1 : at + 2] == "^" else 1
    at += 1 if pattern[at : at + 1] == "]" else 0
    while pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at
