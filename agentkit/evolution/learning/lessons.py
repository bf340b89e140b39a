"""From uses of tools to the worked examples that are new to them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentkit.composites.problems import CompositeLimits
from agentkit.errors import DefinitionError
from agentkit.evolution.insertion.budget import BudgetSpent
from agentkit.evolution.insertion.dry_run import DryRun
from agentkit.evolution.insertion.policy import InsertPolicy
from agentkit.evolution.insertion.stubs import call_key, runs_live
from agentkit.evolution.insertion.trial import example_fault
from agentkit.evolution.learning.private import private_part, suspicious_part
from agentkit.evolution.learning.report import LearnReport, Skipped, SkipReason
from agentkit.evolution.learning.rules import LearningRules
from agentkit.evolution.learning.uses import Use
from agentkit.evolution.learning.variety import Words, varied, words_of
from agentkit.evolution.validation.origins import has_words, speaks_as
from agentkit.library.library import Library
from agentkit.messages import JsonObject
from agentkit.retrieval.words import terms
from agentkit.tools.canonical import is_json
from agentkit.tools.definition import Example, ToolDefinition
from agentkit.tools.invisible import invisible
from agentkit.tools.tool import Tool
from agentkit.tools.validation import ArgumentProblem, ArgumentValidator


@dataclass(frozen=True, kw_only=True, slots=True)
class Teaching:
    """How lessons are drawn.

    Attributes:
        rules: What is kept.
        policy: Which tools may run, to try their examples.
        limits: Caps on each run.
        learned_from: Ids of the episodes that a tool has learned from, by its name.
    """

    rules: LearningRules
    policy: InsertPolicy
    limits: CompositeLimits
    learned_from: Callable[[str], Collection[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Lessons:
    """What is new to the tools of a library.

    Attributes:
        definitions: The tools with their new examples; pins are not moved yet.
        added: The new examples, by tool.
        skipped: Uses that taught nothing.
        evidence: Ids of the episodes that taught something, in their order.
    """

    definitions: tuple[ToolDefinition, ...] = ()
    added: Mapping[str, tuple[Example, ...]] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()
    evidence: tuple[str, ...] = ()

    def report(self, changed: Sequence[ToolDefinition], *, uses: int, version: int) -> LearnReport:
        """What they would add to that library version, where ``changed`` would change."""
        return LearnReport(
            version=version,
            uses=uses,
            added=self.added,
            skipped=self.skipped,
            evidence=self.evidence,
            repinned=tuple(one.name for one in changed if one.name not in self.added),
        )


async def lessons_of(uses: Sequence[Use], library: Library, teaching: Teaching) -> Lessons:
    """The examples that uses of tools add to a library; nothing is written.

    Args:
        uses: In the order of preference, where several ask in the same words.
        library: The library, with the code of its tools as far as there is.
        teaching: How.
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
        chosen = _chosen(own, tool.definition, teaching, skipped)
        if chosen:
            added[name] = await _Shelf(tool, library, teaching).examples(chosen)
            taught.update(use.episode_id for use in chosen)
    return Lessons(
        definitions=tuple(_grown(library[name].definition, new) for name, new in added.items()),
        added=added,
        skipped=tuple(skipped),
        evidence=tuple(dict.fromkeys(use.episode_id for use in uses if use.episode_id in taught)),
    )


def _grown(definition: ToolDefinition, new: tuple[Example, ...]) -> ToolDefinition:
    return replace(definition, examples=(*definition.examples, *new))


def _chosen(
    uses: Sequence[Use], definition: ToolDefinition, teaching: Teaching, skipped: list[Skipped]
) -> list[Use]:
    """The uses to keep, with arguments as the tool takes them; the others are told why not."""
    rules = teaching.rules
    asked = [one for one in definition.examples if one.query]
    known = {words_of(one.query, one.arguments) for one in asked}
    learned = set() if rules.again else teaching.learned_from(definition.name)
    validator = ArgumentValidator(definition)
    candidates: dict[Words, Use] = {}
    for use in uses:
        fault = _fault_of_words(use, rules, learned)
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
    kept = set(varied(list(candidates), known, rules.most_examples - len(asked)))
    told = f"it has as many examples as are kept ({rules.most_examples})"
    for at, use in enumerate(candidates.values()):
        if at not in kept:
            skipped.append(_skipped(use, "full", told))
    return [use for at, use in enumerate(candidates.values()) if at in kept]


def _fault_of_words(
    use: Use, rules: LearningRules, learned: Collection[str]
) -> tuple[SkipReason, str] | None:
    if not is_json(use.query) or not terms(use.query):
        return "no_words", "nothing was asked in words"
    if len(use.query) > rules.longest_query:
        return "too_long", f"the query has {len(use.query):,} characters"
    private = None if rules.keep_private else private_part(use.query)
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


class _Shelf:
    """The examples of one tool: which of them may keep their results."""

    def __init__(self, tool: Tool, library: Library, teaching: Teaching) -> None:
        self._definition = tool.definition
        self._teaching = teaching
        self._is_foreign = speaks_as(tool.definition, library) != "code"
        self._runs_live = runs_live(tool.definition, teaching.policy)
        self._is_tried = self._runs_live and tool.is_bound
        self._trial = DryRun(library.tools, policy=teaching.policy, limits=teaching.limits)
        worked = tool.definition.worked_calls
        self._room = teaching.rules.most_results - len(worked)
        self._calls = {call_key(tool.definition, one.arguments) for one in worked}

    async def examples(self, uses: Sequence[Use]) -> tuple[Example, ...]:
        return tuple([await self._example(use) for use in uses])

    async def _example(self, use: Use) -> Example:
        kept = {name: value for name, value in use.arguments.items() if self._is_kept(name, value)}
        example = Example(arguments=kept, result=use.result, query=use.query)
        if len(kept) == len(use.arguments) and await self._holds(example):
            self._room -= 1
            self._calls.add(call_key(self._definition, kept))
            return example
        return Example(arguments=kept, query=use.query, is_whole=False)

    def _is_kept(self, name: str, value: Any) -> bool:
        rules = self._teaching.rules
        return _is_short(value, rules.longest_argument) and self._is_public({name: value})

    async def _holds(self, example: Example) -> bool:
        """Whether the result may be kept: as the tool's answer, or as what it must give again.

        The result of a composite is that of its children, which may have no record of it. A tool
        that may run while composites are tried out would have to give the result again, so it is
        kept when it does; without the tool's code nobody knows. Words that a server returned are
        left out: models read worked calls, and nobody has agreed to these.
        """
        if self._definition.is_composite or self._room <= 0:
            return False
        if call_key(self._definition, example.arguments) in self._calls:
            return False  # a call has one answer
        longest = self._teaching.rules.longest_result
        if not _is_short(example.result, longest) or not self._is_public(example.result):
            return False
        if self._is_foreign and has_words(example.result):
            return False
        return await self._gives_again(example) if self._runs_live else True

    async def _gives_again(self, example: Example) -> bool:
        if not self._is_tried:
            return False
        tool, policy = self._trial.safe(self._definition.name), self._teaching.policy
        try:
            return await example_fault(tool, example, self._trial, policy) is None
        except BudgetSpent:
            return False

    def _is_public(self, value: Any) -> bool:
        is_private = not self._teaching.rules.keep_private and private_part(value) is not None
        return not is_private and suspicious_part(value) is None


def _is_short(value: Any, longest: int) -> bool:
    """Whether a value is JSON data of at most so many characters."""
    try:
        return is_json(value) and len(json.dumps(value, ensure_ascii=False)) <= longest
    except RecursionError:  # nested deeper than anybody reads
        return False
