"""``synchronise``: all processes report, rank 0 decides, everybody holds the same library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from agentkit.library import Library
from agentkit.tools.tool import Tool
from agentkit_training.distributed.library_delta import (
    LibraryDelta,
    library_delta,
    library_fingerprint,
    with_delta,
)
from agentkit_training.distributed.ranks import Ranks
from agentkit_training.errors import LibraryMismatchError, PeerError, TrainingError


def synchronise(
    library: Library,
    report: Any,
    decide: Callable[[Sequence[Any]], Library],
    *,
    ranks: Ranks,
    tools: Iterable[Tool] = (),
) -> Library:
    """The library that all processes go on with.

    Four short messages: the reports to rank 0; what changed to everybody (a few bytes when nothing
    did); the digests of what each process came to, back; whether they agree.

    Args:
        library: The one that all processes hold now.
        report: What this process has to tell, as JSON data: counts of failures, suggestions.
        decide: Called at rank 0 alone, with the reports of all processes in their order; gives the
            next library, or the one that it had.
        ranks: The processes.
        tools: Code of tools that may come into the library.

    Raises:
        LibraryMismatchError: The processes came to different libraries; raised in all of them.
        PeerError: Rank 0 could not decide; raised in all others, while rank 0 raises its own error.
        TrainingError: A process could not take up the change; raised in the same way.
    """
    reports = ranks.gather(report)
    if ranks.world == 1:
        return decide(reports)
    if ranks.rank == 0:
        return _led(library, reports, decide, ranks)
    return _followed(library, ranks, tools)


def _led(
    library: Library,
    reports: Sequence[Any],
    decide: Callable[[Sequence[Any]], Library],
    ranks: Ranks,
) -> Library:
    try:
        decided = decide(reports)
        message = {"delta": library_delta(library, decided).to_json()}
    except BaseException as error:  # the others must not wait for an answer in vain
        with suppress(RuntimeError):  # where they are gone already, the error at hand counts
            ranks.broadcast({"error": f"{type(error).__name__}: {error}"})
        raise
    ranks.broadcast(message)
    answers = ranks.gather({"digest": library_fingerprint(decided)})
    ranks.broadcast(answers)
    _check(answers)
    return decided


def _followed(library: Library, ranks: Ranks, tools: Iterable[Tool]) -> Library:
    message = ranks.broadcast(None)
    if "error" in message:
        raise PeerError(
            f"rank 0 could not decide about the library: {message['error']}; mend that and go on "
            "from the last checkpoint"
        )
    try:
        followed = with_delta(library, LibraryDelta.from_json(message["delta"]), tools=tools)
        answer = {"digest": library_fingerprint(followed)}
    except BaseException as error:
        ranks.gather({"error": f"{type(error).__name__}: {error}"})
        ranks.broadcast(None)
        raise
    ranks.gather(answer)
    _check(ranks.broadcast(None))
    return followed


def _check(answers: Sequence[Any]) -> None:
    failed = {rank: one["error"] for rank, one in enumerate(answers) if "error" in one}
    if failed:
        told = "; ".join(f"rank {rank}: {error}" for rank, error in failed.items())
        raise TrainingError(f"the new library could not be taken up everywhere: {told}")
    digests = tuple(str(one["digest"]) for one in answers)
    if len(set(digests)) > 1:
        raise LibraryMismatchError(digests)
