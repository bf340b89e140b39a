"""What a simulated tool returned, as the result of its call."""

from __future__ import annotations

import json
from typing import Any


def result_of(value: object) -> Any:
    """A returned value as JSON data, or as upstream's text where that is no JSON object.

    Upstream (``execute_multi_turn_func_call`` in
    ``bfcl_eval/eval_checker/multi_turn_eval/multi_turn_utils.py``) has a text for each result: text
    as it is; a dict as JSON, or as Python writes it where JSON can not hold it; anything else as
    Python writes it, so ``None`` and lists too. Here a dict stays data, so that an episode can be
    read; the model reads the same JSON, without the spaces. Everything else is upstream's text.

    The data is a copy: what the simulator does to its tables later does not change it.

    Raises:
        ValueError: The value is an integer of more digits than Python writes.
    """
    if isinstance(value, str):
        return value
    if type(value) is not dict:
        return str(value)
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return str(value)
    try:
        return json.loads(text, parse_constant=_refuse)
    except _NoJsonError:  # NaN or infinity, which only Python takes for JSON
        return text


class _NoJsonError(ValueError):
    """The text holds what JSON does not have."""


def _refuse(constant: str) -> None:
    raise _NoJsonError(constant)
