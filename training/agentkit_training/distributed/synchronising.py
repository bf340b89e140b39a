"""``synchronise``: all processes report, rank 0 decides, everybody holds the same library."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from agentkit.library import Library
from agentkit.library.library import link
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool
from agentkit_training.distributed.ranks import Ranks
from agentkit_training.errors import LibraryMismatchError, PeerError, TrainingError


@dataclass(frozen=True, kw_only=True, slots=True)
class LibraryDelta:
    """What changed between two libraries.

    Attributes:
        version: Of the next one.
        upserts: Definitions that are new or other than before.
        removals: Names that are gone.
        order: All names in the order in which they are offered, where that does not follow from
            the rest; empty where it does.
    """

    version: int
    upserts: tuple[ToolDefinition, ...] = ()
    removals: tuple[str, ...] = ()
    order: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the tools are those of before."""
        return not (self.upserts or self.removals or self.order)

    def to_json(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "version": self.version,
            "upserts": [one.to_json() for one in self.upserts],
            "removals": list(self.removals),
            "order": list(self.order),
        }

    @classmethod
    def from_json(cls, record: JsonObject) -> LibraryDelta:
        """The inverse of ``to_json``.

        Raises:
            DefinitionError: A definition is none.
        """
        return cls(
            version=int(record["version"]),
            upserts=tuple(ToolDefinition.from_json(one) for one in record["upserts"]),
            removals=tuple(record["removals"]),
            order=tuple(record["order"]),
        )


def library_delta(before: Library, after: Library) -> LibraryDelta:
    """What leads from ``before`` to ``after``.

    Cost: a look at each tool; nothing is hashed that was not hashed already.
    """
    if after is before:
        return LibraryDelta(version=after.version)
    old, new = before.tools, after.tools
    moved = [tool for name, tool in new.items() if old.get(name) is not tool]  # most are the same
    upserts = tuple(tool.definition for tool in moved if not _holds(old, tool.definition))
    removals = tuple(name for name in old if name not in new)
    kept = [name for name in old if name in new]
    names = [*kept, *(one.name for one in upserts if one.name not in old)]
    order = () if names == list(new) else tuple(new)
    return LibraryDelta(version=after.version, upserts=upserts, removals=removals, order=order)


def _holds(tools: Mapping[str, Tool], definition: ToolDefinition) -> bool:
    known = tools.get(definition.name)
    return known is not None and (
        known.definition is definition or known.definition.digest == definition.digest
    )


def with_delta(library: Library, delta: LibraryDelta, *, tools: Iterable[Tool] = ()) -> Library:
    """The library that ``delta`` leads to.

    Cost: the changed tools, and the composites that are made of them; a few copies of dicts.

    Args:
        library: The one that the delta goes out from, with its composites linked.
        delta: What changed.
        tools: Code of tools that may be among the changes; what the library has bound already
            stays bound, also where the definition changed.
    """
    if delta.is_empty:
        same = delta.version == library.version
        return library if same else library.at_version(delta.version)
    code = {tool.name: tool for tool in tools}
    new = [_bound(one, library, code) for one in delta.upserts]
    changed = library.without(delta.removals).with_tools(new)
    if delta.order:
        changed = Library([changed[name] for name in delta.order], cache=library.cache).continuing(
            changed
        )
    return link(changed).at_version(delta.version)


def _bound(definition: ToolDefinition, before: Library, code: Mapping[str, Tool]) -> Tool:
    """A definition with the code that there is for it; composites are linked later."""
    found = code.get(definition.name)
    known = before.get(definition.name)
    if found is None and known is not None and known.is_bound and not definition.is_composite:
        found = known
    return Tool(definition=definition) if found is None else found.with_definition(definition)


def library_fingerprint(library: Library) -> str:
    """A digest of version, definitions and the order in which they are offered.

    It is compared between processes of one run and kept nowhere.
    """
    told = [library.version, library.digest, list(library.tools)]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


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
