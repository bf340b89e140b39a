"""JSON data: canonical text (RFC 8785), digests, equality."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

_MAX_EXACT_INTEGER = 2**53 - 1
_FIRST_SURROGATE = "\ud800"
_MOST_BITS = 14_284  # 4,300 decimal digits, where Python stops to read and write them

_AS_PLAIN = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)
"""The standard library's encoder, in C. For data without floats and with keys below the
surrogates, where the order by code point is the order by UTF-16 unit, it writes what RFC 8785
asks, at a twentieth of the cost of ``rfc8785``."""


def canonical_json(value: Any) -> bytes:
    """Serialise ``value`` so that equal data give equal bytes (RFC 8785).

    Integers beyond ±(2**53 - 1), which RFC 8785 cannot carry, are written as strings with a
    trailing ``n``, as JavaScript writes them; real schemas do hold such bounds.

    Args:
        value: JSON data; tuples count as arrays.

    Raises:
        ValueError: The data hold something that JSON cannot, such as NaN.
    """
    if _is_plain(value):
        return _AS_PLAIN.encode(value).encode()
    import rfc8785

    try:
        return rfc8785.dumps(_exact(value))
    except rfc8785.CanonicalizationError as error:
        raise ValueError(f"not JSON data: {error}") from error


def digest(value: Any) -> str:
    """SHA-256 over the canonical JSON of ``value``, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def is_json(value: Any) -> bool:
    """Whether JSON in UTF-8 can write the value and read it back the same.

    Half of a surrogate pair it cannot write, nor what is not finite, nor an integer of more digits
    than Python reads.

    Example:
        >>> is_json({"a": [1, None]}), is_json(float("inf")), is_json({1: 2}), is_json(chr(0xD800))
        (True, False, False, False)
    """
    if type(value) is str:
        return not _holds_surrogate(value)
    if type(value) is int:
        return value.bit_length() <= _MOST_BITS
    if isinstance(value, float):
        return value - value == 0  # neither infinite nor NaN
    if isinstance(value, list):
        return all(map(is_json, value))
    if isinstance(value, dict):
        are_texts = all(isinstance(key, str) and not _holds_surrogate(key) for key in value)
        return are_texts and all(map(is_json, value.values()))
    return value is None or type(value) is bool


def same_json(left: Any, right: Any) -> bool:
    """Whether two values are the same JSON data: ``1`` equals ``1.0`` but not ``true``."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_json(left[k], right[k]) for k in left)
    return bool(left == right)


def json_key(value: Any) -> Hashable:
    """A key shared exactly by values that are the same JSON data (``same_json``)."""
    if isinstance(value, list):
        return ("list", *map(json_key, value))
    if isinstance(value, dict):
        return frozenset((name, json_key(item)) for name, item in value.items())
    return (value,) if isinstance(value, bool) else value  # `True == 1` in Python alone


def is_multiple(value: float, step: float) -> bool:
    """Whether a number is a multiple, by the digits as written: 19.99 is one of 0.01.

    Example:
        >>> is_multiple(19.99, 0.01), is_multiple(7, 2)
        (True, False)
    """
    if isinstance(step, int) and step > 0 and value % 1 == 0:
        return int(value) % step == 0
    are_finite = is_finite(value) and is_finite(step)
    return are_finite and step > 0 and exact(value) % exact(step) == 0


def exact(number: float) -> Fraction:
    """A number by its digits as written."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def is_finite(number: float) -> bool:
    """Whether a number is one to compare with, also an integer that no float can hold.

    Example:
        >>> is_finite(10**400), is_finite(float("inf"))
        (True, False)
    """
    return isinstance(number, int) or math.isfinite(number)


def _is_plain(value: Any) -> bool:
    """Whether ``_AS_PLAIN`` may write the value; whatever is unusual is left to ``rfc8785``."""
    kind = type(value)
    if kind is str:
        return not _holds_surrogate(value)
    if kind is dict:
        return all(map(_is_plain_key, value)) and all(map(_is_plain, value.values()))
    if kind is list or kind is tuple:
        return all(map(_is_plain, value))
    if kind is int:
        return bool(abs(value) <= _MAX_EXACT_INTEGER)
    return value is None or kind is bool


def _is_plain_key(key: Any) -> bool:
    return type(key) is str and (key.isascii() or max(key) < _FIRST_SURROGATE)


def _holds_surrogate(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _exact(value: Any) -> Any:
    if isinstance(value, str | bool) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) <= _MAX_EXACT_INTEGER else f"{value}n"
    if isinstance(value, Mapping):
        return {key: _exact(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_exact(item) for item in value]
    return value
