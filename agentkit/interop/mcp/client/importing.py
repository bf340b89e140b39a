"""From what a server listed to what is offered: each entry is offered or held, none is lost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from agentkit.errors import DefinitionError
from agentkit.evolution.validation.foreign_texts import IMPORT_CHECKS
from agentkit.evolution.validation.report import Check
from agentkit.interop.mcp.client.limits import McpLimits
from agentkit.interop.mcp.client.listing import (
    HeldTool,
    HoldCode,
    ListedTool,
    Listing,
    RawListing,
)
from agentkit.interop.mcp.client.mending import malformed_entry
from agentkit.interop.mcp.client.naming import prefixed
from agentkit.interop.mcp.client.screening import overlong, remote_references, suspicions
from agentkit.interop.mcp.client.translation import fingerprint, listed_tool

NewTools: TypeAlias = Literal["hold", "screen"]
"""What becomes of a tool that nobody has approved."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportPolicy:
    """How a server's tools become ours.

    Attributes:
        server: The server's name.
        prefixes: Names on the server that are offered as ``server__tool``; True for all.
        trust_annotations: Whether what the server says of effects counts.
        new_tools: ``hold`` offers no tool that nobody approved, ``screen`` also an unknown one
            whose texts pass the checks.
        checks: What texts are asked.
        limits: What is too large.
    """

    server: str
    prefixes: Collection[str] | Literal[True] = ()
    trust_annotations: bool = False
    new_tools: NewTools = "hold"
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """What need not be worked out again when a server lists its tools anew.

    Attributes:
        known: Fingerprints by name of what was offered or approved before. A tool that is not what
            it was is held; one that is, is not looked through again.
        passed: Fingerprints whose texts passed the checks.
        read: Entries that were read, by fingerprint and offered name.
    """

    known: dict[str, str] = field(default_factory=dict)
    passed: set[str] = field(default_factory=set)
    read: dict[tuple[str, str], ListedTool] = field(default_factory=dict)


def import_listing(raw: RawListing, policy: ImportPolicy, memory: Memory) -> Listing:
    """Sort a server's entries into those that are offered and those that are held.

    Args:
        raw: What the server listed.
        policy: How its tools become ours.
        memory: What is known of the server; ``passed`` and ``read`` grow.
    """
    entries = list(_entries(raw.records, policy, memory))
    reasons = _look_through(entries, policy, memory)
    outcomes = [_vetted(one, policy, memory, reasons) for one in entries]
    tools = tuple(one for one in outcomes if isinstance(one, ListedTool))
    held = tuple(one for one in outcomes if isinstance(one, HeldTool))
    notes = (*_notes(raw, tools, policy), *_renamed(raw.records, memory.known, tools))
    return Listing(tools=tools, held=held, notes=notes)


class _Entry(NamedTuple):
    """An entry that could be read as a tool."""

    tool: ListedTool
    record: dict[str, Any]


def _entries(
    records: Sequence[dict[str, Any]], policy: ImportPolicy, memory: Memory
) -> Iterator[_Entry | HeldTool]:
    """Each entry as a tool, or why there is none; one that is only repeated is left out."""
    repeated = _repeated(records)
    seen: set[str] = set()
    for record in records:
        name = record["name"] if isinstance(record.get("name"), str) else ""
        if malformed := malformed_entry(record):
            yield _malformed(name, *malformed)
        elif repeated.get(name, 1) > 1:
            yield _duplicate(record, repeated[name])
        elif name not in repeated or name not in seen:
            seen.add(name)
            yield _sorted(record, policy, memory)


def _look_through(
    entries: Iterable[_Entry | HeldTool], policy: ImportPolicy, memory: Memory
) -> Mapping[str, tuple[str, ...]]:
    """Why a person should look at tools first, by fingerprint, for those whose texts are new."""
    new = {
        one.tool.fingerprint: one.tool
        for one in entries
        if isinstance(one, _Entry)
        and one.tool.fingerprint not in memory.passed
        and one.tool.fingerprint != memory.known.get(one.tool.name)
    }
    reasons = suspicions([tool.definition for tool in new.values()], checks=policy.checks)
    found = dict(zip(new, reasons, strict=True))
    memory.passed.update(print_of for print_of, why in found.items() if not why)
    return found


