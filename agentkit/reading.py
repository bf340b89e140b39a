"""Reading what others wrote, with bounds: a small file must not become a large one in memory.

Every reader of foreign JSON and of compressed files goes through here. The bounds are far above
what honest files need and grow with the size of the input; ``AGENTKIT_READ_LIMIT=10`` in the
environment makes each of them ten times as high for a file that you trust.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from typing import IO, Any, BinaryIO

from agentkit.errors import ReadingLimitError, UsageError

LIMIT_VARIABLE = "AGENTKIT_READ_LIMIT"
MAX_DEPTH = 200
"""Levels of nesting. Deeper data breaks whatever walks it; no factor raises this."""

_GZIP = b"\x1f\x8b"
_LEAST_BYTES = 1 << 24
MOST_OF_A_FILE = 1 << 29
"""Bytes of the largest file of our own formats, unpacked."""
_MOST_STORED = 1 << 26
_RATIO = 64  # gzip reaches some 50 on catalogues of nearly equal tools, and 1,032 on zeros
_STREAMED_RATIO = 1_032
_VALUES = 500_000
_BYTES_A_VALUE = 16  # of definitions and episodes; a value takes some 100 bytes of memory
_PIECE = 1 << 20
_BROKEN = 10_000
_ANSWER_CHARACTERS = 1_000_000  # the longest answers of models have half as much
_ANSWER_VALUES = 100_000

_STRING = re.compile(rb'"(?:[^"\\\n]++|\\[^\n])*+"?')  # possessive: linear on any text; in one line
_FENCED = re.compile(r"```(?:json)?[ \t\r]*\n(.*?)```", re.DOTALL)


def expanded_limit(stored: int) -> int:
    """How many bytes may come of ``stored`` compressed ones.

    Example:
        >>> expanded_limit(146_000) == 16 * 1024 * 1024
        True
    """
    return _factor() * min(max(_LEAST_BYTES, _RATIO * stored), MOST_OF_A_FILE)


def value_limit(size: int, *, least: int = _VALUES) -> int:
    """How many values a document of ``size`` bytes, or characters, may hold."""
    return _factor() * (least + size // _BYTES_A_VALUE)


def most_broken() -> int:
    """How many lines or entries of a file may be broken before the whole file is given up."""
    return _factor() * _BROKEN


def only_plain(path: str, flags: int, mode: int = 0o666, *, extra: int = 0) -> int:
    """An opener for ``open`` for which a pipe or device, which may never end, is an ``OSError``.

    Args:
        path: The file; a link is followed.
        flags: As ``open`` gives them.
        mode: Permissions of a file that is made.
        extra: Further flags, such as ``os.O_NOFOLLOW``.
    """
    descriptor = os.open(path, flags | extra | getattr(os, "O_NONBLOCK", 0), mode)
    kind = os.fstat(descriptor).st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):  # of a folder ``open`` tells by itself
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a plain file", path)
    return descriptor


def open_plain(path: str | os.PathLike[str]) -> BinaryIO:
    """A file that somebody else may have made, opened for reading; see ``only_plain``.

    Raises:
        OSError: It cannot be opened, or is not a plain file.
    """
    return open(path, "rb", opener=only_plain)


def read_stored(source: IO[bytes], *, most: int = _MOST_STORED) -> bytes:
    """All of a file or stream, which need not end.

    Raises:
        ReadingLimitError: It holds more than ``most`` bytes, times the factor.
    """
    most *= _factor()
    pieces, size = [], 0
    while piece := source.read(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise _too_much(f"it has more than {most:,} bytes")
    return b"".join(pieces)


def unpacked(data: bytes, *, is_packed: bool | None = None) -> bytes:
    """The content of a file: as it is, or unpacked.

    Args:
        data: The file.
        is_packed: Whether it must be gzip; None looks at how it begins.

    Raises:
        ReadingLimitError: It would become too large.
        OSError, EOFError, zlib.error: It is damaged.
    """
    if not (data.startswith(_GZIP) if is_packed is None else is_packed):
        return data
    import gzip

    most = expanded_limit(len(data))
    pieces, size = [], 0
    with gzip.open(io.BytesIO(data)) as file:
        while piece := file.read(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > most:
                raise _too_much(f"{len(data):,} compressed bytes hold more than {most:,}")
    return b"".join(pieces)


def streamed_limit(stored: int) -> int:
    """How many bytes may come of a compressed file that is read a little at a time.

    Memory is no question then, only whether reading ever ends: Parquet can say a row a billion
    times in a kilobyte. The ratio is the best that gzip reaches.
    """
    return _factor() * max(_LEAST_BYTES, _STREAMED_RATIO * stored)


def unpacked_lines(source: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, plain or compressed, one at a time; none may be longer than the bound.

    Raises:
        ReadingLimitError: A line is longer than the bytes that a file of this size may hold.
        OSError, EOFError, zlib.error: It is damaged.
    """
    is_compressed = source.read(len(_GZIP)) == _GZIP
    stored = source.seek(0, os.SEEK_END)
    source.seek(0)
    if not is_compressed:
        most = MOST_OF_A_FILE * _factor()
        while line := source.readline(most + 1):
            if len(line) > most:
                raise _too_much(f"a line has more than {most:,} bytes")
            yield line
        return
    import gzip

    most = expanded_limit(stored)
    file = gzip.GzipFile(fileobj=source)
    while line := file.readline(most + 1):
        if len(line) > most:
            raise _too_much(f"{stored:,} compressed bytes hold a line of more than {most:,} bytes")
        yield line


