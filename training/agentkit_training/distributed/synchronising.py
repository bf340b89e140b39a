"""``synchronise``: all processes report, rank 0 decides, everybody holds the same library."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agentkit.library import Library
from agentkit.library.library import link
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool
from agentkit_training.distributed.ranks import Beat, Ranks, led
from agentkit_training.errors import LibraryMismatchError, TrainingError


def library_changes(before: Library, after: Library) -> dict[str, Any]:
    """What leads from one library to another, as JSON data: all names, and what is new of them.

    Cost: a look at each tool; nothing is hashed that was not hashed already.
    """
    old = before.tools
    moved = [tool.definition for name, tool in after.tools.items() if old.get(name) is not tool]
    new = [one for one in moved if one.name not in old or old[one.name].definition != one]
    names = None if not new and list(old) == list(after.tools) else list(after.tools)
    return {"version": after.version, "names": names, "new": [one.to_json() for one in new]}


def with_changes(library: Library, changes: JsonObject, *, tools: Iterable[Tool] = ()) -> Library:
    """The library that changes lead to.

    Cost: the changed tools, and the composites that are made of them; a few copies of dicts.

    Args:
        library: The one that they go out from, with its composites linked.
        changes: What ``library_changes`` gave.
        tools: Code of tools that may be among the changes; what the library has bound already
            stays bound, also where the definition changed.

    Raises:
        DefinitionError: A definition is none.
    """
    version, names = int(changes["version"]), changes["names"]
    if names is None:
        return library if version == library.version else library.at_version(version)
    code = {tool.name: tool for tool in tools}
    definitions = [ToolDefinition.from_json(one) for one in changes["new"]]
    new = [_bound(one, library, code) for one in definitions]
    changed = library.without(set(library.tools) - set(names)).with_tools(new)
    if names != list(changed.tools):
        moved = Library([changed[name] for name in (*names, *changed.instructions)])
        changed = moved.continuing(changed)
    return link(changed).at_version(version)


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

    A few short messages: the reports to rank 0; that it has decided, and what changed, to everybody
    (a few bytes when nothing did); the digests of what each process came to, back; whether they
    agree.

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

    def decided(_: Beat) -> tuple[Library, dict[str, Any]]:
        found = decide(reports)
        return found, library_changes(library, found)

    made = led(ranks, decided)
    changes = ranks.broadcast(None if made is None else made[1])
    try:
        followed = with_changes(library, changes, tools=tools) if made is None else made[0]
        answer = {"digest": library_fingerprint(followed)}
    except BaseException as error:
        ranks.broadcast(ranks.gather({"error": f"{type(error).__name__}: {error}"}))
        raise
    _check(ranks.broadcast(ranks.gather(answer)))
    return followed


def _check(answers: Sequence[Any]) -> None:
    failed = {rank: one["error"] for rank, one in enumerate(answers) if "error" in one}
    if failed:
        told = "; ".join(f"rank {rank}: {error}" for rank, error in failed.items())
        raise TrainingError(f"the new library could not be taken up everywhere: {told}")
    digests = tuple(str(one["digest"]) for one in answers)
    if len(set(digests)) > 1:
        raise LibraryMismatchError(digests)
