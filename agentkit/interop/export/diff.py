"""Two libraries side by side, as a reviewer wants to see them.

Of arguments a contract may take more and must not take less; of a result it may promise more and
must not promise less. What can not be told from the keywords counts as breaking.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

from agentkit.composites.codec import program_from_json
from agentkit.composites.problems import READING_LIMITS
from agentkit.composites.rendering import render
from agentkit.errors import CompositeError
from agentkit.evolution.differences import Difference, differences
from agentkit.interop.export.artifact import GateEvidence
from agentkit.library.dag import ancestors
from agentkit.library.library import Library
from agentkit.tools.definition import Effects, Signature, ToolDefinition

Impact = Literal["breaking", "compatible"]
Schema: TypeAlias = "Mapping[str, Any]"

_LOWER = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_UPPER = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
_WORDS_ONLY = frozenset({"title", "description", "default", "examples", "deprecated", "$comment"})
_WALKED = frozenset({"properties", "required", "type", "enum", "items", "additionalProperties"})
_DEEPEST = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class ContractChange:
    """One change of a contract.

    Attributes:
        place: What it is about: ``parameters.days``, ``result.city``, ``effects.writes``.
        keyword: Which keyword, or ``added``, ``removed``, ``required``.
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
    def mark(self) -> str:
        """One word on what the change means for callers."""
        if self.is_breaking:
            return "breaking"
        return "compatible" if self.contract else "words" if self.differences else "pins"

    def to_json(self) -> dict[str, Any]:
        """The change as a JSON object."""
        return {
            "name": self.name,
            "breaking": self.is_breaking,
            "digest_before": self.before.digest,
            "digest_after": self.after.digest,
            "contract": [asdict(change) for change in self.contract],
            "differences": [one.to_json() for one in self.differences],
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
    told: dict[str, tuple[GateEvidence, ...]] = {}
    for one in evidence:
        tool = after.get(one.tool)
        if tool is not None and one.digest == tool.definition.digest:
            told[one.tool] = (*told.get(one.tool, ()), one)
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


def _callers(names: Collection[str], library: Library) -> dict[str, tuple[str, ...]]:
    """Which composites still call tools that are not there."""
    found: dict[str, tuple[str, ...]] = {}
    for parent, children in library.dag.children.items():
        for child in dict.fromkeys(children):
            if child in names:
                found[child] = (*found.get(child, ()), parent)
    return found


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
    """What was said of a revision, a line each."""
    for one in evidence:
        agreed = f"; agreed: {', '.join(one.agreed)}" if one.agreed else ""
        reason = f": {one.reason}" if one.reason else ""
        yield f"suggested by {one.author}{reason}{agreed}"
        yield from (f"{report.gate}: {report.decision}, {report.reason}" for report in one.reports)


# --- contracts ------------------------------------------------------------------------------------


def contract_changes(before: Signature, after: Signature) -> tuple[ContractChange, ...]:
    """Every change between two contracts, in the order in which they are read.

    Example:
        >>> def contract(**properties):
        ...     return Signature(parameters={"type": "object", "properties": properties})
        >>> days = {"type": "integer", "maximum": 14}
        >>> for change in contract_changes(contract(days=days), contract(
        ...     days={**days, "maximum": 7}, city={"type": "string"}
        ... )):
        ...     print(change.impact, change.words)
        breaking parameters.days: maximum 14 became 7
        compatible parameters.city is new and optional
    """
    found = list(_compare(before.parameters, after.parameters, "parameters", 0))
    found += _results(before.result, after.result)
    found += _effects(before.effects, after.effects)
    return tuple(found)


def _results(before: Any, after: Any) -> Iterator[ContractChange]:
    """Changes of a result: what would be compatible in arguments the other way round."""
    if before is None or after is None:
        if before != after:
            told = "declared" if before is None else "no longer declared"
            yield _changed("result", "result", before is None, f"the result is {told}")
        return
    backwards = {
        (change.place, change.keyword): change.impact
        for change in _compare(after, before, "result", 0)
    }
    for change in _compare(before, after, "result", 0):
        flipped = backwards.get((change.place, change.keyword), "breaking")
        if change.keyword in {"added", "removed"}:
            flipped = "compatible" if change.keyword == "added" else "breaking"
        words = change.words.replace(" is new and optional", " is new")
        yield replace(change, impact=flipped, words=words)


def _effects(before: Effects, after: Effects) -> Iterator[ContractChange]:
    old, new = before.to_json(), after.to_json()
    for name in dict.fromkeys((*old, *new)):
        was, becomes = old.get(name), new.get(name)
        if was != becomes:
            grew = name in {"writes", "destructive", "open_world"} and becomes is not False
            lost = name == "idempotent" and was is True
            is_fine = not (lost or (grew and was is not True))
            yield _became(f"effects.{name}", name, (was, becomes), is_fine, f"effects.{name}")


def _compare(before: Any, after: Any, place: str, depth: int) -> Iterator[ContractChange]:
    if before == after or depth > _DEEPEST:
        return
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        yield _changed(place, "schema", False, f"{place} is another schema")
        return
    yield from _types(before, after, place)
    yield from _values(before, after, place)
    yield from _properties(before, after, place, depth)
    if "items" in before or "items" in after:
        old, new = before.get("items", {}), after.get("items", {})
        yield from _compare(old, new, f"{place}[]", depth + 1)
    for key in dict.fromkeys((*before, *after)):
        was, becomes = before.get(key), after.get(key)
        if key in _WALKED or key in _WORDS_ONLY or was == becomes:
            continue
        is_wider = _is_wider(key, was, becomes)
        if was is None or becomes is None:
            given, what = (becomes, "new") if was is None else (was, "gone")
            yield _changed(place, key, is_wider, f"{place}: {key} {_shown(given)} is {what}")
        else:
            yield _became(place, key, (was, becomes), is_wider, f"{place}: {key}")


def _types(before: Schema, after: Schema, place: str) -> Iterator[ContractChange]:
    old, new = _kinds(before), _kinds(after)
    if old != new:
        taken = new | ({"integer"} if "number" in new else set())
        is_wider = not new or (bool(old) and old <= taken)
        sides = before.get("type"), after.get("type")
        yield _became(place, "type", sides, is_wider, f"{place}: type")


def _values(before: Schema, after: Schema, place: str) -> Iterator[ContractChange]:
    old, new = before.get("enum"), after.get("enum")
    if old == new:
        return
    gone = [one for one in old or () if new is not None and one not in new]
    come = [one for one in new or () if old is not None and one not in old]
    if old is None:
        words = f"takes only {_list(new)}"
    elif new is None:
        words = f"takes other values than {_list(old)} too"
    else:
        parts = [f"no longer {_list(gone)}"] if gone else []
        parts += [f"{'but' if gone else 'also'} {_list(come)}"] if come else []
        words = f"takes {', '.join(parts) or 'its values in another order'}"
    yield _changed(place, "enum", not gone and old is not None, f"{place} {words}")


def _properties(before: Schema, after: Schema, place: str, depth: int) -> Iterator[ContractChange]:
    old, new = before.get("properties", {}), after.get("properties", {})
    needed, needs = set(before.get("required", ())), set(after.get("required", ()))
    for name in dict.fromkeys((*old, *new)):
        where, is_needed = f"{place}.{name}", name in needs
        if name not in new:
            yield _changed(where, "removed", False, f"{where} is gone")
        elif name not in old:
            told = "required" if is_needed else "optional"
            yield _changed(where, "added", not is_needed, f"{where} is new and {told}")
        else:
            if (name in needed) != is_needed:
                told = "now required" if is_needed else "optional now"
                yield _changed(where, "required", not is_needed, f"{where} is {told}")
            yield from _compare(old[name], new[name], where, depth + 1)
    was, becomes = before.get("additionalProperties"), after.get("additionalProperties")
    if was != becomes:
        is_wider = was is False or becomes in (None, True, {})
        told = f"{place} takes {'more' if is_wider else 'fewer'} other fields"
        yield _changed(place, "additionalProperties", is_wider, told)


def _is_wider(key: str, was: Any, becomes: Any) -> bool:
    """Whether a keyword lets pass all that it let pass before."""
    if becomes is None:
        return True
    if key in {"anyOf", "oneOf"} and isinstance(was, list) and isinstance(becomes, list):
        return all(one in becomes for one in was)
    if not (_is_number(was) and _is_number(becomes)):
        return False
    return (key in _LOWER and becomes <= was) or (key in _UPPER and becomes >= was)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kinds(schema: Schema) -> set[str]:
    kind = schema.get("type")
    return {kind} if isinstance(kind, str) else set(kind or ())


def _list(values: Any) -> str:
    return ", ".join(map(_shown, values))


def _shown(value: Any) -> str:
    return "(absent)" if value is None else json.dumps(value, ensure_ascii=False)


def _became(
    place: str,
    keyword: str,
    sides: tuple[Any, Any],
    is_fine: bool,  # noqa: FBT001 - its impact
    what: str,
) -> ContractChange:
    was, becomes = map(_shown, sides)
    return _changed(place, keyword, is_fine, f"{what} {was} became {becomes}")


def _changed(place: str, keyword: str, is_fine: bool, words: str) -> ContractChange:  # noqa: FBT001 - its impact
    impact: Impact = "compatible" if is_fine else "breaking"
    return ContractChange(place=place, keyword=keyword, impact=impact, words=words)
