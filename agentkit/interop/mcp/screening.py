"""Screen what a server listed: each entry is offered or held, none is lost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agentkit.errors import DefinitionError
from agentkit.evolution.validation.foreign_texts import suspicions
from agentkit.evolution.validation.report import FailedCheck, shown
from agentkit.interop.mcp.listing import (
    LONGEST_NAME,
    HeldTool,
    HoldCode,
    ListedTool,
    Listing,
    McpLimits,
    RawListing,
    fingerprint,
    listed_tool,
    look_of,
    prefixed,
)

NewTools: TypeAlias = Literal["hold", "screen"]
"""The policy for unapproved tools."""

_MOST_REASONS = 5
_MOST_LISTINGS = 10
"""After so many full listings of other names nothing new is offered unasked."""

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

_LONGEST_ENTRY = 2_000_000
"""Characters of one entry as JSON; what says so much of one tool is not a description."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportPolicy:
    """How a server's tools become ours.

    Attributes:
        server: The server's name.
        prefix: Whether its tools are offered as ``server__tool``.
        trust_annotations: Whether what the server says of effects counts.
        new_tools: ``hold`` offers no tool that nobody approved, ``screen`` also an unknown one
            whose texts pass the checks.
        limits: What is too large.
    """

    server: str
    prefix: bool = False
    trust_annotations: bool = False
    new_tools: NewTools = "hold"
    limits: McpLimits = field(default_factory=McpLimits)

    def offered_name(self, name: str) -> str:
        """The library's name for a tool of the server."""
        return prefixed(self.server, name) if self.prefix else name


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Results remembered for the server's next listing.

    Attributes:
        known: Fingerprints by name of what was offered or approved before. A tool that is not what
            it was is held; one that is, is not looked through again.
        passed: Fingerprints whose texts passed the checks, of the last listing.
        read: Entries that were read, by fingerprint and offered name, of the last listing.
    """

    known: dict[str, str] = field(default_factory=dict)
    passed: set[str] = field(default_factory=set)
    read: dict[tuple[str, str], ListedTool] = field(default_factory=dict)


def import_listing(raw: RawListing, policy: ImportPolicy, memory: Memory) -> Listing:
    """Sort a server's entries into those that are offered and those that are held.

    Args:
        raw: What the server listed.
        policy: How its tools become ours.
        memory: What is known of the server; ``passed`` and ``read`` become those of the listing.
    """
    counts = Counter(str(record.get("name")) for record in raw.records)
    first: dict[str, str] = {}  # names as readers tell them apart, with or without the server's
    outcomes: list[ListedTool | HeldTool] = []
    for record in raw.records:
        name = str(record.get("name"))
        found: ListedTool | HeldTool
        if len(name) > LONGEST_NAME:
            reason = f"its name has {len(name):,} characters, more than {LONGEST_NAME}."
            found = _held(record, "bad_entry", reason)
        elif counts[name] > 1:
            reason = "the server lists several tools of this name, so a call would be a guess."
            found = _held(record, "duplicate", reason)
        elif (other := first.setdefault(_bare_look(name, policy.server), name)) != name:
            reason = f"its name is too like that of {shown(other)}, which the server lists first."
            found = _held(record, "duplicate", reason)
        else:
            found = _read(record, policy, memory)
        vetted = found if isinstance(found, HeldTool) else _vetted(found, record, policy, memory)
        outcomes.append(vetted)
    read = [one if isinstance(one, ListedTool) else one.tool for one in outcomes]
    prints = {one.fingerprint for one in read if one is not None}
    memory.passed.intersection_update(prints)  # or a server that lists ever new ones fills memory
    for key in [key for key in memory.read if key[0] not in prints]:
        del memory.read[key]
    tools = tuple(one for one in outcomes if isinstance(one, ListedTool))
    held = tuple(one for one in outcomes if isinstance(one, HeldTool))
    return Listing(tools=tools, held=held, notes=tuple(_notes(raw, tools)))


def _bare_look(name: str, server: str) -> str:
    """A name as readers tell it, without that of the server: offered names may gain or lack it."""
    looks, own, start = look_of(name), prefixed(look_of(server), ""), 0
    while looks.startswith(own, start):
        start += len(own)
    return looks[start:]


def _read(record: dict[str, Any], policy: ImportPolicy, memory: Memory) -> ListedTool | HeldTool:
    """An entry as a definition, or why there is none."""
    name = str(record.get("name", ""))
    try:
        text = json.dumps(record, ensure_ascii=False, allow_nan=False)
        if len(text) > _LONGEST_ENTRY:
            reason = f"it has {len(text):,} characters, more than {_LONGEST_ENTRY:,}."
            return _held(record, "bad_entry", reason)
        print_of = fingerprint(record)
    except (DefinitionError, ValueError, RecursionError) as error:
        return _held(record, "bad_entry", f"it cannot be written as JSON: {error}")
    key = (print_of, policy.offered_name(name))
    if key not in memory.read:
        try:
            tool = _tool_of(record, text, print_of, policy)
        except DefinitionError as error:
            code: HoldCode = "bad_schema" if "chema" in str(error) else "bad_entry"
            return _held(record, code, f"{error}.")
        except _TooLargeError as error:
            return _held(record, "too_large", f"{error} are allowed.")
        memory.read[key] = tool
    return memory.read[key]


class _TooLargeError(Exception):
    """An entry is too large to be looked through."""


def _tool_of(record: dict[str, Any], text: str, print_of: str, policy: ImportPolicy) -> ListedTool:
    """The tool of an entry; ``text`` is the entry as JSON.

    Raises:
        DefinitionError: It is none.
        _TooLargeError: It is beyond the limits.
    """
    most, allowed = policy.limits.max_definition_chars, policy.limits.max_text_chars
    if len(text) > most:
        raise _TooLargeError(f"its entry has {len(text):,} characters, {most:,}")
    schemas = record.get("inputSchema"), record.get("outputSchema")
    if remote := next(remote_references(*schemas), None) if '"$' in text else None:
        raise DefinitionError(
            f"its schema refers to {remote!r}; only references within it are followed"
        )
    tool = listed_tool(
        record,
        offered_name=policy.offered_name(str(record.get("name", ""))),
        server=policy.server,
        trust_annotations=policy.trust_annotations,
        print_of=print_of,
    )
    words = tool.definition.description
    longest = max(map(len, (words.summary, *words.parameters.values())))
    if longest > allowed:
        raise _TooLargeError(f"one of its texts has {longest:,} characters, {allowed:,}")
    return tool


def remote_references(*schemas: object) -> Iterator[str]:
    """References of schemas that lead out of the document; nothing is fetched for a schema."""
    waiting: list[Any] = list(schemas)
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            references = (part.get(key) for key in _REFERENCES)
            yield from (text for text in references if isinstance(text, str) and text[:1] != "#")
            waiting.extend(part.values())
        elif isinstance(part, list | tuple):
            waiting.extend(part)


def _held(record: dict[str, Any], code: HoldCode, reason: str) -> HeldTool:
    name = str(record.get("name", ""))[:LONGEST_NAME]
    return HeldTool(name=name, code=code, reasons=(reason,), record=record)


def _in_words(failed: Sequence[FailedCheck]) -> tuple[str, ...]:
    """Findings in sentences; the first of many."""
    first = (f"{one} ({one.excerpt!r})" for one in failed[:_MOST_REASONS])
    more = len(failed) - _MOST_REASONS
    return (*first, *((f"and {more} more",) if more > 0 else ()))


def _vetted(
    tool: ListedTool, record: dict[str, Any], policy: ImportPolicy, memory: Memory
) -> ListedTool | HeldTool:
    """The tool, or why it is held."""
    accepted = memory.known.get(tool.name)
    if accepted == tool.fingerprint:
        return tool
    reasons: tuple[str, ...] = ()
    if tool.fingerprint not in memory.passed:
        reasons = _in_words(suspicions(tool.definition))
    if not reasons:
        memory.passed.add(tool.fingerprint)
    code: HoldCode = "suspicious_text"
    if accepted is not None:
        changed = (
            f"it is not what was accepted: its fingerprint was {accepted[:12]} and is "
            f"{tool.fingerprint[:12]}."
        )
        code, reasons = "changed", (changed, *reasons)
    elif not reasons and policy.new_tools == "hold":
        code, reasons = "unapproved", ("nobody has approved it yet.",)
    elif not reasons and len(memory.known) >= _MOST_LISTINGS * policy.limits.max_tools:
        code, reasons = "unapproved", ("the server has listed too many others before.",)
    if not reasons:
        return tool
    return HeldTool(name=tool.name, code=code, reasons=reasons, tool=tool, record=record)


def _notes(raw: RawListing, tools: Iterable[ListedTool]) -> Iterator[str]:
    if raw.cut:
        yield raw.cut
    for tool in tools:
        if tool.definition.origin.original is not None:
            yield f"{tool.name}: its schema was repaired on import"
