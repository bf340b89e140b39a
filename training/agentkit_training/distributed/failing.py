"""Which of several processes tells of an error: the one that failed first.

When a process ends, all that wait for it fail too, with errors that say nothing to the user. So
the first to fail takes the word, at the store through which ``torchrun`` lets processes meet; for
the others it is enough to end.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from agentkit_training.errors import PeerError

if TYPE_CHECKING:
    from torch.distributed import TCPStore  # type: ignore[attr-defined]  # public, not said so

_KEY = "agentkit/failed"
_SECONDS_TO_REACH_STORE = 10.0
_SECONDS_FOR_CAUSE = 10.0
_PAUSE = 0.1
_LOST = ("closed by peer", "reset by peer", "Broken pipe", "timed out", "Timed out", "NCCL")
"""How messages of torch begin to say that another process is gone; they have no type of their
own."""


def company() -> tuple[int, int]:
    """Rank and number of processes, as ``torchrun`` says before anything is joined."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def was_interrupted(error: BaseException) -> bool:
    """Whether Ctrl-C is behind an error: where processes wait for each other, errors follow it."""
    return any(isinstance(one, KeyboardInterrupt) for one in _chain(error))


def is_consequence(error: BaseException) -> bool:
    """Whether an error says no more than that another process is gone."""
    return any(
        isinstance(one, PeerError)
        or (isinstance(one, RuntimeError) and any(words in str(one) for words in _LOST))
        for one in _chain(error)
    )


def has_the_word(error: BaseException) -> bool:
    """Whether this process is the one to tell of an error; true in one process alone.

    A consequence waits a while for the process that failed by itself. Where the store can not be
    reached, errors of one's own are told, and consequences are not.
    """
    store = _store()
    if store is None:
        return not is_consequence(error)
    try:
        if is_consequence(error):
            _wait_for_cause(store)
        return int(store.add(_KEY, 1)) == 1
    except RuntimeError:  # the store went with the process that held it
        return not is_consequence(error)


def _wait_for_cause(store: TCPStore) -> None:
    until = time.monotonic() + _SECONDS_FOR_CAUSE
    while time.monotonic() < until and not store.check([_KEY]):
        time.sleep(_PAUSE)


def _store() -> TCPStore | None:
    from torch.distributed import TCPStore  # type: ignore[attr-defined]  # public, not said so

    try:
        return TCPStore(
            os.environ["MASTER_ADDR"],
            int(os.environ["MASTER_PORT"]),
            is_master=False,
            timeout=timedelta(seconds=_SECONDS_TO_REACH_STORE),
        )
    except (KeyError, ValueError, RuntimeError):
        return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error with those that it came from."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            left += [one.__cause__, one.__context__]
