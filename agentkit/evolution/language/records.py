"""``LanguageReport``: how the words of tools changed, as typed numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from agentkit.evolution.language.trends import Convergence

FORMAT_VERSION = 1
"""Version of the JSON form of a report."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TextMeasures:
    """One state of a text.

    Attributes:
        words: How many it has.
        type_token_ratio: Different words for each; None without words. Falls with length.
        moving_ratio: The mean ratio of all windows of equal length; None for a text shorter than
            the window.
        depth: Of its deepest sentence, by the report's ``depth_method``; 0 without words.
        mean_depth: The mean over its sentences.
        tokens: What its definitions cost in a prompt in full, by the report's ``token_method``.
    """

    words: int
    type_token_ratio: float | None
    moving_ratio: float | None
    depth: float
    mean_depth: float
    tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class TextChange:
    """From one state of a text to another.

    Attributes:
        characters: Normalised edit distance in characters, 0 to 1.
        words: The same in words and marks.
        similarity: Likeness of meaning, by the report's ``similarity_method``; None where nothing
            is known of one of the texts.
    """

    characters: float
    words: float
    similarity: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class FieldLanguage:
    """One field of a tool, first against last; both texts are kept for the difference in words.

    Attributes:
        field: ``summary``, ``usage_rules``, ``rules``, ``parameters.city``, ...
        before: The first text; empty when the field came later.
        after: The last one; empty when it is gone.
        change: How far apart they are.
    """

    field: str
    before: str
    after: str
    change: TextChange


@dataclass(frozen=True, kw_only=True, slots=True)
class RevisionLanguage:
    """One revision.

    Attributes:
        version: The library version that made it.
        created_at: ISO 8601 time in UTC.
        author: Who made it.
        reason: Why, in words.
        proposal_id: The change that made it.
        fields: The fields whose words it changed.
        measures: Its words.
        change: From the revision before; None for the first.
        from_first: From the first revision; None for the first.
    """

    version: int
    created_at: str
    author: str
    reason: str
    proposal_id: str
    fields: tuple[str, ...]
    measures: TextMeasures
    change: TextChange | None
    from_first: TextChange | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolLanguage:
    """One tool.

    Attributes:
        tool_name: The tool.
        revisions: Its revisions, those left out in which it was removed.
        removed_at: Library versions that removed it.
        is_removed: Whether it is gone now.
        window: Words of the window of ``moving_ratio``: the same for all revisions, so that they
            compare; None where the shortest is too short for any.
        fields: The fields whose words differ between first and last.
        convergence: The sizes of its rounds. A round is a revision that changed words.
    """

    tool_name: str
    revisions: tuple[RevisionLanguage, ...]
    removed_at: tuple[int, ...]
    is_removed: bool
    window: int | None
    fields: tuple[FieldLanguage, ...]
    convergence: Convergence

    @property
    def first(self) -> RevisionLanguage:
        """The first revision."""
        return self.revisions[0]

    @property
    def last(self) -> RevisionLanguage:
        """The last one."""
        return self.revisions[-1]

    @property
    def rounds(self) -> int:
        """How often its words were changed."""
        return len(self.convergence.sizes)


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """The edits that were the nth of their tools.

    Attributes:
        number: From 1.
        tools: How many tools had so many.
        mean_size: Mean normalised edit distance in characters from the round before.
        largest: The largest of them.
    """

    number: int
    tools: int
    mean_size: float
    largest: float


@dataclass(frozen=True, kw_only=True, slots=True)
class LibraryTokens:
    """What all tools together cost at one library version, in full."""

    version: int
    tools: int
    tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class WholeLanguage:
    """All tools that are there now together, each with its first against its last words.

    Attributes:
        before: The first words, the tools in the order of their names.
        after: The last ones.
        edit_share: The edits of all tools, in characters, for each character of the longer side:
            the mean of the tools' distances, weighted by length, unchanged tools included.
        mean_change: The unweighted mean over the changed tools; None when none changed.
        mean_similarity: The mean over the changed tools of which it is known; None for none.
    """

    before: TextMeasures
    after: TextMeasures
    edit_share: float
    mean_change: float | None
    mean_similarity: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class LanguageReport:
    """How the words of a library's tools changed.

    Attributes:
        tools: Each tool, by name.
        whole: All of them together.
        rounds: The edits by round.
        tokens: The cost of the library by version.
        similarity_method: How ``similarity`` was found; a proxy says that it is one.
        depth_method: How ``depth`` was found; a proxy says that it is one.
        token_method: How tokens were counted.
        window: Words of the window of ``moving_ratio`` for the whole, and at most for a tool.
    """

    tools: tuple[ToolLanguage, ...]
    whole: WholeLanguage
    rounds: tuple[Round, ...]
    tokens: tuple[LibraryTokens, ...]
    similarity_method: str
    depth_method: str
    token_method: str
    window: int

    @property
    def changed(self) -> tuple[ToolLanguage, ...]:
        """The tools whose words were ever changed, those with the most rounds first."""
        changed = [tool for tool in self.tools if tool.rounds]
        return tuple(sorted(changed, key=lambda tool: (-tool.rounds, tool.tool_name)))

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {"format": FORMAT_VERSION, **asdict(self)}
