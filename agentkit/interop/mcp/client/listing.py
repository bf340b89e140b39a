"""What came of a server's list of tools: those that are offered, those that wait, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agentkit.evolution.validation.reasons import shown
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition

HoldCode = Literal[
    "suspicious_text", "changed", "unapproved", "too_large", "bad_schema", "bad_entry", "duplicate"
]
APPROVABLE: frozenset[HoldCode] = frozenset({"suspicious_text", "changed", "unapproved"})
"""What a person can wave through; the others can not be called as they are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedTool:
    """A tool that may be offered.

    Attributes:
        name: What the server calls it.
        definition: What models see, under the name that the library uses.
        fingerprint: Digest over everything that the server said of it and a model could read.
        hints: What the server says of its effects. It is shown to people; whether it counts is
            ``trust_annotations``.
        wrapped: Whether the value is the field ``result`` of the object that the server sends.
    """

    name: str
    definition: ToolDefinition
    fingerprint: str
    hints: Mapping[str, bool] = field(default_factory=dict)
    wrapped: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldTool:
    """A tool that is not offered.

    Attributes:
        name: What the server calls it; as much of it as could be read.
        code: What kind of reason it is.
        reasons: Why, each in a sentence.
        tool: What would be offered, if it can be.
        record: What the server said, whole.
    """

    name: str
    code: HoldCode
    reasons: tuple[str, ...]
    tool: ListedTool | None = None
    record: JsonObject = field(default_factory=dict, repr=False)

    @property
    def is_approvable(self) -> bool:
        """Whether a person can have it offered as it is."""
        return self.tool is not None and self.code in APPROVABLE

    def __str__(self) -> str:
        return f"{shown(self.name)} is held [{self.code}]: {' '.join(self.reasons)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """A server's tools at one moment.

    Attributes:
        tools: Those that are offered, in the server's order.
        held: Those that wait for a person, or can not be used.
        notes: What else is to be told, such as repairs, new names, and a listing that was cut.
    """

    tools: tuple[ListedTool, ...] = ()
    held: tuple[HeldTool, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def fingerprints(self) -> dict[str, str]:
        """The offered tools' fingerprints by the names that the server uses."""
        return {tool.name: tool.fingerprint for tool in self.tools}

    def holding(self, name: str) -> HeldTool | None:
        """Why the tool of that name is held; None when it is not."""
        return next((held for held in self.held if held.name == name), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class RawListing:
    """What a server answered to ``tools/list``, all pages together.

    Attributes:
        records: The tools as JSON objects.
        cut: Why reading stopped before the end; empty when it did not.
    """

    records: tuple[dict[str, Any], ...] = ()
    cut: str = ""
