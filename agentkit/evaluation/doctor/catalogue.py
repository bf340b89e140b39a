"""``Catalogue``: the tools that the checks look at, their use in stored episodes, and findings.

Tools that are the same tool, or almost, are found without comparing all with all. Each tool is a
set of features: words of its description and pairs of neighbouring words, words of
its name, its parameters. A feature weighs as much as it is rare (inverse document frequency), so
two tools that differ in the one word that matters stay distinct. Likeness is the weighted Jaccard
index: the weight of what both have over the weight of what either has.

Two sets whose likeness reaches t share at least one feature among the rarest of each: those that
make up the first 1 - t of its weight. So only these are indexed (prefix filtering: Chaudhuri,
Ganti, Kaushik, "A primitive operator for similarity joins in data cleaning", ICDE 2006; Xiao et
al., "Efficient similarity joins for near duplicate detection", WWW 2008). Tools with the same
features are one tool here, so ten thousand copies cost no more than one.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, pairwise
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agentkit.episodes import Episode
from agentkit.episodes.labels import in_library_names, is_extra_record
from agentkit.library import Library
from agentkit.messages import ToolResult
from agentkit.retrieval.cards import estimate_tokens, first_sentence, schema_text
from agentkit.retrieval.words import terms
from agentkit.tools.definition import ToolDefinition

# --- findings -------------------------------------------------------------------------------------

Severity: TypeAlias = Literal["error", "warning", "note"]
"""``error``: calls or whole requests fail. ``warning``: the model or the retriever is misled, or
tokens are wasted. ``note``: worth knowing; often fine as it is."""

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""The worst first."""

_LISTED = 4
_QUOTED = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """One thing that can be wrong with a tool.

    Attributes:
        code: Its name, as ``--check`` takes it.
        severity: How much it matters.
        title: What it is, in a few words.
        why: Why it matters, in a sentence.
        advice: What to do about it.
    """

    code: str
    severity: Severity
    title: str
    why: str
    advice: str


def _read_kinds() -> dict[str, Kind]:
    text = Path(__file__).with_name("kinds.toml").read_text(encoding="utf-8")
    return {code: Kind(code=code, **fields) for code, fields in tomllib.loads(text).items()}


KINDS: Mapping[str, Kind] = _read_kinds()
"""Everything that can be found, by code, in the order of the checks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing found in one tool, or in several together.

    Attributes:
        kind: What it is, why it matters, what to do.
        tools: The tools concerned; where they differ in part, the one to look at first.
        what: What was found, in a sentence with the values concerned.
        where: Places in the definition: ``summary``, ``parameters.city``, ``required``.
        tokens: Prompt tokens concerned, estimated.
    """

    kind: Kind
    tools: tuple[str, ...]
    what: str
    where: tuple[str, ...] = ()
    tokens: int = 0

    def to_json(self) -> dict[str, Any]:
        """The finding as a JSON object; empty parts are left out."""
        record: dict[str, Any] = {
            "code": self.kind.code,
            "severity": self.kind.severity,
            "tools": list(self.tools),
            "what": self.what,
            "why": self.kind.why,
            "advice": self.kind.advice,
        }
        if self.where:
            record["where"] = list(self.where)
        if self.tokens:
            record["tokens"] = self.tokens
        return record


def listed(names: Sequence[str], *, shown: int = _LISTED) -> str:
    """``a, b``; a long list is cut: ``a, b, c, d and 12 more``."""
    text = ", ".join(names[:shown])
    return f"{text} and {len(names) - shown:,} more" if len(names) > shown else text


def quoted(text: str, *, longest: int = _QUOTED) -> str:
    """``'text'`` on one line, its middle left out when it is long."""
    line = " ".join(text.split())
    if len(line) > longest:
        half = (longest - 3) // 2
        line = f"{line[:half].rstrip()} ... {line[-half:].lstrip()}"
    return repr(line)


# --- tools and their use --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolUsage:
    """Counts over episodes.

    Attributes:
        episodes: How many there were.
        calls: How many calls were made in them.
        shown: In how many episodes each tool was on a shortlist.
        called: How often each tool was called.
        succeeded: How often with a result.
        failures: For each tool, how often each rule was broken.
        requests: For each tool, requests of episodes in which it gave a result, each once.
    """

    episodes: int
    calls: int
    shown: Mapping[str, int]
    called: Mapping[str, int]
    succeeded: Mapping[str, int]
    failures: Mapping[str, Mapping[str, int]]
    requests: Mapping[str, tuple[str, ...]]


