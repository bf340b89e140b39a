"""From what a server listed to what is offered: each entry is offered or held, none is lost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agentkit.errors import DefinitionError
from agentkit.evolution.validation.report import Check
from agentkit.mcp.client.limits import McpLimits
from agentkit.mcp.client.listing import HeldTool, ListedTool, Listing, RawListing
from agentkit.mcp.client.naming import prefixed
from agentkit.mcp.client.screening import (
    IMPORT_CHECKS,
    oversize,
    remote_references,
    suspicions,
)
from agentkit.mcp.client.translation import fingerprint, listed_tool


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportPolicy:
    """How a server's tools become ours.

    Attributes:
        server: The server's name.
        prefixes: Names on the server that are offered as ``server__tool``; True for all.
        trust_annotations: Whether what the server says of effects counts.
        new_tools: ``screen`` offers an unknown tool whose texts pass the checks, ``hold`` none.
        checks: What texts are asked.
        limits: What is too large.
    """

    server: str
    prefixes: Collection[str] | Literal[True] = ()
    trust_annotations: bool = False
    new_tools: Literal["screen", "hold"] = "screen"
    checks: tuple[Check, ...] = IMPORT_CHECKS
    limits: McpLimits = field(default_factory=McpLimits)

    @property
    def reference(self) -> str:
        """Where definitions say that they come from."""
        return f"mcp:{self.server}"

    def offered_name(self, name: str) -> str:
        """What the library calls a tool of the server."""
        alone = self.prefixes is not True and name not in self.prefixes
        return name if alone else prefixed(self.server, name)


def import_listing(
    raw: RawListing,
    policy: ImportPolicy,
    *,
    known: Mapping[str, str],
    passed: set[str],
) -> Listing:
    """Sort a server's entries into those that are offered and those that are held.

    Args:
        raw: What the server listed.
        policy: How its tools become ours.
        known: Fingerprints by name of what was offered or approved before. A tool that is not
            what it was is held; one that is, is not looked through again.
        passed: Fingerprints whose texts passed the checks; grows.
    """
    tools: list[ListedTool] = []
    held: list[HeldTool] = []
    repeated = _repeated(raw.records)
    seen: set[str] = set()
    for record in raw.records:
        name = record["name"] if isinstance(record.get("name"), str) else ""
        if name in repeated:
            if name in seen and repeated[name] == 1:
                continue  # the same entry again
            if repeated[name] > 1:
                held.append(_duplicate(name, record, repeated[name]))
                continue
        seen.add(name)
        outcome = _sorted(record, policy, known, passed)
        (tools if isinstance(outcome, ListedTool) else held).append(outcome)  # type: ignore[arg-type]  # by its type
    notes = (*_notes(raw, tools, policy), *_renamed(raw.records, known, tools))
    return Listing(tools=tuple(tools), held=tuple(held), notes=notes)


def _repeated(records: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """For each name that is listed more than once, how many different entries it has."""
    names = Counter(r["name"] for r in records if isinstance(r.get("name"), str))
    entries: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        name = record.get("name")
        if isinstance(name, str) and names[name] > 1:
            known = entries.setdefault(name, [])
            if record not in known:
                known.append(record)
    return {name: len(known) for name, known in entries.items()}


def _duplicate(name: str, record: dict[str, Any], count: int) -> HeldTool:
    reason = f"the server lists {count} different tools of this name, so a call would be a guess."
    return HeldTool(name=name, code="duplicate", reasons=(reason,), record=record)


def _sorted(
    record: dict[str, Any], policy: ImportPolicy, known: Mapping[str, str], passed: set[str]
) -> ListedTool | HeldTool:
    name = str(record.get("name", ""))[:200]
    try:
        size = len(json.dumps(record, ensure_ascii=False))
    except (ValueError, RecursionError) as error:
        reason = f"it can not be written as JSON: {error}"
        return HeldTool(name=name, code="bad_entry", reasons=(reason,), record=record)
    if size > 4 * policy.limits.max_definition_chars:  # not even read
        reason = f"its entry has {size:,} characters."
        return HeldTool(name=name, code="too_large", reasons=(reason,), record=record)
    remote = remote_references(record.get("inputSchema"), record.get("outputSchema"))
    if remote:
        reason = f"its schema refers to {remote[0]!r}; only references within it are followed."
        return HeldTool(name=name, code="bad_schema", reasons=(reason,), record=record)
    try:
        tool = listed_tool(
            record,
            offered_name=policy.offered_name(name),
            reference=policy.reference,
            trust_annotations=policy.trust_annotations,
        )
    except DefinitionError as error:
        code: Literal["bad_schema", "bad_entry"] = (
            "bad_schema" if "chema" in str(error) else "bad_entry"
        )
        return HeldTool(name=name, code=code, reasons=(f"{error}.",), record=record)
    too_large = oversize(tool.definition, size, policy.limits)
    if too_large:
        return HeldTool(name=name, code="too_large", reasons=too_large, tool=tool, record=record)
    return _vetted(tool, record, policy, known, passed)


def _vetted(
    tool: ListedTool,
    record: dict[str, Any],
    policy: ImportPolicy,
    known: Mapping[str, str],
    passed: set[str],
) -> ListedTool | HeldTool:
    """The tool, or why a person should look at it first."""
    accepted = known.get(tool.name)
    if accepted == tool.fingerprint:
        return tool
    reasons = (
        () if tool.fingerprint in passed else suspicions(tool.definition, checks=policy.checks)
    )
    if accepted is not None:
        changed = (
            f"it is not what was accepted: its fingerprint was {accepted[:12]} and is "
            f"{tool.fingerprint[:12]}."
        )
        return HeldTool(
            name=tool.name, code="changed", reasons=(changed, *reasons), tool=tool, record=record
        )
    if reasons:
        return HeldTool(
            name=tool.name, code="suspicious_text", reasons=reasons, tool=tool, record=record
        )
    passed.add(tool.fingerprint)
    if policy.new_tools == "hold":
        new = "nobody has approved it yet."
        return HeldTool(name=tool.name, code="unapproved", reasons=(new,), tool=tool, record=record)
    return tool


def _notes(raw: RawListing, tools: Iterable[ListedTool], policy: ImportPolicy) -> Iterator[str]:
    if raw.cut:
        yield raw.cut
    for tool in tools:
        if tool.definition.origin.original is not None:
            yield f"{tool.name}: its schema was repaired on import"
        if tool.definition.name != tool.name and policy.prefixes is not True:
            yield f"{tool.name}: offered as {tool.definition.name}, because the name is taken"


def _renamed(
    records: Iterable[Mapping[str, Any]], known: Mapping[str, str], tools: Iterable[ListedTool]
) -> Iterator[str]:
    """Tools that are gone, with the new tool that says the same under another name."""
    listed = {record.get("name") for record in records}
    gone = {name: print_of for name, print_of in known.items() if name not in listed}
    if not gone:
        return
    by_name = {record["name"]: record for record in records if isinstance(record.get("name"), str)}
    new = [tool.name for tool in tools if tool.name not in known]
    for name, print_of in gone.items():
        for candidate in new:
            if _fingerprint_as(by_name[candidate], name) == print_of:
                yield f"{name}: the server calls it {candidate} now"
                break
        else:
            yield f"{name}: the server does not list it any more"


def _fingerprint_as(record: Mapping[str, Any], name: str) -> str:
    return fingerprint({**record, "name": name})
