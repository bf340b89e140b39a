"""The event that tells of a change that no proposal made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from agentkit.library.chain import EventDraft
from agentkit.library.events import Author
from agentkit.library.library import Library
from agentkit.tools.canonical import digest
from agentkit.tools.definition import ToolDefinition

Operation = Literal[
    "register",
    "bind",
    "record",
    "learn",
    "insert",
    "import",
    "mend",
    "repin",
    "rollback",
    "undo",
    "edit",
]
"""What kind of change it is; ``bind`` is a contract that changed in code."""

_ABOUT_ONE: frozenset[Operation] = frozenset({"insert", "rollback"})
"""Operations that are about one tool; what else they write are new pins above it."""

_MOST_TOOLS = 1_000  # that one event lists with their digests
_LONGEST = 2_000  # characters of a reason


def written(
    operation: Operation,
    change_id: str,
    definitions: Sequence[ToolDefinition],
    *,
    before: Library,
    author: Author,
    reason: str = "",
    evidence: tuple[str, ...] = (),
    replaced: Sequence[str] = (),
) -> EventDraft:
    """The event of a change.

    Args:
        operation: What kind of change it is.
        change_id: Identifies the change in the store.
        definitions: What is written, children before parents; the first is what it is about.
        before: The library before.
        author: Who writes.
        reason: Why; an event keeps its first 2,000 characters.
        evidence: Ids of the episodes behind it.
        replaced: Names of tools that get other words than any proposal gave them.
    """
    facts: dict[str, Any] = {"operation": operation, "change": change_id}
    if replaced:
        facts["replaced"] = list(replaced)
    draft = EventDraft(
        kind="written",
        author=author,
        reason=cut(reason),
        library_version=before.version + 1,
        evidence=evidence,
        facts=facts,
    )
    if len(definitions) == 1 or (definitions and operation in _ABOUT_ONE):
        return _of_one(draft, definitions, before)
    return replace(draft, facts=facts | _of_many(definitions)) if definitions else draft


def cut(text: str) -> str:
    """Text as an event keeps it: of bounded length, and without halves of surrogate pairs."""
    short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\u2026"
    return short.encode("utf-8", "replace").decode()


def _of_one(
    draft: EventDraft, definitions: Sequence[ToolDefinition], library: Library
) -> EventDraft:
    """A change of one tool, with composites above it that got new pins."""
    changed, *above = definitions
    before = library.get(changed.name)
    facts = dict(draft.facts)
    if above:
        facts["repinned"] = {definition.name: definition.digest for definition in above}
    return replace(
        draft,
        tool_name=changed.name,
        digest_before="" if before is None else before.definition.digest,
        digest_after=changed.digest,
        facts=facts,
    )


def _of_many(definitions: Sequence[ToolDefinition]) -> dict[str, Any]:
    """A change of several tools: each with its digest, or of very many the digest of all."""
    digests = {definition.name: definition.digest for definition in definitions}
    if len(digests) <= _MOST_TOOLS:
        return {"tools": digests}
    return {"count": len(digests), "digest": digest(digests)}