def read_json(
    text: str | bytes, *, decode: Callable[[Any], Any] = json.loads, most: int = 0
) -> Any:
    """The data of a JSON text.

    Values are counted before anything is built, so that what is refused costs a look at its bytes.

    Args:
        text: The document.
        decode: What builds the data of a text, such as ``decode`` of a ``json.JSONDecoder``.
        most: How many values it may hold; 0 for what ``value_limit`` says.

    Raises:
        ReadingLimitError: It holds too many values, or is nested too deeply; a ``ValueError``.
        ValueError: It is not JSON.

    Example:
        >>> read_json('{"a": [1, 2]}')
        {'a': [1, 2]}
        >>> read_json("[" * 300 + "]" * 300)
        Traceback (most recent call last):
            ...
        agentkit.errors.ReadingLimitError: it is nested too deeply, deeper than 200 levels
    """
    check_values(text, most=most)
    try:
        data = decode(text)
    except RecursionError as error:
        raise _too_deep() from error
    if len(text) > MAX_DEPTH and _openings(text) > MAX_DEPTH and not is_shallow(data):
        raise _too_deep()
    return data


def read_once(text: str | bytes) -> Any:
    """The data of a JSON text in which no object has a name twice: readers would differ on it.

    Raises:
        ValueError: As for ``read_json``, or an object has a name twice.
    """
    return read_json(text, decode=lambda known: json.loads(known, object_pairs_hook=named_once))


def named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of these names and values, for ``object_pairs_hook``.

    Raises:
        ValueError: A name is there twice.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        names = Counter(name for name, _ in pairs)
        twice = next(name for name, count in names.items() if count > 1)
        raise ReadingLimitError(f"{twice!r:.80} is given twice in one object")
    return found


def read_answer(text: str) -> Any:
    r"""The data of a JSON text that a model wrote, alone or in a code fence.

    Raises:
        ReadingLimitError: It is longer, or holds more values, than models answer with.
        ValueError: It is not JSON.

    Example:
        >>> read_answer('Here it is:\n```json\n{"a": 1}\n```')
        {'a': 1}
    """
    if len(text) > _ANSWER_CHARACTERS:
        raise ReadingLimitError(
            f"it has {len(text):,} characters, more than {_ANSWER_CHARACTERS:,}"
        )
    fenced = _FENCED.search(text)
    written = fenced[1] if fenced else text
    if (count := _values(written, _ANSWER_VALUES)) > _ANSWER_VALUES:
        raise ReadingLimitError(f"it holds {count:,} values, more than {_ANSWER_VALUES:,}")
    return read_json(written)


def check_values(text: str | bytes, *, most: int = 0) -> None:
    """Refuse a JSON text of more values than a text of its size has any business to hold.

    Args:
        text: The document, or JSON lines, of all of which the values count.
        most: How many it may hold; 0 for what ``value_limit`` says.

    Raises:
        ReadingLimitError: It holds more.
    """
    if len(text) <= (most or _VALUES):
        return
    limit = most or value_limit(len(text))
    if (count := _values(text, limit)) > limit:
        told = f"{len(text):,} bytes of JSON hold at least {count:,} values, more than {limit:,}"
        raise ReadingLimitError(told) if most else _too_much(told)


def _values(text: str | bytes, most: int) -> int:
    """The values of a JSON text; 0 where they are plainly no more than ``most``."""
    if len(text) <= min(most, _VALUES) or _separators(text) < most:
        return 0  # separators in texts were counted with them: never too low
    if (strings := _strings(text)) > 2 * most:  # to look between so many takes longer than to build
        return strings // 2
    bare = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return 1 + _separators(_STRING.sub(b"", bare))


def _strings(text: str | bytes) -> int:
    """Texts and names in a JSON text, never too high; a value has one of each at most."""
    if isinstance(text, str):
        return (text.count('"') - text.count('\\"')) // 2
    return (text.count(b'"') - text.count(b'\\"')) // 2


