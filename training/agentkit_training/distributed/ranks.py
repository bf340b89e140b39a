"""``Ranks``: the processes of a run, as far as what they decide together needs to know of them."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from agentkit_training.errors import PeerError, TrainingError
from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    from torch.distributed import TCPStore  # type: ignore[attr-defined]  # public, not said so


class Ranks(Protocol):
    """Processes that train one policy together. What travels between them is JSON data."""

    @property
    def rank(self) -> int:
        """Which process this is, from 0; 0 decides and writes."""
        ...

    @property
    def world(self) -> int:
        """How many there are."""
        ...

    def gather(self, value: Any) -> Sequence[Any]:
        """The values of all processes in order, at rank 0; nothing elsewhere."""
        ...

    def broadcast(self, value: Any) -> Any:
        """The value of rank 0, everywhere."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Alone:
    """One process."""

    rank: int = 0
    world: int = 1

    def gather(self, value: Any) -> Sequence[Any]:
        """The one value."""
        return (value,)

    def broadcast(self, value: Any) -> Any:
        """The value."""
        return value


ALONE = Alone()
"""The one process of most runs."""


def check_weights(policy: Policy, ranks: Ranks) -> None:
    """Compare what was trained, bit by bit.

    Each process changed its own copy by the gradient of all; where copies differ, each went its own
    way, and what rank 0 would hand over is a part of the run.

    Raises:
        TrainingError: They differ; raised in all processes.
    """
    if ranks.world == 1:
        return
    told = ranks.broadcast(ranks.gather(weights_digest(policy)))
    if len(set(told)) > 1:
        by_rank = ", ".join(f"rank {rank} {one[:12]}" for rank, one in enumerate(told))
        raise TrainingError(
            f"the processes came to different weights: {by_rank}. Nothing is handed over; go on "
            "from the last checkpoint, on machines of one kind"
        )


def weights_digest(policy: Policy) -> str:
    """SHA-256 of the weights that are trained, in hexadecimal."""
    import torch

    found = hashlib.sha256()
    for one in policy.trainable:
        found.update(one.detach().cpu().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


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
