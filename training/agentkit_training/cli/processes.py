"""A command in several processes: ``torchrun`` starts them, and they show as one."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentkit.cli.boundary import EXIT_INTERRUPTED
from agentkit.cli.output import say
from agentkit_training.cli.console import show_result, shown_steps
from agentkit_training.distributed.ranks import (
    Alone,
    Ranks,
    company,
    has_the_word,
    is_consequence,
    was_interrupted,
)
from agentkit_training.errors import TrainingError
from agentkit_training.runs.directory import PROVENANCE, RunDirectory
from agentkit_training.runs.records import Listener, ignore

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


_SECONDS_TO_TELL = 3.0
"""How long a process that ends without a word leaves the one that has it: ``torchrun`` ends all
as soon as one is gone."""


@contextmanager
def told_once() -> Iterator[None]:
    """Let one process tell of an error, the first that failed; the others end quietly.

    Of a run that Ctrl-C ended the folder is told as well, and how to go on.
    """
    rank, world = company()
    if world == 1:
        with _told_where():
            yield
        return
    try:
        with _told_where():
            yield
    except click.exceptions.Exit:
        raise
    except BaseException as error:
        if was_interrupted(error):
            if rank:
                raise click.exceptions.Exit(EXIT_INTERRUPTED) from None
            raise KeyboardInterrupt from error
        if not has_the_word(error):
            time.sleep(_SECONDS_TO_TELL)
            raise click.exceptions.Exit(1) from None
        if rank:
            say(f"In process {rank} of {world}:")
        if is_consequence(error):
            raise TrainingError(
                f"a process of this run ended without a word, perhaps for lack of memory ({error})"
                "; look at the system's log, then go on with --resume"
            ) from error
        raise


def shown_run(
    job: Callable[[Listener, Ranks], RunDirectory], *, device: str, steps: int | None = None
) -> None:
    """Run a job in all processes; rank 0 shows its records and what came of it.

    Args:
        job: Given whom to tell of records, and the processes.
        device: Where the policy is.
        steps: How many training steps are expected; None when that is not known.
    """
    with _joined(device=device) as ranks:
        with _shown_at_first(ranks, steps=steps) as tell:
            run = job(tell, ranks)
        if ranks.rank == 0:
            show_result(run)


@contextmanager
def _told_where() -> Iterator[None]:
    """Say in which folder the run is that Ctrl-C ended, where there is one, and how it goes on."""
    try:
        yield
    except BaseException as error:
        rank, _ = company()
        folder = _folder_of_run() if was_interrupted(error) and not rank else None
        if folder is not None:
            say(f"\nThe run is in {folder}; give the same command with --resume to go on with it.")
        raise


def _folder_of_run() -> Path | None:
    """Where the command under way keeps its run; None where there is none that goes on."""
    context = click.get_current_context(silent=True)
    given = context.params if context else {}
    folder: Path | None = given.get("folder") if "resume" in given else None
    return folder if folder is not None and (folder / PROVENANCE).is_file() else None


@contextmanager
def _joined(*, device: str) -> Iterator[Ranks]:
    """The processes of this run, which rank 0 speaks for.

    Args:
        device: Where the policy is.
    """
    ranks = joined_ranks(on_cpu=device == "cpu")
    if ranks.rank:
        _quiet()
    yield ranks
    left_ranks()  # not after an error: NCCL would wait for those that are gone


@contextmanager
def _shown_at_first(ranks: Ranks, *, steps: int | None) -> Iterator[Listener]:
    """What shows the records of a run, at rank 0; see ``shown_steps``."""
    if ranks.rank:
        yield ignore
        return
    with shown_steps(steps=steps) as tell:
        yield tell


def _quiet() -> None:
    """Keep what libraries say to rank 0, which says it as well."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    warnings.simplefilter("ignore")
