"""Two libraries side by side, as a reviewer wants to see them; also as a Markdown page."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any, Literal

from agentkit.composites.codec import program_from_json
from agentkit.composites.problems import READING_LIMITS
from agentkit.composites.rendering import render
from agentkit.errors import CompositeError
from agentkit.evaluation.results.texts import visible
from agentkit.evolution.differences import Difference, differences
from agentkit.interop.export.artifact import GateEvidence
from agentkit.interop.export.contracts import ContractChange, contract_changes
from agentkit.interop.export.texts import code, escaped
from agentkit.library.dag import ancestors
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition

Level = Literal["contract", "words", "specification", "examples", "program", "source"]
"""The four levels of a definition, its program, and where it comes from."""

_LEVELS: Mapping[str, Level] = {
    "name": "contract",
    "signature": "contract",
    "summary": "words",
    "parameters": "words",
    "usage_rules": "words",
    "tags": "words",
    "rules": "specification",
    "pre": "specification",
    "post": "specification",
    "text": "specification",
    "complexity": "specification",
    "examples": "examples",
    "body": "program",
    "licence": "source",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolChange:
    """One tool that is in both libraries, and not the same.

    Attributes:
        before: As it was.
        after: As it is.
        contract: What changed of L1.
        differences: What changed of the rest, field by field.
        affected: Composites above it, in the later library, the nearest first.
        evidence: What gates and people said of the revision that came, where that is known.
    """

    before: ToolDefinition
    after: ToolDefinition
    contract: tuple[ContractChange, ...] = ()
    differences: tuple[Difference, ...] = ()
    affected: tuple[str, ...] = ()
    evidence: tuple[GateEvidence, ...] = ()

    @property
    def name(self) -> str:
        """The tool."""
        return self.after.name

    @property
    def is_breaking(self) -> bool:
        """Whether somebody who calls it must change."""
        return any(change.impact == "breaking" for change in self.contract)

    @property
    def by_level(self) -> Mapping[Level, tuple[Difference, ...]]:
        """The differences by level, in the order of the levels."""
        found: dict[Level, list[Difference]] = {}
        for one in self.differences:
            found.setdefault(level_of(one.field), []).append(one)
        return {level: tuple(found[level]) for level in _LEVELS.values() if level in found}

    def to_json(self) -> dict[str, Any]:
        """The change as a JSON object."""
        return {
            "name": self.name,
            "breaking": self.is_breaking,
            "digest_before": self.before.digest,
            "digest_after": self.after.digest,
            "contract": [change.to_json() for change in self.contract],
            "levels": {
                level: [one.to_json() for one in found] for level, found in self.by_level.items()
            },
            "affected": list(self.affected),
            "evidence": [one.to_json() for one in self.evidence],
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class LibraryDiff:
    """What changed from one library to another.

    Attributes:
        before: The earlier library.
        after: The later one.
        added: Tools that only the later one has.
        removed: Tools that only the earlier one has.
        changed: Tools that differ.
        broken_by_removal: Composites of the later library that call a tool that is gone, by it.
        evidence: What was said of the tools that were added.
        unchanged: How many of the tools that were looked at are in both, and the same.
    """

    before: Library
    after: Library
    added: tuple[ToolDefinition, ...]
    removed: tuple[ToolDefinition, ...]
    changed: tuple[ToolChange, ...]
    broken_by_removal: Mapping[str, tuple[str, ...]]
    evidence: Mapping[str, tuple[GateEvidence, ...]]
    unchanged: int

    @property
    def is_empty(self) -> bool:
        """Whether the libraries say the same."""
        return not (self.added or self.removed or self.changed)

    @property
    def is_breaking(self) -> bool:
        """Whether a tool is gone, or a contract broken."""
        return bool(self.removed) or any(change.is_breaking for change in self.changed)

    def to_json(self) -> dict[str, Any]:
        """The diff as a JSON object."""
        return {
            "before": {"version": self.before.version, "digest": self.before.digest},
            "after": {"version": self.after.version, "digest": self.after.digest},
            "breaking": self.is_breaking,
            "added": [
                {
                    "definition": one.to_json(),
                    "evidence": [said.to_json() for said in self.evidence.get(one.name, ())],
                }
                for one in self.added
            ],
            "removed": [
                {
                    "definition": one.to_json(),
                    "callers": list(self.broken_by_removal.get(one.name, ())),
                }
                for one in self.removed
            ],
            "changed": [change.to_json() for change in self.changed],
            "unchanged": self.unchanged,
        }


def compare_libraries(
    before: Library,
    after: Library,
    *,
    evidence: Iterable[GateEvidence] = (),
    only: Collection[str] = (),
) -> LibraryDiff:
    """What changed from one library to another, tool by tool.

    Args:
        before: The earlier library.
        after: The later one.
        evidence: What was said of the proposals behind the later one.
        only: Names of tools to look at; none for all.

    Example:
        >>> from agentkit.testing import sample_library
        >>> library = sample_library()
        >>> diff = compare_libraries(library, library.without(["bill_split"]))
        >>> [one.name for one in diff.removed], diff.is_breaking
        (['bill_split'], True)
    """
    said: dict[str, list[GateEvidence]] = {}
    for one in evidence:
        tool = after.get(one.tool)
        if tool is not None and one.digest == tool.definition.digest:
            said.setdefault(one.tool, []).append(one)
    told = {name: tuple(found) for name, found in said.items()}
    both = [name for name in after.tools if name in before and (not only or name in only)]
    changes = (
        _change(before[name].definition, after[name].definition, after, told.get(name, ()))
        for name in both
    )
    changed = tuple(change for change in changes if change is not None)
    removed = tuple(_without(before, after, only))
    return LibraryDiff(
        before=before,
        after=after,
        added=tuple(_without(after, before, only)),
        removed=removed,
        changed=changed,
        broken_by_removal=_callers([one.name for one in removed], after),
        evidence=told,
        unchanged=len(both) - len(changed),
    )


def _without(one: Library, other: Library, only: Collection[str]) -> Iterator[ToolDefinition]:
    for definition in one.definitions:
        if definition.name not in other and (not only or definition.name in only):
            yield definition


def level_of(field: str) -> Level:
    """The level that a field of a ``Difference`` belongs to."""
    return _LEVELS.get(field.partition(".")[0], "words")


def _change(
    before: ToolDefinition,
    after: ToolDefinition,
    library: Library,
    evidence: tuple[GateEvidence, ...],
) -> ToolChange | None:
    licences = (before.origin.licence or "", after.origin.licence or "")
    if before.digest == after.digest and licences[0] == licences[1]:
        return None
    found = [one for one in differences(before, after) if not one.field.startswith("signature.")]
    if before.body != after.body:
        programs = _program_text(before), _program_text(after)
        found = [one for one in found if one.field != "body"]
        found.append(Difference(field="body", before=programs[0], after=programs[1]))
    if licences[0] != licences[1]:
        found.append(Difference(field="licence", before=licences[0], after=licences[1]))
    return ToolChange(
        before=before,
        after=after,
        contract=contract_changes(before.signature, after.signature),
        differences=tuple(found),
        affected=ancestors(library, after.name),
        evidence=evidence,
    )


def _program_text(definition: ToolDefinition) -> str:
    """The program of a composite as text; empty for a primitive."""
    if definition.body is None:
        return ""
    try:
        program = program_from_json(definition.body, limits=READING_LIMITS)
    except CompositeError as error:
        return f"(no program: {error})"
    return render(program, definition.name)


def _callers(names: Iterable[str], library: Library) -> dict[str, tuple[str, ...]]:
    """Which composites still call tools that are not there."""
    wanted = set(names)
    found: dict[str, list[str]] = {}
    for parent, children in library.dag.children.items():
        for child in dict.fromkeys(children):
            if child in wanted:
                found.setdefault(child, []).append(parent)
    return {name: tuple(parents) for name, parents in found.items()}


def headline(diff: LibraryDiff) -> str:
    """The diff in one sentence.

    Example:
        >>> from agentkit.testing import sample_library
        >>> library = sample_library()
        >>> headline(compare_libraries(library.without(["bill_split"]), library))
        '1 tool added, 12 unchanged'
    """
    broken = sum(change.is_breaking for change in diff.changed)
    counts = {
        "added": len(diff.added),
        "removed": len(diff.removed),
        "changed": len(diff.changed),
    }
    parts = [f"{count:,} {what}" for what, count in counts.items() if count]
    if not parts:
        return f"no difference in {diff.unchanged:,} {'tool' if diff.unchanged == 1 else 'tools'}"
    first, *rest = parts
    number, what = first.split(" ")
    told = [f"{number} {'tool' if number == '1' else 'tools'} {what}", *rest]
    if broken:
        told[-1] += f" ({broken:,} breaking)"
    return ", ".join([*told, f"{diff.unchanged:,} unchanged"])


def evidence_lines(evidence: tuple[GateEvidence, ...]) -> Iterator[str]:
    """What gates, judges and people said, a line each."""
    for one in evidence:
        agreed = f"; agreed: {', '.join(one.agreed)}" if one.agreed else ""
        reason = f": {one.reason}" if one.reason else ""
        yield f"suggested by {one.author}{reason}{agreed}"
        yield from (f"{report.gate}: {report.decision}, {report.reason}" for report in one.reports)


def mark(change: ToolChange) -> str:
    """One word on what the change means for callers."""
    if change.is_breaking:
        return "breaking"
    return "compatible" if change.contract else "words" if change.differences else "pins"


_LONGEST = 2_000


def diff_markdown(diff: LibraryDiff, *, before: str, after: str) -> str:
    """The diff as a Markdown page.

    Removed words are struck out and new ones are bold. Foreign text is escaped, so that the words
    of a tool can not make headings, links or mentions in a review.

    Args:
        diff: What to tell.
        before: What the earlier library is called.
        after: What the later one is called.
    """
    lines = [
        f"## Tools: {code(before)} → {code(after)}",
        "",
        f"**{headline(diff)}**",
    ]
    if diff.removed:
        lines += ["", "### Removed", ""]
        lines += [_removed(one, diff) for one in diff.removed]
    for title, wanted in (("Changed, breaking", True), ("Changed", False)):
        found = [change for change in diff.changed if change.is_breaking is wanted]
        if found:
            lines += ["", f"### {title}"]
            lines += [line for change in found for line in _changed(change)]
    if diff.added:
        lines += ["", "### Added", ""]
        lines += [line for one in diff.added for line in _added(one, diff)]
    return "\n".join(lines) + "\n"


def _removed(definition: ToolDefinition, diff: LibraryDiff) -> str:
    callers = diff.broken_by_removal.get(definition.name, ())
    still = f" — **still called by** {_names(callers)}" if callers else ""
    return f"- {code(definition.name)}: {_text(definition.description.summary)}{still}"


def _added(definition: ToolDefinition, diff: LibraryDiff) -> Iterator[str]:
    parameters = ", ".join(definition.signature.properties)
    made_of = _names(child.name for child in definition.signature.children)
    of = f" Made of {made_of}." if made_of else ""
    call = code(f"{definition.name}({parameters})")
    yield f"- {call}: {_text(definition.description.summary)}{of}"
    yield from _evidence(diff.evidence.get(definition.name, ()), indent="  ")


def _changed(change: ToolChange) -> Iterator[str]:
    yield ""
    yield f"#### {code(change.name)} ({mark(change)})"
    yield ""
    for one in change.contract:
        sign = "**breaking:** " if one.impact == "breaking" else ""
        yield f"- {sign}{_text(one.words)}"
    for level, found in change.by_level.items():
        for difference in found:
            if difference.field == "body":
                yield from _program(difference)
            else:
                yield f"- {level}, {code(difference.field)}: {_words(difference)}"
    if not change.contract and not change.differences:
        yield f"- pinned anew to {_names(child.name for child in change.after.signature.children)}"
    if change.affected:
        yield f"- composites above: {_names(change.affected)}"
    yield from _evidence(change.evidence, indent="")


def _evidence(evidence: tuple[GateEvidence, ...], *, indent: str) -> Iterator[str]:
    yield from (f"{indent}- evidence: {_text(line)}" for line in evidence_lines(evidence))


def _program(one: Difference) -> Iterator[str]:
    """The two programs as a diff that pages colour."""
    lines = unified_diff(one.before.splitlines(), one.after.splitlines(), lineterm="", n=9)
    shown = [visible(line) for line in lines][2:]
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", "".join(shown)) or [""]))
    yield from ("- program:", "", f"  {fence}diff")
    yield from (f"  {line}" for line in shown if not line.startswith("@@"))
    yield f"  {fence}"


def _words(one: Difference) -> str:
    styles = {"same": "{}", "removed": "~~{}~~", "added": "**{}**"}
    return "".join(_styled(text, styles[kind]) for kind, text in one.words)[:_LONGEST]


def _styled(text: str, style: str) -> str:
    """Text in a style, with the white space at its ends outside, where Markdown wants it."""
    bare = text.strip()
    if not bare:
        return " " if text else ""
    start = " " if text[0].isspace() else ""
    end = " " if text[-1].isspace() else ""
    return f"{start}{style.format(_text(bare))}{end}"


def _text(text: str) -> str:
    return escaped(visible(text)).replace("@", "&#64;")


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(code, names))
