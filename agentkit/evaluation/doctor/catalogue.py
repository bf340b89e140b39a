"""``Catalogue``: the tools that the checks look at, and what the stored episodes say of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

from agentkit.episodes import Episode
from agentkit.episodes.labels import in_library_names, is_extra_record
from agentkit.evaluation.doctor.near_duplicates import DuplicateGroup, near_duplicates
from agentkit.library import Library
from agentkit.messages import ToolResult
from agentkit.retrieval.cards import TokenCounter, estimate_tokens, schema_text
from agentkit.retrieval.retriever import Retriever
from agentkit.tools.definition import ToolDefinition


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
        retriever: Whom the check for confused pairs asks; None for the default retriever.
        usage: What the stored episodes say of each tool; None without episodes.
        providers: Names of the providers whose rules are checked.
        count_tokens: Counts the tokens of a text.
        only: The tools to report on; None for all. The others still matter, as near duplicates.
        progress: Told how many of how many tools the check for confused pairs, which takes longest,
            has searched for.
    """

    library: Library
    retriever: Retriever | None = None
    usage: ToolUsage | None = None
    providers: tuple[str, ...] = ()
    count_tokens: TokenCounter = estimate_tokens
    only: frozenset[str] | None = None
    progress: Callable[[int, int], None] | None = None

    @classmethod
    def of(
        cls,
        definitions: Iterable[ToolDefinition],
        *,
        episodes: Iterable[Episode] | None = None,
        retriever: Retriever | None = None,
        providers: Sequence[str] = (),
        count_tokens: TokenCounter = estimate_tokens,
    ) -> Catalogue:
        """A catalogue of definitions in any order; the order changes nothing that is found."""
        return cls(
            library=Library(_distinct(definitions)),
            retriever=retriever,
            usage=None if episodes is None else usage_of(episodes),
            providers=tuple(providers),
            count_tokens=count_tokens,
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
        return {d.name: self.cost(d) for d in self.library.definitions}

    @cached_property
    def alike(self) -> tuple[DuplicateGroup, ...]:
        """Groups of tools that are alike, whichever are reported on."""
        return near_duplicates(self.library.definitions)

    @cached_property
    def duplicates(self) -> Mapping[str, frozenset[str]]:
        """For each tool that has near duplicates, it and them; siblings are none."""
        return {
            name: frozenset(group.tools)
            for group in self.alike
            if not group.are_siblings
            for name in group.tools
        }

    def cost(self, definition: ToolDefinition) -> int:
        """Prompt tokens of offering a tool."""
        return self.count_tokens(schema_text(definition))


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
