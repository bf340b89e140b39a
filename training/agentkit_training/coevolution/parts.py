"""What a part of a run is, as JSON: a reward, a weighting, an interface, with its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

from agentkit.messages import JsonValue


def described(part: object) -> JsonValue:
    """A part of a run, so that two that behave otherwise are told apart, and equal ones are not.

    A function is its qualified name: what it closes over is seen by nobody, so that a reward with
    settings is better a dataclass. Of a dataclass all fields count that its ``repr`` shows, without
    what it has learned (``state()``), which is a checkpoint's business.

    Args:
        part: A function, a dataclass, or plain data; None for none.

    Returns:
        Plain data that is equal after it went through JSON.

    Example:
        >>> from agentkit_training.weighting import FixedWeighting
        >>> sorted(described(FixedWeighting(utilities={}, clip=(0.5, 2.0))).items())
        [('clip', [0.5, 2.0]), ('kind', 'agentkit_training.weighting.fixed.FixedWeighting'), \
('utilities', {})]
    """
    found: JsonValue
    match part:
        case None:
            found = ""
        case str() | int() | float():
            found = part
        case Mapping():
            found = {str(name): described(one) for name, one in part.items()}
        case set() | frozenset():
            found = sorted((described(one) for one in part), key=str)
        case list() | tuple():
            found = [described(one) for one in part]
        case partial():
            given = {"given": described(part.args)} if part.args else {}
            found = {"kind": described(part.func), **given, **_all(part.keywords)}
        case _ if is_dataclass(part) and not isinstance(part, type):
            found = {"kind": _name(type(part)), **_all(_shown(part))}
        case _:
            found = _name(part if hasattr(part, "__qualname__") else type(part))
    return found


def _all(parts: Mapping[str, object]) -> dict[str, JsonValue]:
    return {name: described(one) for name, one in parts.items()}


def _shown(part: Any) -> dict[str, object]:
    learned = set(part.state()) if hasattr(part, "state") else set()
    shown = (one.name for one in fields(part) if one.repr and one.name not in learned)
    return {name: getattr(part, name) for name in shown}


def _name(kind: Any) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