def usage_of(episodes: Iterable[Episode]) -> ToolUsage:
    """Count, in one pass and in any order; a shadow run or a view is no use of a tool."""
    shown: Counter[str] = Counter()
    called: Counter[str] = Counter()
    succeeded: Counter[str] = Counter()
    failures: dict[str, Counter[str]] = {}
    requests: dict[str, set[str]] = {}
    number = 0
    for episode in map(in_library_names, episodes):
        if is_extra_record(episode.metadata):
            continue
        number += 1
        traces = [turn.retrieval for turn in episode.turns if turn.retrieval is not None]
        shown.update({name for one in traces for name in (*one.shortlist, *one.offered)})
        called.update(call.name for call in episode.calls)
        for result in episode.results:
            if result.status == "ok":
                succeeded[result.name] += 1
                requests.setdefault(result.name, set()).add(episode.request)
            elif result.status == "failed":
                failures.setdefault(result.name, Counter())[_broken_rule(result)] += 1
    return ToolUsage(
        episodes=number,
        calls=called.total(),
        shown=shown,
        called=called,
        succeeded=succeeded,
        failures=failures,
        requests={name: tuple(sorted(filter(None, found))) for name, found in requests.items()},
    )


def _broken_rule(result: ToolResult) -> str:
    failure = result.failure
    if failure is None:
        return "failed without a reason"
    return f"{failure.kind}: {failure.rule}" if failure.rule else failure.kind


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """Tools, what is known of their use, and how to look.

    Attributes:
        library: The tools, in name order; where several entries of a file claim one name, the
            later ones are called ``name__2``, ``name__3`` here.
        usage: What the stored episodes say of each tool; None without episodes.
        only: The tools to report on; None for all. The others still matter, as near duplicates.
        progress: Called with how many of how many tools the longest check, for confused pairs,
            has searched for.
    """

    library: Library
    usage: ToolUsage | None = None
    only: frozenset[str] | None = None
    progress: Callable[[int, int], None] | None = None

    @classmethod
    def of(
        cls,
        definitions: Iterable[ToolDefinition],
        *,
        episodes: Iterable[Episode] | None = None,
    ) -> Catalogue:
        """A catalogue of definitions in any order; the order changes nothing that is found."""
        return cls(
            library=Library(_distinct(definitions)),
            usage=None if episodes is None else usage_of(episodes),
        )

    @cached_property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The definitions that are reported on, in name order."""
        if self.only is None:
            return self.library.definitions
        return tuple(d for d in self.library.definitions if d.name in self.only)

    @cached_property
    def tokens(self) -> Mapping[str, int]:
        """The prompt tokens of each tool's full schema, for all tools of the library."""
        return {d.name: estimate_tokens(schema_text(d)) for d in self.library.definitions}

    @cached_property
    def alike(self) -> tuple[DuplicateGroup, ...]:
        """Groups of tools that are alike, whichever are reported on."""
        return near_duplicates(self.library.definitions)

    @cached_property
    def duplicates(self) -> Mapping[str, frozenset[str]]:
        """Each tool that has near duplicates, with them; siblings do not count."""
        groups = [frozenset(group.tools) for group in self.alike if not group.are_siblings]
        return {name: group for group in groups for name in group}


def given_name(definition: ToolDefinition) -> str:
    """The name that the source gave, before an import made it unique."""
    return definition.origin.original_name or definition.name


def _distinct(definitions: Iterable[ToolDefinition]) -> list[ToolDefinition]:
    """The definitions, copies of a name called ``name__2``, ``name__3`` ... in digest order."""
    by_name: dict[str, list[ToolDefinition]] = {}
    for definition in definitions:
        by_name.setdefault(definition.name, []).append(definition)
    taken = set(by_name)
    found: list[ToolDefinition] = []
    for name, group in by_name.items():
        first, *others = sorted(group, key=lambda one: one.digest) if len(group) > 1 else group
        found.append(first)
        free = (new for at in count(2) if (new := f"{name}__{at}") not in taken)
        for other, new_name in zip(others, free, strict=False):
            taken.add(new_name)
            origin = replace(other.origin, original_name=given_name(other))
            found.append(replace(other, name=new_name, origin=origin))
    return sorted(found, key=lambda definition: definition.name)


# --- near duplicates ------------------------------------------------------------------------------

MIN_LIKENESS = 0.8
"""Weighted Jaccard index from which two tools count as almost the same."""

_NEIGHBOURS = 50
"""Most earlier tools that a tool is compared with by one feature: bounds the work where thousands
of tools differ in a word each, at the price of finding them in several groups."""

Features = frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class DuplicateGroup:
    """Tools that are the same, or almost.

    Attributes:
        tools: Their names, in order; at least two.
        likeness: The least likeness of a pair that was found; 1 when all have the same features.
        are_siblings: Whether each has a word in its name and in its first sentence that another
            lacks: they were made from one template, for different things.
    """

    tools: tuple[str, ...]
    likeness: float
    are_siblings: bool = False


