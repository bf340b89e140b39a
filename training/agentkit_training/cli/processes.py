"""A command in several processes: ``torchrun`` starts them, and they show as one."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from agentkit.cli.boundary import EXIT_INTERRUPTED
from agentkit.cli.output import say
from agentkit_training.cli.showing import show_result, shown_steps
from agentkit_training.distributed.failing import (
    company,
    has_the_word,
    is_consequence,
    was_interrupted,
)
from agentkit_training.distributed.ranks import Ranks
from agentkit_training.distributed.torch_ranks import joined_ranks, left_ranks
from agentkit_training.errors import TrainingError
from agentkit_training.runs.directory import PROVENANCE, RunDirectory
from agentkit_training.runs.records import Listener, ignore

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
