"""The doctor's findings and their kinds."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "note"]
"""``error``: calls or whole requests fail. ``warning``: the model or the retriever is misled, or
tokens are wasted. ``note``: worth knowing; often fine as it is."""

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""The worst first."""

_LISTED = 4
_QUOTED = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """One thing that can be wrong with a tool.

    Attributes:
        code: Its name, as ``--check`` takes it.
        severity: How much it matters.
        title: What it is, in a few words.
        why: Why it matters, in a sentence.
        advice: What to do about it.
    """

    code: str
    severity: Severity
    title: str
    why: str
    advice: str


def _read_kinds() -> dict[str, Kind]:
    text = Path(__file__).with_name("kinds.toml").read_text(encoding="utf-8")
    return {code: Kind(code=code, **fields) for code, fields in tomllib.loads(text).items()}


KINDS: Mapping[str, Kind] = _read_kinds()
"""Everything that can be found, by code, in the order of the checks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing found in one tool, or in several together.

    Attributes:
        kind: What it is, why it matters, what to do.
        tools: The tools concerned; where they differ in part, the one to look at first.
        what: What was found, in a sentence with the values concerned.
        where: Places in the definition: ``summary``, ``parameters.city``, ``required``.
        tokens: Prompt tokens concerned, estimated.
    """

    kind: Kind
    tools: tuple[str, ...]
    what: str
    where: tuple[str, ...] = ()
    tokens: int = 0

    def to_json(self) -> dict[str, Any]:
        """The finding as a JSON object; empty parts are left out."""
        record: dict[str, Any] = {
            "code": self.kind.code,
            "severity": self.kind.severity,
            "tools": list(self.tools),
            "what": self.what,
            "why": self.kind.why,
            "advice": self.kind.advice,
        }
        if self.where:
            record["where"] = list(self.where)
        if self.tokens:
            record["tokens"] = self.tokens
        return record


def listed(names: Sequence[str], *, shown: int = _LISTED) -> str:
    """``a, b``; a long list is cut: ``a, b, c, d and 12 more``."""
    text = ", ".join(names[:shown])
    return f"{text} and {len(names) - shown:,} more" if len(names) > shown else text


def quoted(text: str, *, longest: int = _QUOTED) -> str:
    """``'text'`` on one line, its middle left out when it is long."""
    line = " ".join(text.split())
    if len(line) > longest:
        half = (longest - 3) // 2
        line = f"{line[:half].rstrip()} ... {line[-half:].lstrip()}"
    return repr(line)
