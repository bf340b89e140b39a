"""Merging definitions: tools that claim one name, and changes moved onto a newer revision."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal

from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition


def distinct_name(name: str, taken: Container[str]) -> str:
    """``name`` if it is free, else the first free one of ``name__2``, ``name__3``, ...

    A counter rather than a digest: a model has to write the name, people read it, and providers
    allow 64 characters. The result depends only on what is taken, so importing the same source in
    the same order gives the same names.

    Example:
        >>> distinct_name("add", {"sub"}), distinct_name("add", {"add", "add__2"})
        ('add', 'add__3')
    """
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name}__{number}", number + 1
    return candidate


ConflictPolicy = Literal["error", "skip", "replace"]


@dataclass(kw_only=True)
class ImportPlan:
    """The effect of adding definitions to a library.

    Attributes:
        upserts: Definitions to commit, by name.
        added: Names that are new.
        replaced: Names whose definition changes.
        skipped: Names that were taken, and left as they are.
        unchanged: How many definitions the library already holds as they are.
        refused: Names that were taken, under the policy ``error``.
        held: Definitions that wait for a person, by name.
    """

    upserts: dict[str, ToolDefinition] = field(default_factory=dict)
    added: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    unchanged: int = 0
    refused: list[str] = field(default_factory=list)
    held: dict[str, ToolDefinition] = field(default_factory=dict)

    def hold(self, name: str) -> None:
        """Leave out what would stand under a name, until a person agrees to it."""
        self.held[name] = self.upserts.pop(name)
        self.added = [one for one in self.added if one != name]
        self.replaced = [one for one in self.replaced if one != name]

    def to_json(self) -> dict[str, Any]:
        """The plan as a JSON object, without the definitions."""
        return {
            "added": self.added,
            "replaced": self.replaced,
            "skipped": self.skipped,
            "unchanged": self.unchanged,
            "refused": self.refused,
        }


def plan_import(
    definitions: Iterable[ToolDefinition], library: Library, *, on_conflict: ConflictPolicy
) -> ImportPlan:
    """Decide what happens to each definition.

    Args:
        definitions: What is to be added.
        library: What is there already.
        on_conflict: What to do with a name that another definition has: refuse the new one, skip
            it, or replace the old one.
    """
    plan = ImportPlan()
    for definition in definitions:
        name = definition.name
        known = _known(plan, library, name)
        if known is None:
            plan.added.append(name)
            plan.upserts[name] = definition
        elif known.digest == definition.digest:
            plan.unchanged += 1
        elif on_conflict == "replace":
            plan.replaced.append(name)
            plan.upserts[name] = definition
        else:
            (plan.skipped if on_conflict == "skip" else plan.refused).append(name)
    return plan


def _known(plan: ImportPlan, library: Library, name: str) -> ToolDefinition | None:
    if name in plan.upserts:
        return plan.upserts[name]
    tool = library.get(name)
    return None if tool is None else tool.definition


_BY_KEY = frozenset({"description.parameters"})
"""Mappings whose entries are changed one by one. Others, such as a schema, are one value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rebased:
    """A change rebased on a newer revision.

    Attributes:
        definition: The newer revision with the change in it; where there are conflicts, these
            fields are as the newer revision has them.
        conflicts: Fields that both sides changed, each in its own way, as dotted paths.
    """

    definition: ToolDefinition
    conflicts: tuple[str, ...] = ()


def rebase(base: ToolDefinition, candidate: ToolDefinition, newest: ToolDefinition) -> Rebased:
    """The change from ``base`` to ``candidate``, made to ``newest`` instead.

    A field that one side left alone comes from the other. Lists, such as usage rules and examples,
    are merged by their entries: what one side took out is out, what one side put in is in. When
    both took out the same entry and put in different ones, that is a conflict, because each
    probably is another wording of the same.

    Args:
        base: The revision that both sides began with.
        candidate: One side: the proposal.
        newest: The other side: what the library holds by now.

    Example:
        >>> from dataclasses import replace
        >>> from agentkit.tools.definition import Description
        >>> base = ToolDefinition(name="ping", description=Description(summary="Ping."))
        >>> said = replace(base, description=Description(summary="Ping a host."))
        >>> tagged = replace(base, description=Description(summary="Ping.", tags=("net",)))
        >>> merged = rebase(base, said, tagged).definition.description
        >>> merged.summary, merged.tags
        ('Ping a host.', ('net',))
        >>> rebase(base, said, replace(base, description=Description(summary="Pong."))).conflicts
        ('description.summary',)
    """
    conflicts: list[str] = []
    merged: ToolDefinition = _record("", base, candidate, newest, conflicts)
    return Rebased(definition=replace(merged, origin=newest.origin), conflicts=tuple(conflicts))


def _record(path: str, base: Any, ours: Any, theirs: Any, conflicts: list[str]) -> Any:
    changes = {}
    for part in fields(base):
        if part.name == "origin":
            continue
        inner = f"{path}.{part.name}" if path else part.name
        before, mine, yours = (getattr(side, part.name) for side in (base, ours, theirs))
        changes[part.name] = _merged(inner, before, mine, yours, conflicts)
    return replace(theirs, **changes)


def _merged(path: str, base: Any, ours: Any, theirs: Any, conflicts: list[str]) -> Any:
    if ours in (base, theirs):
        return theirs
    if theirs == base:
        return ours
    if is_dataclass(base) and type(base) is type(ours) is type(theirs):
        return _record(path, base, ours, theirs, conflicts)
    if path in _BY_KEY:
        return _mapping(path, base, ours, theirs, conflicts)
    if isinstance(base, tuple):
        merged = _list(base, ours, theirs)
        if merged is not None:
            return merged
    conflicts.append(path)
    return theirs


_ABSENT = object()


def _mapping(
    path: str,
    base: Mapping[str, Any],
    ours: Mapping[str, Any],
    theirs: Mapping[str, Any],
    conflicts: list[str],
) -> dict[str, Any]:
    merged = {}
    for key in dict.fromkeys((*theirs, *ours)):
        before, mine, yours = (side.get(key, _ABSENT) for side in (base, ours, theirs))
        value = _merged(f"{path}.{key}", before, mine, yours, conflicts)
        if value is not _ABSENT:
            merged[key] = value
    return merged


def _list(
    base: Sequence[Any], ours: Sequence[Any], theirs: Sequence[Any]
) -> tuple[Any, ...] | None:
    """Entries of both sides; None when both replaced the same entry by different ones."""
    our_new, their_new = _less(ours, base), _less(theirs, base)
    both_dropped = _less(_less(base, ours), theirs)
    if both_dropped and _less(our_new, their_new) and _less(their_new, our_new):
        return None
    dropped = _less(base, ours)
    return (*_less(theirs, dropped), *_less(our_new, their_new))


def _less(entries: Sequence[Any], others: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(entry for entry in entries if entry not in others)
