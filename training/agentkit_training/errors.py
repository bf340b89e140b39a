"""What can go wrong in training, beside the errors of ``agentkit``.

* AgentKitError
    * TrainingError              a run can not go on
        * PolicyError            weights or tokenizer can not be used
        * DivergedError          the loss is not a number; the last good checkpoint is kept
        * CheckpointError        a checkpoint can not be written, read or gone on with
        * ExportError            what was trained can not be handed to the runtime, or not be read
        * LibraryMismatchError   processes that train together hold different libraries
        * PeerError              another process of the run failed; its own message says why
"""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.errors import AgentKitError, UsageError


class TrainingError(AgentKitError):
    """Training can not go on; the message says why and what to do."""


class PolicyError(TrainingError):
    """Weights or a tokenizer can not be loaded, or not be used as asked."""


class DivergedError(TrainingError):
    """The loss or the gradient is not a number.

    Attributes:
        step: The optimiser step, from 0.
    """

    def __init__(self, message: str, *, step: int) -> None:
        self.step = step
        super().__init__(message)


class CheckpointError(TrainingError):
    """A checkpoint can not be written, can not be read, or belongs to another run."""


class ExportError(TrainingError):
    """An adapter, weights or a hand-over can not be written or read, or the parts do not fit."""


class LibraryMismatchError(TrainingError):
    """Processes that train together came to different libraries; prompts would differ.

    Attributes:
        digests: What each process holds, by rank.
    """

    def __init__(self, digests: Sequence[str]) -> None:
        self.digests = tuple(digests)
        told = ", ".join(f"rank {rank} {one[:12]}" for rank, one in enumerate(self.digests))
        super().__init__(
            f"the processes came to different libraries: {told}. Start all of them with the same "
            "library and the same release of agentkit, or go on from the last checkpoint"
        )


class PeerError(TrainingError):
    """Another process of the run failed, and this one can not go on without it.

    The process that failed tells of its error itself; see ``distributed.failing``.
    """


def check_least(record: object, *names: str, least: int = 1, section: str = "") -> None:
    """Refuse a record with a number that is too small.

    Args:
        record: Whose numbers.
        names: Which of its attributes.
        least: The smallest that is of use.
        section: What the record is called in a configuration; empty where it may be anywhere.

    Raises:
        UsageError: One is smaller.

    Example:
        >>> from types import SimpleNamespace
        >>> try:
        ...     check_least(SimpleNamespace(rounds=0), "rounds")
        ... except UsageError as error:
        ...     print(error)
        rounds is 0; give 1 or more
    """
    for name in names:
        if (value := getattr(record, name)) < least:
            place = f"{section}.{name}" if section else name
            raise UsageError(f"{place} is {value}; give {least} or more")
