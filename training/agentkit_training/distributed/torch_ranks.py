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
        import torch
        import torch.distributed as dist

        own = _written(value)
        sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(self.world)]
        dist.all_gather(sizes, torch.tensor([len(own)]), group=self.group)
        lengths = [int(one) for one in sizes]
        padded = torch.zeros(max(lengths), dtype=torch.uint8)
        padded[: len(own)] = own
        found = [torch.empty_like(padded) for _ in lengths] if self.rank == 0 else None
        dist.gather(padded, found, group_dst=0, group=self.group)
        return [_read(one[:size]) for one, size in zip(found or (), lengths, strict=False)]

    def broadcast(self, value: Any) -> Any:
        """The value of rank 0, everywhere.

        Raises:
            ValueError: The value of rank 0 is not JSON data; raised there alone.
        """
        import torch
        import torch.distributed as dist

        sent = _written(value) if self.rank == 0 else torch.empty(0, dtype=torch.uint8)
        size = torch.tensor([len(sent)])
        dist.broadcast(size, group_src=0, group=self.group)
        if self.rank:
            sent = torch.empty(int(size), dtype=torch.uint8)
        dist.broadcast(sent, group_src=0, group=self.group)
        return value if self.rank == 0 else _read(sent)


def _written(value: Any) -> torch.Tensor:
    import torch

    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return torch.frombuffer(bytearray(text, "ascii"), dtype=torch.uint8)


def _read(written: torch.Tensor) -> Any:
    return json.loads(bytes(written.numpy()))
