"""Running a tool's function: beside the event loop, and its result as JSON data and model text."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
_SHOWN = 300


TOOL_ERRORS = (Exception, SystemExit, BaseExceptionGroup)
"""What a tool may raise and fail by, where ``is_tool_error`` says so, too."""


def is_tool_error(error: BaseException) -> bool:
    """Whether an exception is a tool's failure, and no wish of somebody else to end.

    Example:
        >>> is_tool_error(SystemExit(1)), is_tool_error(KeyboardInterrupt())
        (True, False)
        >>> is_tool_error(BaseExceptionGroup("both", [ValueError(), SystemExit()]))
        True
    """
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if isinstance(one, BaseExceptionGroup):
            waiting.extend(one.exceptions)
        elif not isinstance(one, Exception | SystemExit):
            return False
    return True


async def run_in_daemon_thread(function: Callable[[], T]) -> T:
    """Await ``function`` in a daemon thread of its own.

    ``asyncio.to_thread`` is not used because its pool is joined when the loop closes: one tool
    that hangs would keep the program from ending long after its timeout was reported. A thread
    whose caller was cancelled is abandoned; its result is dropped.

    Raises:
        BaseException: Whatever ``function`` raises, unchanged.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(value: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)  # type: ignore[arg-type]  # no error means there is a value

    def work() -> None:
        value: T | None = None
        error: BaseException | None = None
        try:
            value = context.run(function)
        except StopIteration as stop:
            # A future refuses StopIteration, because it would end the awaiting coroutine.
            error = RuntimeError(f"the function raised StopIteration({stop})")
        except BaseException as raised:  # noqa: BLE001 - carried over to the awaiting task
            error = raised
        if not loop.is_closed():
            _post(loop, lambda: deliver(value, error))

    threading.Thread(target=work, name="agentkit-tool", daemon=True).start()
    return await future


def _post(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        if not loop.is_closed():  # closed between the check and the call: nobody waits any more
            raise


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
