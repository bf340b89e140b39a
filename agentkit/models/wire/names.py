"""Tool names on the wire: providers accept few characters, libraries accept any name."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable

LONGEST_NAME = 64
"""Longest tool name, in characters, that OpenAI and Anthropic both accept."""

_ACCEPTED = re.compile(rf"[a-zA-Z0-9_-]{{1,{LONGEST_NAME}}}")
_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")
_DIGEST_LENGTH = 8


class WireNames:
    """A one-to-one mapping between the names of offered tools and names that providers accept.

    An accepted name stays as it is. Any other has its refused characters replaced by ``_`` and is
    cut to 64; when that is not unique, a part of the name's SHA-256 is appended. The outcome
    depends on the set of names alone, never on their order.

    Example:
        >>> names = WireNames(["math.factorial", "get_time"])
        >>> names.encode("math.factorial"), names.encode("get_time")
        ('math_factorial', 'get_time')
        >>> names.decode("math_factorial")
        'math.factorial'
    """

    __slots__ = ("_decoded", "_encoded")

    def __init__(self, names: Iterable[str]) -> None:
        self._encoded = _assign(set(names))
        self._decoded = {wire: name for name, wire in self._encoded.items()}

    def encode(self, name: str) -> str:
        """The wire name of a tool; one that is not offered (any more) is only made acceptable."""
        return self._encoded.get(name) or _acceptable(name)

    def decode(self, wire_name: str) -> str:
        """The tool that a model means; an unknown name comes back as it is."""
        return self._decoded.get(wire_name, wire_name)


def _assign(names: set[str]) -> dict[str, str]:
    encoded = {name: name for name in names if _ACCEPTED.fullmatch(name)}
    others = sorted(names - encoded.keys())
    if not others:
        return encoded
    wanted = Counter(map(_acceptable, others))
    taken = set(encoded)
    for name in others:
        wire = _acceptable(name)
        if wire in encoded or wanted[wire] > 1:
            wire = _with_digest(name, taken | wanted.keys())
        taken.add(wire)
        encoded[name] = wire
    return encoded


def _acceptable(name: str) -> str:
    return _REFUSED.sub("_", name)[:LONGEST_NAME] or "_"


def _with_digest(name: str, taken: set[str]) -> str:
    stem = _acceptable(name)[: LONGEST_NAME - _DIGEST_LENGTH - 1]
    seed = name.encode("utf-8", "surrogatepass")
    while True:
        seed = hashlib.sha256(seed).hexdigest().encode()
        wire = f"{stem}_{seed[:_DIGEST_LENGTH].decode()}"
        if wire not in taken:  # somebody may own that very name; then the digest's digest
            return wire
