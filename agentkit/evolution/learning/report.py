"""What came of learning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from agentkit.tools.definition import Example

SkipReason = Literal[
    "unknown_tool",  # the library does not hold the tool (any more)
    "no_words",  # nothing was asked that retrieval could read
    "too_long",  # the query is longer than is kept
    "private",  # the query holds what looks like an address or a key
    "invisible",  # the query holds characters that nobody sees, as attacks on models do
    "suspicious",  # the query speaks to models, as attacks do
    "arguments_changed",  # the call does not fit the tool as it is now
    "learned_before",  # the tool has learned from the episode already
    "known_words",  # an example of the tool asks in the same words
    "full",  # the tool has as many examples as are kept
]
"""Why a successful call taught nothing. ``docs/learning.md`` explains each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Skipped:
    """A successful call that taught nothing.

    Attributes:
        tool: The tool that was called.
        episode_id: Where.
        reason: Why nothing was learned.
        detail: The same with what was found, in words; never what is private itself.
    """

    tool: str
    episode_id: str
    reason: SkipReason
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class LearnReport:
    """What came of learning from episodes.

    Attributes:
        version: The library version that holds the lessons, with ``is_written``; else the one
            that was looked at.
        is_written: Whether this made a new library version.
        uses: Successful calls in episodes that went well, once for each text that they served.
        added: The new examples, by tool.
        skipped: Calls that taught nothing, with the reason.
        evidence: Ids of the episodes that taught something.
        repinned: Composites above the tools, pinned to their new revisions in the same change.
    """

    version: int
    is_written: bool = False
    uses: int = 0
    added: Mapping[str, tuple[Example, ...]] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()
    evidence: tuple[str, ...] = ()
    repinned: tuple[str, ...] = ()

    def written(self, version: int) -> LearnReport:
        """The same, now that this version holds it."""
        return replace(self, version=version, is_written=True)

    def repeated(self, version: int) -> LearnReport:
        """Nothing was added: the store knew the proposal, which made this version."""
        return LearnReport(version=version, uses=self.uses, skipped=self.skipped)

    @property
    def reasons(self) -> Mapping[SkipReason, int]:
        """How many calls taught nothing, by reason, the most frequent first."""
        return dict(Counter(one.reason for one in self.skipped).most_common())

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {
            "version": self.version,
            "is_written": self.is_written,
            "uses": self.uses,
            "added": {
                name: [
                    {"query": one.query, "arguments": one.arguments, "is_whole": one.is_whole}
                    for one in examples
                ]
                for name, examples in self.added.items()
            },
            "skipped": [
                {
                    "tool": one.tool,
                    "episode_id": one.episode_id,
                    "reason": one.reason,
                    "detail": one.detail,
                }
                for one in self.skipped
            ],
            "evidence": list(self.evidence),
            "repinned": list(self.repinned),
        }

    def __str__(self) -> str:
        examples = _counted(sum(map(len, self.added.values())), "example")
        verb = "learned" if self.is_written or not self.added else "to be learned"
        tools, calls = _counted(len(self.added), "tool"), _counted(self.uses, "call")
        return f"{examples} {verb} by {tools} from {calls}, library version {self.version}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
