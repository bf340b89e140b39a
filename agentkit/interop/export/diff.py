"""Two libraries side by side, as a reviewer wants to see them.

Of arguments a contract may take more and must not take less; of a result it may promise more and
must not promise less. What the keywords do not decide counts as breaking.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentkit.evolution.differences import (
    PARAMETER,
    Difference,
    ViewChange,
    differences,
    schema_changes,
)
from agentkit.library.dag import ancestors
from agentkit.library.library import Library
from agentkit.tools.definition import Effects, Signature, ToolDefinition

Impact = Literal["breaking", "compatible"]

_LOWER = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_UPPER = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
_WORDS_ONLY = frozenset({"title", "description", "default", "examples", "deprecated", "$comment"})


@dataclass(frozen=True, kw_only=True, slots=True)
class ContractChange:
    """One change of a contract.

    Attributes:
        place: What it is about: ``days``, ``result.city``, ``effects.writes``.
        keyword: ``parameter`` for one that is new or gone, or a keyword of JSON Schema.
        impact: Whether callers must be changed.
        words: The same in a sentence.
    """

    place: str
    keyword: str
    impact: Impact
    words: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolChange:
    """One tool that is in both libraries, and not the same.

    Attributes:
        before: As it was.
        after: As it is.
        contract: What changed of its contract.
        differences: What changed of the rest, field by field.
        affected: Composites above it, in the later library, the nearest first.
    """

    before: ToolDefinition
    after: ToolDefinition
    contract: tuple[ContractChange, ...] = ()
    differences: tuple[Difference, ...] = ()
    affected: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The tool."""
        return self.after.name

    @property
    def is_breaking(self) -> bool:
        """Whether somebody who calls it must change."""
        return any(change.impact == "breaking" for change in self.contract)


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
        unchanged: How many of the tools that were looked at are in both, and the same.
    """

    before: Library
    after: Library
    added: tuple[ToolDefinition, ...]
    removed: tuple[ToolDefinition, ...]
    changed: tuple[ToolChange, ...]
    broken_by_removal: Mapping[str, tuple[str, ...]]
    unchanged: int

    @property
    def is_empty(self) -> bool:
        """Whether the libraries say the same."""
        return not (self.added or self.removed or self.changed)

    @property
    def is_breaking(self) -> bool:
        """Whether a tool is gone, or a contract broken."""
        return bool(self.removed) or any(change.is_breaking for change in self.changed)


def compare_libraries(
    before: Library, after: Library, *, only: Collection[str] = ()
) -> LibraryDiff:
    """What changed from one library to another, tool by tool.

    Args:
        before: The earlier library.
        after: The later one.
        only: Names of tools to look at; none for all.

    Example:
        >>> from agentkit.testing import sample_library
        >>> library = sample_library()
        >>> diff = compare_libraries(library, library.without(["bill_split"]))
        >>> [one.name for one in diff.removed], diff.is_breaking
        (['bill_split'], True)
    """
    both = [name for name in after.tools if name in before and (not only or name in only)]
    changes = (_change(before[name].definition, after[name].definition, after) for name in both)
    changed = tuple(change for change in changes if change is not None)
    removed = tuple(_without(before, after, only))
    callers: dict[str, tuple[str, ...]] = {}
    for parent, children in after.dag.children.items():
        for child in {*children} & {one.name for one in removed}:
            callers[child] = (*callers.get(child, ()), parent)
    return LibraryDiff(
        before=before,
        after=after,
        added=tuple(_without(after, before, only)),
        removed=removed,
        changed=changed,
        broken_by_removal=callers,
        unchanged=len(both) - len(changed),
    )


def _without(one: Library, other: Library, only: Collection[str]) -> Iterator[ToolDefinition]:
    for definition in one.definitions:
        if definition.name not in other and (not only or definition.name in only):
            yield definition


def _change(before: ToolDefinition, after: ToolDefinition, library: Library) -> ToolChange | None:
    found = [one for one in differences(before, after) if not one.field.startswith("signature.")]
    licences = (before.origin.licence or "", after.origin.licence or "")
    if licences[0] != licences[1]:
        found.append(Difference(field="licence", before=licences[0], after=licences[1]))
    elif before.digest == after.digest:
        return None
    return ToolChange(
        before=before,
        after=after,
        contract=contract_changes(before.signature, after.signature),
        differences=tuple(found),
        affected=ancestors(library, after.name),
    )


def headline(diff: LibraryDiff) -> str:
    """The diff in one sentence.

    Example:
        >>> from agentkit.testing import sample_library
        >>> library = sample_library()
        >>> headline(compare_libraries(library.without(["bill_split"]), library))
        '1 tool added, 12 unchanged'
    """
    found = {"added": diff.added, "removed": diff.removed, "changed": diff.changed}
    counts = {what: len(tools) for what, tools in found.items() if tools}
    if not counts:
        return f"no difference in {diff.unchanged:,} {'tool' if diff.unchanged == 1 else 'tools'}"
    phrases = [f"{count:,} {what}" for what, count in counts.items()]
    number, _, what = phrases[0].partition(" ")
    phrases[0] = f"{number} {'tool' if number == '1' else 'tools'} {what}"
    if broken := sum(change.is_breaking for change in diff.changed):
        phrases[-1] += f" ({broken:,} breaking)"
    return ", ".join([*phrases, f"{diff.unchanged:,} unchanged"])


# --- contracts ------------------------------------------------------------------------------------


def contract_changes(before: Signature, after: Signature) -> tuple[ContractChange, ...]:
    """Every change between two contracts, by parameter, then of the result and the effects.

    Example:
        >>> def contract(**properties):
        ...     return Signature(parameters={"type": "object", "properties": properties})
        >>> days = {"type": "integer", "maximum": 14}
        >>> for change in contract_changes(contract(days=days), contract(
        ...     days={**days, "maximum": 7}, city={"type": "string"}
        ... )):
        ...     print(change.impact, change.words)
        compatible city is a new parameter.
        breaking days must be at most 7 (before: at most 14).
    """
    changes = [*_schema_changes(before.parameters, after.parameters, "", is_result=False)]
    if before.result is not None and after.result is not None:
        changes += _schema_changes(before.result, after.result, "result", is_result=True)
    elif before.result != after.result:
        is_new = before.result is None
        words = f"the result is {'declared' if is_new else 'no longer declared'}."
        changes.append(_contract_change("result", "result", words, is_compatible=is_new))
    return (*changes, *_effect_changes(before.effects, after.effects))


def _contract_change(
    place: str, keyword: str, words: str, *, is_compatible: bool
) -> ContractChange:
    impact: Impact = "compatible" if is_compatible else "breaking"
    return ContractChange(place=place, keyword=keyword, impact=impact, words=words)


def _schema_changes(
    before: Any, after: Any, place: str, *, is_result: bool
) -> Iterator[ContractChange]:
    changes = schema_changes(before, after, place)
    new = {one.place for one in changes if one.keyword == PARAMETER and one.after}
    gone = {one.place for one in changes if one.keyword == PARAMETER and one.before}
    for one in changes:
        is_inside = any(_lies_in(one.place, other) for other in new | gone)
        says_more = one.keyword == PARAMETER or (one.keyword == "required" and one.place in new)
        if is_inside and not says_more:
            continue
        words = one.sentence
        if is_result and one.keyword == PARAMETER:
            words = words.replace("parameter", "field", 1)
        fine = _is_compatible(one, is_result=is_result)
        yield _contract_change(one.place, one.keyword, words, is_compatible=fine)


def _lies_in(place: str, other: str) -> bool:
    return place == other or place.startswith((f"{other}.", f"{other}["))


def _is_compatible(change: ViewChange, *, is_result: bool) -> bool:
    """Whether callers may stay as they are."""
    if change.keyword == PARAMETER:
        return bool(change.after)
    if change.keyword.removeprefix("x-") in _WORDS_ONLY:
        return True
    # What would be compatible in arguments the other way round is compatible in a result.
    sides = (change.after, change.before) if is_result else (change.before, change.after)
    was, becomes = (json.loads(side) if side else None for side in sides)
    return _is_wider(change.keyword, was, becomes)


def _is_wider(keyword: str, was: Any, becomes: Any) -> bool:
    """Whether a keyword allows all that it allowed before; None stands for its absence."""
    if keyword == "additionalProperties":
        return was is False or becomes in (None, True, {})
    if becomes is None:
        return True
    if keyword == "type" and was is not None:
        kinds = {*_listed(becomes), *(["integer"] if "number" in _listed(becomes) else [])}
        return kinds.issuperset(_listed(was))
    if (
        keyword in {"anyOf", "enum", "oneOf"}
        and isinstance(was, list)
        and isinstance(becomes, list)
    ):
        return all(one in becomes for one in was)
    if not (_is_number(was) and _is_number(becomes)):
        return False
    return (keyword in _LOWER and becomes <= was) or (keyword in _UPPER and becomes >= was)


def _listed(kinds: Any) -> list[Any]:
    return kinds if isinstance(kinds, list) else [kinds]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _effect_changes(before: Effects, after: Effects) -> Iterator[ContractChange]:
    old, new = before.to_json(), after.to_json()
    for name in dict.fromkeys((*old, *new)):
        was, becomes = old.get(name), new.get(name)
        if was == becomes:
            continue
        grew = name in {"writes", "destructive", "open_world"} and becomes is not False
        lost = name == "idempotent" and was is True
        is_compatible = not lost and not (grew and was is not True)
        words = f"effects.{name}: {json.dumps(was)} became {json.dumps(becomes)}."
        yield _contract_change(f"effects.{name}", name, words, is_compatible=is_compatible)
