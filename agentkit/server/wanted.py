"""``wanted_settings``: how a client wants its answer generated, where the operator allows that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from agentkit.messages import JsonObject
from agentkit.models.base import ModelSettings
from agentkit.server.problem import Problem, invalid

_HOTTEST = 2
_LARGEST_SEED = 2**63


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_Field: TypeAlias = tuple[str, Callable[[Any], bool], str]

_LENGTH: _Field = ("max_tokens", lambda value: _is_whole(value) and value >= 1, "at least 1")

_FIELDS: Mapping[str, _Field] = {
    "temperature": (
        "temperature",
        lambda value: _is_number(value) and 0 <= value <= _HOTTEST,
        f"a number from 0 to {_HOTTEST}",
    ),
    "top_p": (
        "top_p",
        lambda value: _is_number(value) and 0 < value <= 1,
        "a number above 0, up to 1",
    ),
    "max_tokens": _LENGTH,
    "max_completion_tokens": _LENGTH,
    "seed": (
        "seed",
        lambda value: _is_whole(value) and -_LARGEST_SEED <= value < _LARGEST_SEED,
        "a whole number of 64 bits",
    ),
}
"""Fields of a request: the setting, whether a value will do, and what would."""

_NEVER_FOLLOWED = (
    "frequency_penalty",
    "logit_bias",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "reasoning_effort",
    "service_tier",
    "store",
    "verbosity",
)
"""Further fields that say how to generate; that is the agent's business."""


def not_honoured(record: JsonObject, *, takes_settings: bool) -> tuple[str, ...]:
    """Fields of a request that say how to generate, and make no difference.

    Args:
        record: The request.
        takes_settings: Whether ``wanted_settings`` are followed.
    """
    ignored = _NEVER_FOLLOWED if takes_settings else (*_NEVER_FOLLOWED, *_FIELDS)
    return tuple(sorted(name for name in ignored if record.get(name) is not None))


def wanted_settings(record: JsonObject) -> ModelSettings | Problem | None:
    """The settings in a request; None when it has none."""
    chosen: dict[str, Any] = {}
    for name, (setting, is_good, wanted) in _FIELDS.items():
        value = record.get(name)
        if value is None:
            continue
        if not is_good(value):
            return invalid(f"{name} must be {wanted}", param=name)
        chosen[setting] = value
    return ModelSettings(**chosen) if chosen else None
