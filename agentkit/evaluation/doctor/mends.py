"""What can be mended without a person's judgement: pure functions from definition to definition.

Each mend is idempotent, and does nothing where there is nothing to mend. Those of level L2 change
words only; those of level L1 change the contract and are never applied unasked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentkit.evaluation.doctor.catalogue import Catalogue
from agentkit.evaluation.doctor.finding import Finding, Level, Proposal
from agentkit.evaluation.doctor.schema_mends import (
    with_typed_enums,
    with_unique_enums,
    without_ghosts,
    without_titles,
)
from agentkit.evaluation.doctor.text_mends import (
    with_folded_blanks,
    without_markup,
    without_repeats,
)
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.invisible import without_invisible


@dataclass(frozen=True, kw_only=True, slots=True)
class Mend:
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


def _words(name: str, reason: str, mend_text: Callable[[str], str]) -> Mend:
    def apply(definition: ToolDefinition) -> ToolDefinition:
        return _with_texts(definition, mend_text)

    return Mend(name=name, level="L2", reason=reason, apply=apply)


def _contract(
    name: str, reason: str, mend_schema: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> Mend:
    def apply(definition: ToolDefinition) -> ToolDefinition:
        schema = mend_schema(definition.signature.parameters)
        if schema == definition.signature.parameters:
            return definition
        return replace(definition, signature=replace(definition.signature, parameters=schema))

    return Mend(name=name, level="L1", reason=reason, apply=apply)


MENDS: Mapping[str, Mend] = {
    mend.name: mend
    for mend in (
        _words("drop_invisible", "drop invisible characters", without_invisible),
        _words("drop_markup", "drop HTML tags", without_markup),
        _words("fold_blanks", "fold white space", with_folded_blanks),
        _words("drop_repeats", "drop repeated sentences", without_repeats),
        _contract("type_enums", "type enums by their values", with_typed_enums),
        _contract("unique_enums", "drop repeated values", with_unique_enums),
        _contract(
            "drop_ghosts",
            "drop required names that are no properties",
            without_ghosts,
        ),
        _contract(
            "drop_titles",
            "drop titles that repeat the name, and $schema",
            without_titles,
        ),
    )
}
"""Every mend, in the order in which several are applied."""


def propose(
    catalogue: Catalogue, definition: ToolDefinition, names: Iterable[str]
) -> Proposal | None:
    """The tool with mends made, in the order of ``MENDS``; None when they change nothing."""
    wanted = set(names)
    mended = definition
    made: list[Mend] = []
    for mend in MENDS.values():
        if mend.name not in wanted:
            continue
        after = mend.apply(mended)
        if after is not mended and after != mended:
            mended = after
            made.append(mend)
    if not made:
        return None
    return Proposal(
        before=definition,
        after=mended,
        level="L1" if any(mend.level == "L1" for mend in made) else "L2",
        mends=tuple(mend.name for mend in made),
        reason="; ".join(mend.reason for mend in made),
        saved=catalogue.saved(definition, mended),
    )


def merged(
    catalogue: Catalogue, findings: Iterable[Finding], *, level: Level
) -> tuple[Proposal, ...]:
    """One proposal a tool, with all its mends of a level together; in name order."""
    wanted: dict[str, tuple[ToolDefinition, set[str]]] = {}
    for finding in findings:
        if finding.proposal is not None:
            before = finding.proposal.before
            names = {name for name in finding.proposal.mends if MENDS[name].level == level}
            wanted.setdefault(before.name, (before, set()))[1].update(names)
    proposals = (propose(catalogue, *wanted[name]) for name in sorted(wanted))
    return tuple(proposal for proposal in proposals if proposal is not None)


def _with_texts(definition: ToolDefinition, mend: Callable[[str], str]) -> ToolDefinition:
    """The definition with every text mended that stays a text."""
    before = definition.description
    description = replace(
        before,
        summary=_mended(before.summary, mend),
        parameters={path: _mended(text, mend) for path, text in before.parameters.items()},
        usage_rules=tuple(_mended(rule, mend) for rule in before.usage_rules),
    )
    return definition if description == before else replace(definition, description=description)


def _mended(text: str, mend: Callable[[str], str]) -> str:
    """The text mended; as it was when nothing would be left of it."""
    return mend(text) or text
