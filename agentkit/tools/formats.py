"""The values of ``format`` that are checked, each as a plain function over the text.

The list is ours, so that a call is judged alike on every machine (jsonschema's own checks depend
on which optional packages happen to be installed). An offset is optional in ``date-time`` and
``time``: models write local times, and Python's types hold them. Other formats are hints.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from types import MappingProxyType

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME = re.compile(r"\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?([Zz]|[+-]\d{2}:\d{2})?", re.ASCII)
_DATE_TIME = re.compile(_DATE.pattern + "[Tt ]" + _TIME.pattern, re.ASCII)
_DURATION = re.compile(
    r"[+-]?P(?=.)(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?)", re.ASCII
)
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_URI = re.compile(r"[a-z][a-z0-9+.-]*:[^\s<>\"]+", re.IGNORECASE | re.ASCII)


def _parses(shape: re.Pattern[str], parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        if shape.fullmatch(text) is None:
            return False
        try:
            parse(text.upper())
        except ValueError:
            return False
        return True

    return check


def _looks_like(shape: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: shape.fullmatch(text) is not None


def _is_address(version: int) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        from ipaddress import IPv4Address, IPv6Address

        try:
            IPv4Address(text) if version == 4 else IPv6Address(text)
        except ValueError:
            return False
        return True

    return check


FORMATS: Mapping[str, Callable[[str], bool]] = MappingProxyType(
    {
        "date": _parses(_DATE, date.fromisoformat),
        "date-time": _parses(_DATE_TIME, datetime.fromisoformat),
        "duration": _looks_like(_DURATION),
        "email": _looks_like(_EMAIL),
        "ipv4": _is_address(4),
        "ipv6": _is_address(6),
        "time": _parses(_TIME, time.fromisoformat),
        "uri": _looks_like(_URI),
        "uuid": _looks_like(_UUID),
    }
)
"""The check of each format by its name in JSON Schema."""

FORMAT_EXAMPLES: Mapping[str, str] = MappingProxyType(
    {
        "date": "2026-05-31",
        "date-time": "2026-05-31T14:30:00",
        "duration": "PT1H30M",
        "email": "ada@example.org",
        "ipv4": "192.0.2.1",
        "ipv6": "2001:db8::1",
        "time": "14:30:00",
        "uri": "https://example.org/",
        "uuid": "123e4567-e89b-12d3-a456-426614174000",
    }
)
"""A value of each format, for messages."""
