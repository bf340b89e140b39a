"""Learning from use: successful episodes become worked examples of the tools that they called."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from agentkit.errors import DefinitionError, UsageError
from agentkit.evolution.usage import Use, Words, private_part, suspicious_part, varied, words_of
from agentkit.library.library import Library
from agentkit.messages import JsonObject
from agentkit.retrieval.words import terms
from agentkit.tools.canonical import is_json
from agentkit.tools.definition import Example, ToolDefinition
from agentkit.tools.error_messages import ArgumentProblem
from agentkit.tools.invisible import invisible
from agentkit.tools.validation import ArgumentValidator

# --- What learning from use keeps, and how much of it --------------------------------------------

_LONGEST_QUERY = 1_000  # characters; a longer one teaches nothing
_LONGEST_ARGUMENT = 500  # characters of JSON


@dataclass(frozen=True, kw_only=True, slots=True)
class LearningConfig:
    """What becomes an example of use. The caps bound what one tool's definition may grow to.

    Attributes:
        max_examples: Most examples with a query that a tool has; beyond, nothing is learned.
    """

    max_examples: int = 60

    def __post_init__(self) -> None:
        if self.max_examples < 1:
            raise UsageError("LearningConfig.max_examples must be 1 or more")


# --- What came of learning -----------------------------------------------------------------------


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
"""Why a successful call taught nothing. ``docs/proposers.md`` explains each."""


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
            "skipped": [asdict(one) for one in self.skipped],
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


# --- From uses to examples ------------------------------------------------------------------------


def lessons_of(
    uses: Sequence[Use],
    library: Library,
    rules: LearningConfig,
    learned_from: Callable[[str], Collection[str]],
) -> tuple[tuple[ToolDefinition, ...], LearnReport]:
    """The definitions with what they learn, and what came of each use.

    Args:
        uses: Successful calls with the words that they served, in the order of time.
        library: The library as it is.
        rules: What is kept.
        learned_from: Ids of the episodes that a tool has learned from.
    """
    by_tool: dict[str, list[Use]] = {}
    for use in uses:
        by_tool.setdefault(use.tool, []).append(use)
    added: dict[str, tuple[Example, ...]] = {}
    skipped: list[Skipped] = []
    taught: set[str] = set()
    for name, own in by_tool.items():
        tool = library.get(name)
        if tool is None:
            skipped += [_skipped(use, "unknown_tool", f"{name!r} is not there") for use in own]
            continue
        learned = learned_from(name)
        chosen = _chosen(own, tool.definition, rules, learned, skipped)
        if chosen:
            added[name] = tuple(map(_example, chosen))
            taught.update(use.episode_id for use in chosen)
    grown = tuple(
        replace(known, examples=(*known.examples, *new))
        for known, new in ((library[name].definition, new) for name, new in added.items())
    )
    report = LearnReport(
        version=library.version,
        uses=len(uses),
        added=added,
        skipped=tuple(skipped),
        evidence=tuple(dict.fromkeys(use.episode_id for use in uses if use.episode_id in taught)),
    )
    return grown, report


def _example(use: Use) -> Example:
    """The words with the arguments that may be kept; what came back is not a part of it."""
    kept = {
        name: value
        for name, value in use.arguments.items()
        if _is_short(value, _LONGEST_ARGUMENT)
        and private_part({name: value}) is None
        and suspicious_part({name: value}) is None
    }
    return Example(arguments=kept, query=use.query, is_whole=False)


def _chosen(
    uses: Sequence[Use],
    definition: ToolDefinition,
    rules: LearningConfig,
    learned: Collection[str],
    skipped: list[Skipped],
) -> list[Use]:
    """The uses to keep, with arguments as the tool takes them; the others are told why not."""
    asked = [one for one in definition.examples if one.query]
    known = {words_of(one.query, one.arguments) for one in asked}
    validator = ArgumentValidator(definition)
    candidates: dict[Words, Use] = {}
    for use in uses:
        fault = _fault_of_words(use, learned)
        fitting = use.arguments if fault else _fitting(use, validator)
        words = words_of(use.query, use.arguments)
        if fault is None and fitting is None:
            fault = "arguments_changed", "the call does not fit the tool's parameters of today"
        elif fault is None and (words in known or words in candidates):
            fault = "known_words", f"{use.query!r} says what another example says"
        if fault is not None:
            skipped.append(_skipped(use, *fault))
        elif fitting is not None:
            candidates[words] = replace(use, arguments=fitting)
    kept = set(varied(list(candidates), known, rules.max_examples - len(asked)))
    told = f"it has as many examples as are kept ({rules.max_examples})"
    for at, use in enumerate(candidates.values()):
        if at not in kept:
            skipped.append(_skipped(use, "full", told))
    return [use for at, use in enumerate(candidates.values()) if at in kept]


def _fault_of_words(use: Use, learned: Collection[str]) -> tuple[SkipReason, str] | None:
    if not is_json(use.query) or not terms(use.query):
        return "no_words", "nothing was asked in words"
    if len(use.query) > _LONGEST_QUERY:
        return "too_long", f"the query has {len(use.query):,} characters"
    private = private_part(use.query)
    if private is not None:
        return "private", f"the query seems to hold {private}"
    if use.episode_id in learned:
        return "learned_before", "it has learned from this episode"
    return _hostile(use.query)


def _hostile(query: str) -> tuple[SkipReason, str] | None:
    if hidden := invisible(query):
        return "invisible", f"the query holds U+{ord(hidden[0]):04X}, which nobody sees"
    if found := suspicious_part(query):
        return "suspicious", f"the query is suspicious: {found}"
    return None


def _fitting(use: Use, validator: ArgumentValidator) -> JsonObject | None:
    """The arguments as the tool takes them today, mended as a run mends them; None if it does not.

    A tool whose schema is broken takes none.
    """
    try:
        taken = validator.runnable(use.arguments)
    except DefinitionError:
        return None
    return None if isinstance(taken, ArgumentProblem) else taken


def _skipped(use: Use, reason: SkipReason, detail: str) -> Skipped:
    return Skipped(tool=use.tool, episode_id=use.episode_id, reason=reason, detail=detail)


def _is_short(value: Any, longest: int) -> bool:
    """Whether a value is JSON data of at most so many characters."""
    try:
        return is_json(value) and len(json.dumps(value, ensure_ascii=False)) <= longest
    except RecursionError:  # nested deeper than anybody reads
        return False
