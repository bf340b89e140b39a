"""``Ranks``: the processes of a run, as far as what they decide together needs to know of them."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from agentkit_training.errors import PeerError, TrainingError
from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    import torch
    from torch.distributed import ProcessGroup, TCPStore  # type: ignore[attr-defined]  # public


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

_PATIENCE = timedelta(minutes=30)


@dataclass(frozen=True, kw_only=True, slots=True)
class TorchRanks:
    """Messages of the processes of one run; never pickles, so that nothing foreign is run.

    Attributes:
        group: Of gloo, for these messages alone: they do not come between gradients.
        rank: Which process this is, from 0.
        world: How many there are.
    """

    group: ProcessGroup
    rank: int
    world: int

    def gather(self, value: Any) -> Sequence[Any]:
        """The values of all processes in order, at rank 0; nothing elsewhere.

        Raises:
            ValueError: The value is not JSON data.
        """
        import torch
        import torch.distributed as dist

        own = _written(value)
        sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(self.world)]
        dist.all_gather(sizes, torch.tensor([len(own)]), group=self.group)
        most = max(map(int, sizes))
        frames = [_tensor(bytes(most)) for _ in range(self.world)] if self.rank == 0 else None
        dist.gather(_tensor(own.ljust(most)), frames, group_dst=0, group=self.group)
        return [json.loads(one.numpy().tobytes()) for one in frames] if frames else ()

    def broadcast(self, value: Any) -> Any:
        """The value of rank 0, everywhere.

        Raises:
            ValueError: The value of rank 0 is not JSON data; raised there alone.
        """
        import torch
        import torch.distributed as dist

        sent = _written(value) if self.rank == 0 else b""
        size = torch.tensor([len(sent)])
        dist.broadcast(size, group_src=0, group=self.group)
        text = _tensor(sent or bytes(int(size)))
        dist.broadcast(text, group_src=0, group=self.group)
        return value if self.rank == 0 else json.loads(text.numpy().tobytes())


def _written(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")


def _tensor(text: bytes) -> torch.Tensor:
    import torch

    return torch.frombuffer(bytearray(text), dtype=torch.uint8)


def joined_ranks(*, on_cpu: bool = True, patience: timedelta = _PATIENCE) -> Ranks:
    """The processes that train together: those of ``torchrun``, or this one alone.

    Call it once, before the engine is made; TRL takes up the process group that it finds.

    Args:
        on_cpu: Whether gradients are exchanged on the CPU alone; else NCCL carries those of GPUs.
        patience: How long a process waits for the others before it gives up.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        return ALONE
    import torch
    import torch.distributed as dist

    if not on_cpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    if not dist.is_initialized():
        dist.init_process_group("gloo" if on_cpu else "cpu:gloo,cuda:nccl", timeout=patience)
    group = dist.new_group(backend="gloo", timeout=patience)
    return TorchRanks(group=group, rank=dist.get_rank(), world=dist.get_world_size())


def end_together() -> None:
    """End this process with status 0, once all have come here; nothing without others.

    Call it last, with everything written. The interpreter is not taken down: DDP keeps gloo's
    threads, and about one process in ten aborts on them with its work done.
    """
    if company()[1] < 2:
        return
    import torch.distributed as dist

    if not dist.is_initialized():  # a dry run
        return
    dist.barrier()
    if dist.get_backend() != "gloo":
        dist.destroy_process_group()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def left_ranks() -> None:
    """Leave the process group after an error, when others may be gone; nothing without one.

    Gloo's threads must not outlive the interpreter, which aborts the process then. NCCL would wait
    for the others, and is left as it is.
    """
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized() and dist.get_backend() == "gloo":
        dist.destroy_process_group()


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


def added_up(tensors: Iterable[torch.Tensor | None], ranks: Ranks) -> None:
    """Put into each tensor the sum over all processes; where it is None, it is none in all."""
    if ranks.world > 1:
        import torch.distributed as dist

        for one in tensors:
            if one is not None:
                dist.all_reduce(one)


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
    """Whether this process is the one to tell of an error: of those that failed by themselves one.

    Where all of them only follow from a process that is gone, ``torchrun`` tells of that one.
    """
    store = None if is_consequence(error) else _store()
    try:
        return not is_consequence(error) and (store is None or int(store.add(_KEY, 1)) == 1)
    except RuntimeError:  # the store went with the process that held it
        return True


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