def _malformed(name: str, why: str, entry: Any) -> HeldTool:
    """An entry of which not even the official client could make a tool."""
    whole = entry if isinstance(entry, dict) else {"entry": entry}
    reason = f"it is not what MCP says: {why}."
    return HeldTool(name=name[:200], code="bad_entry", reasons=(reason,), record=whole)


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


def _duplicate(record: dict[str, Any], count: int) -> HeldTool:
    reason = f"the server lists {count} different tools of this name, so a call would be a guess."
    return _held(record, "duplicate", reason)


def _sorted(record: dict[str, Any], policy: ImportPolicy, memory: Memory) -> _Entry | HeldTool:
    name = str(record.get("name", ""))[:200]
    try:
        text = json.dumps(record, ensure_ascii=False, allow_nan=False)
        print_of = fingerprint(record)
    except (DefinitionError, ValueError, RecursionError) as error:
        return _held(record, "bad_entry", f"it can not be written as JSON: {error}")
    key = (print_of, policy.offered_name(name))
    tool = memory.read.get(key)
    if tool is None:
        read = _read(record, text, print_of, policy)
        if isinstance(read, HeldTool):
            return read
        tool = memory.read[key] = read
    return _Entry(tool, record)


def _read(
    record: dict[str, Any], text: str, print_of: str, policy: ImportPolicy
) -> ListedTool | HeldTool:
    """An entry as a definition, or why there is none.

    Args:
        record: The entry.
        text: The same as JSON.
        print_of: Its fingerprint.
        policy: How it becomes ours.
    """
    name, most = str(record.get("name", "")), policy.limits.max_definition_chars
    if len(text) > most:
        return _held(
            record, "too_large", f"its entry has {len(text):,} characters, {most:,} are allowed."
        )
    schemas = record.get("inputSchema"), record.get("outputSchema")
    remote = remote_references(*schemas) if '"$' in text else ()
    if remote:
        reason = f"its schema refers to {remote[0]!r}; only references within it are followed."
        return _held(record, "bad_schema", reason)
    try:
        tool = listed_tool(
            record,
            offered_name=policy.offered_name(name),
            reference=policy.reference,
            trust_annotations=policy.trust_annotations,
            print_of=print_of,
        )
    except DefinitionError as error:
        return _held(record, "bad_schema" if "chema" in str(error) else "bad_entry", f"{error}.")
    too_long = overlong(tool.definition, policy.limits)
    return _held(record, "too_large", too_long) if too_long else tool


def _held(record: dict[str, Any], code: HoldCode, reason: str) -> HeldTool:
    name = str(record.get("name", ""))[:200]
    return HeldTool(name=name, code=code, reasons=(reason,), record=record)


def _vetted(
    entry: _Entry | HeldTool,
    policy: ImportPolicy,
    memory: Memory,
    found: Mapping[str, tuple[str, ...]],
) -> ListedTool | HeldTool:
    """The tool, or why it is held."""
    if isinstance(entry, HeldTool):
        return entry
    tool, record = entry
    accepted = memory.known.get(tool.name)
    if accepted == tool.fingerprint:
        return tool
    reasons = found.get(tool.fingerprint, ())
    code: HoldCode = "suspicious_text"
    if accepted is not None:
        changed = (
            f"it is not what was accepted: its fingerprint was {accepted[:12]} and is "
            f"{tool.fingerprint[:12]}."
        )
        code, reasons = "changed", (changed, *reasons)
    elif not reasons and policy.new_tools == "hold":
        code, reasons = "unapproved", ("nobody has approved it yet.",)
    if not reasons:
        return tool
    return HeldTool(name=tool.name, code=code, reasons=reasons, tool=tool, record=record)


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