def is_readable(text: str, data: object) -> bool:
    """Whether ``read_json`` takes a text anywhere, whatever this environment raises.

    Args:
        text: JSON.
        data: What it was written of.
    """
    most = _VALUES + len(text) // _BYTES_A_VALUE
    if _values(text, most) > most:
        return False
    return len(text) <= MAX_DEPTH or _openings(text) <= MAX_DEPTH or is_shallow(data)


_YAML = (
    ("null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    ("bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")),
    ("int", re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789")),
    (
        "float",
        re.compile(
            r"^(?:[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?"
            r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
        ),
        list("-+.0123456789"),
    ),
)


def know_json(kind: Any, *, also: Any = None) -> None:
    """Let a loader of YAML know the words of JSON alone: ``on`` and dates are texts.

    Args:
        kind: The class of the loader, or of a dumper.
        also: A class whose words it knows as well, so that a dumper puts them in quotes.
    """
    known = {} if also is None else also.yaml_implicit_resolvers
    kind.yaml_implicit_resolvers = {first: list(words) for first, words in known.items()}
    for name, pattern, first in _YAML:
        kind.add_implicit_resolver(f"tag:yaml.org,2002:{name}", pattern, first)


_DIRECTIVE = re.compile(r"(?<![^\n\r\x85\u2028\u2029\ufeff])%(?!YAML\b)")
_MOST_ANCHORS = 1_000


def read_yaml(text: str, loader: Any, *, least: int, levels: int = MAX_DEPTH) -> Any:
    """The data of a YAML text; one that would grow, or break its parser, is refused before that.

    Aliases are refused with it: a few lines of them stand for millions of values. So are directives
    other than ``%YAML``: PyYAML compares each with all before it.

    Args:
        text: The document.
        loader: The class that is to load it.
        least: How many values any document may hold.
        levels: How deep it may be nested.

    Raises:
        ReadingLimitError: It is refused; a ``ValueError``.
        ValueError: A value is none of its type, such as ``!!bool maybe``.
        yaml.YAMLError: It is no YAML.
    """
    import yaml

    if (found := _DIRECTIVE.search(text)) is not None:
        line = text.count("\n", 0, found.start()) + 1
        raise ReadingLimitError(
            f"line {line}: no line may begin with '%'; indent it, or leave it out"
        )
    most, depth, count, anchors = 2 * value_limit(len(text), least=least), 0, 0, 0
    for event in yaml.parse(text, Loader=loader):
        count += isinstance(event, yaml.NodeEvent)  # values and keys
        if count > most:
            raise _too_much(f"it holds more than {most:,} values")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > levels:
            raise _too_deep()
        if isinstance(event, yaml.AliasEvent):
            raise ReadingLimitError(
                f"'*{event.anchor}' stands for another part of the file; write that part out"
            )
        anchors += getattr(event, "anchor", None) is not None
        if anchors > _MOST_ANCHORS:
            raise ReadingLimitError(f"it marks more than {_MOST_ANCHORS:,} parts with '&'")
    try:
        return yaml.load(text, Loader=loader)  # noqa: S506 - callers give subclasses of the safe one
    except (AttributeError, LookupError, TypeError) as error:  # of a tag and what stands behind it
        raise ValueError(f"a value is none of its type ({error})") from error


def is_shallow(data: object, levels: int = MAX_DEPTH) -> bool:
    """Whether decoded JSON is nested no deeper than that many levels; takes no recursion."""
    level = [data]
    for _ in range(levels):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below.extend(value.values())
            elif isinstance(value, list | tuple):
                below.extend(value)
        if not below:
            return True
        level = below
    return False


def _openings(text: str | bytes) -> int:
    if isinstance(text, str):
        return text.count("[") + text.count("{")
    return text.count(b"[") + text.count(b"{")


def _separators(text: str | bytes) -> int:
    return _openings(text) + (text.count(",") if isinstance(text, str) else text.count(b","))


def _factor() -> int:
    written = os.environ.get(LIMIT_VARIABLE) or "1"
    if not written.isdecimal() or not 0 < int(written[:10]) <= 1_000_000:
        raise UsageError(
            f"{LIMIT_VARIABLE} is {written[:40]!r}; give a whole number, such as 10 to read files "
            "ten times as large"
        )
    return int(written)


def _too_much(what: str) -> ReadingLimitError:
    return ReadingLimitError(
        f"{what}; a file that you trust is read with {LIMIT_VARIABLE}=10 in the environment"
    )


def _too_deep() -> ReadingLimitError:
    return ReadingLimitError(f"it is nested too deeply, deeper than {MAX_DEPTH} levels")
