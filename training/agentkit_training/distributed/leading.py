"""``led``: rank 0 does what must be done once, and the others wait for how it ended."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from agentkit_training.distributed.ranks import Ranks
from agentkit_training.errors import PeerError

T = TypeVar("T")

Beat = Callable[[], None]
"""Called by long work now and then: between two calls the others wait with a limit of time."""

_BUSY, _DONE, _FAILED = "busy", "done", "failed"


def led(ranks: Ranks, work: Callable[[Beat], T]) -> T | None:
    """Have rank 0 do something for all, such as writing a file.

    Args:
        ranks: The processes.
        work: Called at rank 0 alone.

    Returns:
        What ``work`` returned, at rank 0; None elsewhere.

    Raises:
        PeerError: Rank 0 failed; raised elsewhere, while rank 0 raises its own error.
    """
    if ranks.rank:
        _wait(ranks)
        return None
    try:
        done = work(lambda: _tell(ranks, _BUSY))
    except BaseException as error:
        with suppress(RuntimeError):  # where they are gone already, the error at hand counts
            _tell(ranks, _FAILED, f"{type(error).__name__}: {error}")
        raise
    _tell(ranks, _DONE)
    return done


def in_turn(ranks: Ranks, load: Callable[[], T]) -> T:
    """What every process loads, rank 0 first: what it fetches the others find.

    Raises:
        PeerError: Rank 0 could not; raised elsewhere.
    """
    first = led(ranks, lambda _: load())
    return load() if first is None else first


def _tell(ranks: Ranks, state: str, error: str = "") -> None:
    ranks.broadcast({"state": state, "error": error})


def _wait(ranks: Ranks) -> None:
    while (heard := ranks.broadcast(None))["state"] == _BUSY:
        pass
    if heard["state"] == _FAILED:
        raise PeerError(f"rank 0 failed: {heard['error']}")
