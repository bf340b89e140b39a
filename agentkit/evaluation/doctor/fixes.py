"""What can be fixed without a person's judgement: pure functions from definition to definition.

Each fix is idempotent, and does nothing where there is nothing to fix. Those of level L2 change
words only; those of level L1 change the contract and are never applied unasked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from agentkit.evaluation.doctor.catalogue import Catalogue
from agentkit.evaluation.doctor.findings import Finding, Level, Proposal
from agentkit.evaluation.doctor.schemas import without_ghosts, without_titles
from agentkit.evaluation.doctor.texts import without_markup, without_repeats
from agentkit.library import Library, LibraryChange
from agentkit.library.pins import repinned
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.invisible import without_invisible


@dataclass(frozen=True, kw_only=True, slots=True)
class Fix:
    """One mechanical repair.

    Attributes:
        name: Its name.
        level: What it edits.
        reason: What it does, in words for the tool's history.
        apply: The repair.
    """

    name: str
    level: Level
    reason: str
    apply: Callable[[ToolDefinition], ToolDefinition]


def _words(name: str, reason: str, fixed: Callable[[str], str]) -> Fix:
    def text(before: str) -> str:
        return fixed(before) or before  # as it was when nothing would be left of it

    def apply(definition: ToolDefinition) -> ToolDefinition:
        before = definition.description
        after = replace(
            before,
            summary=text(before.summary),
            parameters={path: text(one) for path, one in before.parameters.items()},
            usage_rules=tuple(map(text, before.usage_rules)),
        )
        return definition if after == before else replace(definition, description=after)

    return Fix(name=name, level="L2", reason=reason, apply=apply)


def _contract(name: str, reason: str, fixed: Callable[[JsonObject], JsonObject]) -> Fix:
    def apply(definition: ToolDefinition) -> ToolDefinition:
        schema = fixed(definition.signature.parameters)
        if schema == definition.signature.parameters:
            return definition
        return replace(definition, signature=replace(definition.signature, parameters=schema))

    return Fix(name=name, level="L1", reason=reason, apply=apply)


FIXES: Mapping[str, Fix] = {
    fix.name: fix
    for fix in (
        _words("drop_invisible", "drop invisible characters", without_invisible),
        _words("drop_markup", "drop HTML tags", without_markup),
        _words("drop_repeats", "drop repeated sentences", without_repeats),
        _contract("drop_ghosts", "drop required names that are no properties", without_ghosts),
        _contract("drop_titles", "drop titles that repeat the name, and $schema", without_titles),
    )
}
"""Every fix, in the order in which several are applied."""


def propose(
    catalogue: Catalogue, definition: ToolDefinition, names: Iterable[str]
) -> Proposal | None:
    """The tool with fixes made, in the order of ``FIXES``; None when they change nothing."""
    wanted = set(names)
    fixed, made = definition, []
    for fix in FIXES.values():
        after = fix.apply(fixed) if fix.name in wanted else fixed
        if after != fixed:
            fixed = after
            made.append(fix)
    if not made:
        return None
    return Proposal(
        before=definition,
        after=fixed,
        level="L1" if any(fix.level == "L1" for fix in made) else "L2",
        fixes=tuple(fix.name for fix in made),
        reason="; ".join(fix.reason for fix in made),
        saved=catalogue.cost(definition) - catalogue.cost(fixed),
    )


def merged(
    catalogue: Catalogue, findings: Iterable[Finding], *, level: Level
) -> tuple[Proposal, ...]:
    """One proposal a tool, with all its fixes of a level together; in name order."""
    wanted: dict[str, tuple[ToolDefinition, set[str]]] = {}
    for finding in findings:
        if finding.proposal is not None:
            before = finding.proposal.before
            names = {name for name in finding.proposal.fixes if FIXES[name].level == level}
            wanted.setdefault(before.name, (before, set()))[1].update(names)
    proposals = (propose(catalogue, *wanted[name]) for name in sorted(wanted))
    return tuple(proposal for proposal in proposals if proposal is not None)


def change_of(
    library: Library, proposals: Iterable[Proposal], *, proposal_id: str, author: str = ""
) -> LibraryChange | None:
    """The proposals that still fit, as one change; None when there is none.

    A proposal fits when the library holds the very definition that was examined: what somebody
    else changed since is left alone. Composites that pin a fixed tool get their pins moved.

    Args:
        library: The library as it is now.
        proposals: At most one a tool.
        proposal_id: Identifies the change, so that a store applies it once.
        author: Who makes it.

    Raises:
        LibraryError: Composites above a fixed tool call each other in a circle.
    """
    fitting = [
        one
        for one in proposals
        if (held := library.get(one.before.name)) is not None and held.definition == one.before
    ]
    if not fitting:
        return None
    reasons = dict.fromkeys(reason for one in fitting for reason in one.reason.split("; "))
    return LibraryChange(
        proposal_id=proposal_id,
        upserts=repinned(library, [proposal.after for proposal in fitting]),
        author=author,
        reason=f"doctor: {'; '.join(reasons)}",
    )
