"""JSON lines, plain or compressed: each line becomes an object, or a reason why it is none."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentkit.errors import DatasetError, ReadingLimitError
from agentkit.messages import JsonObject
from agentkit.reading import read_json, unpacked

_LONGEST_REASON = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class JsonLine:
    """One line of a file.

    Attributes:
        number: Its number, from 1.
        record: The object that it holds; None when it holds none.
        reason: Why it holds none; empty when it does.
    """

    number: int
    record: JsonObject | None = None
    reason: str = ""


def read_json_lines(path: Path) -> Iterator[JsonLine]:
    """The lines of a file that are not blank, one by one.

    JSON is read more strictly than Python's module does by itself: NaN and infinite numbers, a key
    that is written twice, and text that is no Unicode are reasons, since no two programs agree
    about what they mean.

    Args:
        path: JSON lines, in UTF-8; unpacked on the way when its name ends in ``.gz``.

    Raises:
        DatasetError: The file is absent, is a folder, or can not be read or unpacked.
    """
    for number, line in enumerate(_content(path).split(b"\n"), start=1):
        if line.strip():
            yield _line(number, line)


def as_json_value(value: object) -> Any:
    """``value`` itself, once it is known to be JSON data that every program can read.

    Raises:
        ValueError: It holds NaN, an infinite number, half a surrogate pair, or another object.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    text.encode("utf-8")
    return value


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except (FileNotFoundError, IsADirectoryError) as error:
        what = "is a folder" if isinstance(error, IsADirectoryError) else "does not exist"
        raise DatasetError(f"{path} {what}; give a file with one JSON object a line") from error
    except OSError as error:
        raise DatasetError(f"{path} can not be read: {error}") from error
    if path.suffix == ".gz":
        try:
            content = unpacked(content, is_packed=True)
        except (EOFError, OSError, zlib.error, ReadingLimitError) as error:
            raise DatasetError(f"{path} can not be unpacked: {error}") from error
    return content.removeprefix(b"\xef\xbb\xbf")


def _line(number: int, line: bytes) -> JsonLine:
    try:
        record = read_json(line.decode("utf-8"), decode=_STRICT.decode)
        as_json_value(record)
    except UnicodeDecodeError as error:
        return JsonLine(number=number, reason=f"not UTF-8 text: {error}")
    except UnicodeEncodeError:
        return JsonLine(number=number, reason="a text holds half of a surrogate pair")
    except json.JSONDecodeError as error:
        return JsonLine(number=number, reason=f"not JSON: {error.msg} at column {error.colno}")
    except (ValueError, RecursionError) as error:
        return JsonLine(number=number, reason=f"not JSON: {error}"[:_LONGEST_REASON])
    if not isinstance(record, dict):
        kind = "a list" if isinstance(record, list) else f"{record!r:.40}"
        return JsonLine(number=number, reason=f"expected a JSON object, got {kind}")
    return JsonLine(number=number, record=record)


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        message = f"{', '.join(map(repr, twice))} is given twice in one object"
        raise ValueError(message)
    return record


def _refused_constant(constant: str) -> Any:
    message = f"{constant} is no JSON number; leave it out, or write null"
    raise ValueError(message)


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        message = f"the number {digits:.40} is too large"
        raise ValueError(message)
    return value


_STRICT = json.JSONDecoder(
    object_pairs_hook=_unique_pairs, parse_constant=_refused_constant, parse_float=_finite
)
