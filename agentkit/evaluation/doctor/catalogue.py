"""``Catalogue``: what the checks look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

from agentkit.episodes import Episode
from agentkit.evaluation.doctor.doubles import Doubles, find_doubles
from agentkit.evaluation.doctor.shared import SharedSentence, shared_sentences
from agentkit.evaluation.doctor.usage import Usage, usage_of
from agentkit.evaluation.doctor.weights import Weight, weigh
from agentkit.library import Library
from agentkit.retrieval.retriever import Retriever
from agentkit.retrieval.tokens import TokenCounter, estimate_tokens
from agentkit.tools.definition import ToolDefinition


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
        only: The tools to report on; None for all. The others still matter, as doubles of these.
        progress: Told how many of how many tools the check for confused pairs, which takes longest,
            has searched for.
    """

    library: Library
    retriever: Retriever | None = None
    usage: Usage | None = None
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
    def weights(self) -> Mapping[str, Weight]:
        """What each tool that is reported on costs."""
        return {d.name: weigh(d, self.count_tokens) for d in self.definitions}

    @cached_property
    def alike(self) -> tuple[Doubles, ...]:
        """Groups of tools that are alike, whichever are reported on."""
        return find_doubles(self.library.definitions)

    @cached_property
    def doubles(self) -> Mapping[str, frozenset[str]]:
        """For each tool that has doubles, it and them; siblings are none."""
        return {
            name: frozenset(group.tools)
            for group in self.alike
            if not group.are_siblings
            for name in group.tools
        }

    @cached_property
    def shared(self) -> Mapping[str, SharedSentence]:
        """Sentences that several tools say, by their key."""
        doubles = [group for group in self.alike if not group.are_siblings]
        return shared_sentences(self.library.definitions, doubles)

    def tokens(self, name: str) -> int:
        """What offering a tool of the library costs."""
        known = self.weights.get(name)
        definition = self.library[name].definition
        return weigh(definition, self.count_tokens).tokens if known is None else known.tokens

    def saved(self, before: ToolDefinition, after: ToolDefinition) -> int:
        """Tokens that offering ``after`` in place of ``before`` saves."""
        return weigh(before, self.count_tokens).tokens - weigh(after, self.count_tokens).tokens

    def count(self, texts: Iterable[str]) -> int:
        """Tokens of texts, each counted by itself."""
        return sum(map(self.count_tokens, texts))


def given_name(definition: ToolDefinition) -> str:
    """The name that the source gave, before an import made it unique."""
    return definition.origin.original_name or definition.name


def _distinct(definitions: Iterable[ToolDefinition]) -> list[ToolDefinition]:
    by_name: dict[str, list[ToolDefinition]] = {}
    for definition in definitions:
        by_name.setdefault(definition.name, []).append(definition)
    taken = set(by_name)
    found: list[ToolDefinition] = []
    for name, group in by_name.items():
        first, *others = sorted(group, key=_digest) if len(group) > 1 else group
        found.append(first)
        for other, new_name in zip(others, _free_names(name, taken), strict=False):
            origin = replace(other.origin, original_name=given_name(other))
            found.append(replace(other, name=new_name, origin=origin))
    return sorted(found, key=lambda definition: definition.name)


def _free_names(name: str, taken: set[str]) -> Iterator[str]:
    """``name__2``, ``name__3`` ..., as ``distinct_name`` gives them, each in constant time."""
    free = (one for at in count(2) if (one := f"{name}__{at}") not in taken)
    for new_name in free:
        taken.add(new_name)
        yield new_name


def _digest(definition: ToolDefinition) -> str:
    return definition.digest
