"""The changes that made a store's versions, whether the store keeps a list of them or not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from agentkit.errors import StoreFormatError
from agentkit.library.abilities import AppliedChange, ChangeLog
from agentkit.library.store import LibraryChange, ToolRevision, ToolStore

_Named = tuple[str, ToolRevision]


def changes_of(store: ToolStore, *, after: int = 0) -> Iterator[AppliedChange]:
    """The changes behind the version ``after``, ascending, as ``ChangeLog.changes`` gives them.

    A store without a ``ChangeLog`` is asked for every version and for the history of every tool
    that was ever there; what it says is put together and held in memory.

    Args:
        store: Any store of definitions.
        after: The last version that is known already; 0 for none.

    Raises:
        StoreError: The store can not be read.
        StoreFormatError: The store names a version of which no tool's history tells.

    Example:
        >>> from agentkit import ToolDefinition, open_store
        >>> store = open_store("memory:")
        >>> add = LibraryChange(proposal_id="1", upserts=(ToolDefinition(name="ping"),))
        >>> store.commit(add, expected_version=0)
        1
        >>> [(one.version, one.change.proposal_id) for one in changes_of(store)]
        [(1, '1')]
    """
    if isinstance(store, ChangeLog):
        return store.changes(after=after)
    return _collected(store, after)


def _collected(store: ToolStore, after: int) -> Iterator[AppliedChange]:
    versions = [version for version in store.versions() if version > after]
    if not versions:
        return
    names = dict.fromkeys(store.load(after).tools if after else ())
    before = frozenset(names)
    added: dict[int, Sequence[str]] = {}
    for version in versions:
        tools = store.load(version).tools
        added[version] = [name for name in tools if name not in before]
        names |= dict.fromkeys(added[version])
        before = frozenset(tools)
    revisions = _revisions(store, names)
    for version in versions:
        if version not in revisions:
            raise StoreFormatError(
                f"the store names library version {version}, but no tool's history tells of it; "
                "what that version changed can not be told"
            )
        yield _change(version, revisions[version], added[version])


def _revisions(store: ToolStore, names: Mapping[str, None]) -> Mapping[int, Sequence[_Named]]:
    """What every version did, in the order of ``names``."""
    found: dict[int, list[_Named]] = defaultdict(list)
    for name in names:
        for revision in store.history(name):
            found[revision.version].append((name, revision))
    return found


def _change(version: int, revisions: Sequence[_Named], added: Sequence[str]) -> AppliedChange:
    """One change; tools that are new come last, in the order in which the library has them."""
    first = revisions[0][1]
    place = {name: number for number, name in enumerate(added, start=1)}
    ordered = sorted(revisions, key=lambda named: (place.get(named[0], 0), named[0]))
    change = LibraryChange(
        proposal_id=first.proposal_id,
        upserts=tuple(one.definition for _, one in ordered if one.definition is not None),
        removals=tuple(name for name, one in ordered if one.definition is None),
        author=first.author,
        reason=first.reason,
        evidence=first.evidence,
        created_at=first.created_at,
    )
    return AppliedChange(version=version, change=change)
