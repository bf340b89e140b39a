"""``TorchRanks``: processes that ``torchrun`` started, exchanging JSON over gloo."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from agentkit_training.distributed.ranks import Alone, Ranks

if TYPE_CHECKING:
    import torch
    from torch.distributed import ProcessGroup

_PATIENCE = timedelta(minutes=30)

_FRAME = 16_384
"""Bytes of the first message of a text. What fits needs no second one, and up to this size a
message takes hardly longer than an empty one."""

_HEAD = 8
"""How many of them say how long the text is."""

_ROOM = _FRAME - _HEAD


def joined_ranks(*, on_cpu: bool = True, patience: timedelta = _PATIENCE) -> Ranks:
    """The processes that train together: those of ``torchrun``, or this one alone.

    Call it once, before the engine is made; TRL takes up the process group that it finds.

    Args:
        on_cpu: Whether gradients are exchanged on the CPU alone; else NCCL carries those of GPUs.
        patience: How long a process waits for the others before it gives up.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        return Alone()
    import torch.distributed as dist

    if not on_cpu:
        import torch

        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    if not dist.is_initialized():
        dist.init_process_group("gloo" if on_cpu else "cpu:gloo,cuda:nccl", timeout=patience)
    group = dist.new_group(backend="gloo", timeout=patience)
    return TorchRanks(group=group, rank=dist.get_rank(), world=dist.get_world_size())


def left_ranks() -> None:
    """Leave the process group, at the end of a run; nothing without one."""
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


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
        import torch.distributed as dist

        own = _written(value)
        frames = [_framed(b"") for _ in range(self.world)] if self.rank == 0 else None
        dist.gather(_framed(own), frames, group_dst=0, group=self.group)
        if frames is not None:
            others = [self._received(rank, frames[rank]) for rank in range(1, self.world)]
            return [json.loads(text) for text in (own, *others)]
        if len(own) > _ROOM:
            dist.send(_tensor(own[_ROOM:]), group_dst=0, group=self.group)
        return ()

    def _received(self, rank: int, frame: torch.Tensor) -> bytes:
        """The text of another process, whose frame came; a long one sends the rest behind it."""
        import torch.distributed as dist

        length, start = _unframed(frame)
        if length <= _ROOM:
            return start
        rest = _tensor(bytes(length - _ROOM))
        dist.recv(rest, group_src=rank, group=self.group)
        return start + _bytes(rest)

    def broadcast(self, value: Any) -> Any:
        """The value of rank 0, everywhere.

        Raises:
            ValueError: The value of rank 0 is not JSON data; raised there alone.
        """
        import torch.distributed as dist

        sent = _written(value) if self.rank == 0 else b""
        frame = _framed(sent)
        dist.broadcast(frame, group_src=0, group=self.group)
        length, start = _unframed(frame)
        if length <= _ROOM:
            return value if self.rank == 0 else json.loads(start)
        rest = _tensor(sent[_ROOM:] or bytes(length - _ROOM))
        dist.broadcast(rest, group_src=0, group=self.group)
        return value if self.rank == 0 else json.loads(start + _bytes(rest))


def _written(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")


def _framed(text: bytes) -> torch.Tensor:
    """The first message of a text: its length, and as much of it as there is room for."""
    told = len(text).to_bytes(_HEAD, "big") + text[:_ROOM]
    return _tensor(told.ljust(_FRAME, b"\0"))


def _unframed(frame: torch.Tensor) -> tuple[int, bytes]:
    """The length of a text, and as much of it as its first message holds."""
    told = _bytes(frame)
    length = int.from_bytes(told[:_HEAD], "big")
    return length, told[_HEAD : _HEAD + length]


def _tensor(text: bytes) -> torch.Tensor:
    import torch

    return torch.frombuffer(bytearray(text), dtype=torch.uint8)


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.numpy().tobytes()
