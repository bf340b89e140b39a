"""What a tool returned, as JSON data and as the text that the model reads."""

from __future__ import annotations

import json
from typing import Any

_SHOWN = 300


class UnserialisableError(ValueError):
    """A tool returned something that JSON can not hold."""


def encode_result(value: object) -> tuple[Any, str]:
    """JSON data and model text of a returned value.

    Text is passed on as it is; plain data become compact JSON. Pydantic models, dataclasses,
    dates, decimals, enums, sets and paths are converted first.

    Raises:
        UnserialisableError: JSON can not hold the value: NaN, a cycle, an open file.
    """
    if isinstance(value, str):
        return value, value
    try:
        return value, _dumps(value)
    except TypeError:  # not plain data
        converted = _converted(value)
        return converted, converted if isinstance(converted, str) else _dumps(converted)
    except (ValueError, RecursionError) as error:
        raise UnserialisableError(_complaint(value, error)) from error


def described(error: BaseException) -> str:
    """Kind and text of an exception, whose text may be anything."""
    try:
        text = str(error)
    except Exception as broken:  # noqa: BLE001 - the text is code of whoever wrote the exception
        text = f"its text can not be read, {type(broken).__name__}"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def shortened(text: str) -> str:
    """A text that fits a message."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _converted(value: object) -> Any:
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        converted = to_jsonable_python(value, inf_nan_mode="constants")
        json.dumps(converted, allow_nan=False)
    except (PydanticSerializationError, ValueError, TypeError, RecursionError) as error:
        raise UnserialisableError(_complaint(value, error)) from error
    return converted


def _complaint(value: object, error: Exception) -> str:
    return f"It returned a {type(value).__name__} that JSON can not hold ({str(error)[:200]})"