def near_duplicates(
    definitions: Iterable[ToolDefinition], *, min_likeness: float = MIN_LIKENESS
) -> tuple[DuplicateGroup, ...]:
    """Groups of tools that are alike, ordered by their first name.

    Args:
        definitions: Tools of different names.
        min_likeness: The likeness from which two count as alike.

    Example:
        >>> weather = {"properties": {"city": {"type": "string"}}}
        >>> near_duplicates([
        ...     ToolDefinition.from_schema("weather", "The weather in a city.", weather),
        ...     ToolDefinition.from_schema("get_weather", "The weather in a city", weather),
        ...     ToolDefinition.from_schema("send_mail", "Send a mail to a person.", {}),
        ... ], min_likeness=0.6)[0].tools
        ('get_weather', 'weather')
    """
    by_features: dict[Features, list[ToolDefinition]] = {}
    for definition in definitions:
        by_features.setdefault(features(definition), []).append(definition)
    kinds = [sorted(group, key=lambda one: one.name) for group in by_features.values()]
    kinds.sort(key=lambda group: group[0].name)
    same, siblings = _Links(), _Links()
    for first, second, likeness in _alike([features(group[0]) for group in kinds], min_likeness):
        apart = _are_distinguishable(kinds[first][0], kinds[second][0])
        (siblings if apart else same).join(first, second, likeness)
    names = [tuple(one.name for one in group) for group in kinds]
    groups = [*_groups(names, same), *_groups(names, siblings, are_siblings=True)]
    return tuple(sorted(groups, key=lambda group: group.tools))


def features(definition: ToolDefinition) -> Features:
    """The key a tool is compared by."""
    words = terms(definition.text)
    name = definition.origin.original_name or definition.name
    return frozenset(
        (
            *words,
            *(f"{first} {second}" for first, second in pairwise(words)),
            *(f"name:{word}" for word in terms(name)),
            *(f"parameter:{' '.join(terms(name))}" for name in definition.signature.properties),
        )
    )


def _groups(
    names: Sequence[tuple[str, ...]], links: _Links, *, are_siblings: bool = False
) -> Iterator[DuplicateGroup]:
    groups: dict[int, list[str]] = {}
    for at, group in enumerate(names):
        groups.setdefault(links.root(at), []).extend(group)
    for root, found in groups.items():
        if root in links.least or (len(found) > 1 and not are_siblings):
            yield DuplicateGroup(
                tools=tuple(sorted(found)),
                likeness=links.least.get(root, 1.0),
                are_siblings=are_siblings,
            )


def _are_distinguishable(first: ToolDefinition, second: ToolDefinition) -> bool:
    """Whether a word of one's name and first sentence is nowhere in the other's."""
    (own_first, all_first), (own_second, all_second) = map(_words, (first, second))
    return bool(own_first - all_second) or bool(own_second - all_first)


def _words(definition: ToolDefinition) -> tuple[set[str], set[str]]:
    """The words that both name and first sentence have, and those that either has."""
    name = set(terms(definition.origin.original_name or definition.name))
    opening = set(terms(first_sentence(definition.description.summary)))
    return name & opening, name | opening


def _alike(sets: Sequence[Features], least: float) -> Iterator[tuple[int, int, float]]:
    """Pairs of sets whose likeness is at least ``least``."""
    counts = Counter(feature for found in sets for feature in found)
    weights = {feature: math.log(1 + len(sets) / count) for feature, count in counts.items()}
    index: dict[str, list[int]] = {}
    for at, found in enumerate(sets):
        candidates: set[int] = set()
        for feature in _prefix(found, weights, least):
            earlier = index.setdefault(feature, [])
            candidates.update(earlier[-_NEIGHBOURS:])
            earlier.append(at)
        for other in sorted(candidates):
            likeness = _likeness(found, sets[other], weights)
            if likeness >= least:
                yield other, at, likeness


def _prefix(found: Features, weights: Mapping[str, float], least: float) -> Iterator[str]:
    """The rarest features, up to the weight that two alike sets cannot both leave out."""
    ordered = sorted(found, key=lambda feature: (-weights[feature], feature))
    rest = sum(weights[feature] for feature in ordered)
    needed = least * rest
    for feature in ordered:
        if rest < needed:
            return
        yield feature
        rest -= weights[feature]


def _likeness(first: Features, second: Features, weights: Mapping[str, float]) -> float:
    shared = sum(weights[feature] for feature in first & second)
    either = sum(weights[feature] for feature in first | second)
    return shared / either if either else 0.0


class _Links:
    """Which sets hang together (union-find), and the least likeness on the way."""

    def __init__(self) -> None:
        self._above: dict[int, int] = {}
        self.least: dict[int, float] = {}

    def root(self, at: int) -> int:
        """The representative of the group of ``at``."""
        while at in self._above:
            at = self._above[at]
        return at

    def join(self, first: int, second: int, likeness: float) -> None:
        """Make one group of two."""
        low, high = sorted((self.root(first), self.root(second)))
        self.least[low] = min(self.least.get(low, 1.0), self.least.get(high, 1.0), likeness)
        if low != high:
            self._above[high] = low
