"""The evidence proposer: rules from what tools refused and from what verifiers found. No model.

It writes what the tool itself states, in words that hold for every call: which values a parameter
takes, its range and form, which call must come first, which tool is meant. What it is not told it
does not guess: that a value was never seen is no reason to forbid it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from agentkit.episodes import Episode
from agentkit.evolution.mining.sources import trajectories_of
from agentkit.evolution.proposals.evidence.confusions import (
    abstention_lessons,
    confusion_lessons,
    misuse,
)
from agentkit.evolution.proposals.evidence.lessons import EvidenceRules, Lesson, applied
from agentkit.evolution.proposals.evidence.lookups import lookup_lessons
from agentkit.evolution.proposals.evidence.observed import observed
from agentkit.evolution.proposals.evidence.origins import is_vouched_for
from agentkit.evolution.proposals.evidence.relaxing import relaxed_lessons
from agentkit.evolution.proposals.evidence.stated_rules import Seen, stated_lessons
from agentkit.evolution.proposals.evidence.worded import worded_lessons
from agentkit.evolution.proposals.proposal import Proposal
from agentkit.evolution.proposals.proposer import Observations, PassedOver
from agentkit.library.events import Author
from agentkit.tools.canonical import is_json
from agentkit.tools.definition import ToolDefinition

_AUTHOR = Author(kind="program", name="evidence")


class EvidenceProposer:
    """Suggests what the evidence bears out, and says with which numbers.

    What a tool states itself comes together in one proposal a tool. Words of an untrusted origin,
    which wait for somebody to agree, come in a second one, so that nothing else waits with them.
    What is inferred (a look-up, a confusion, when to abstain) comes as a proposal of its own, so
    that it can fail alone.

    Args:
        knobs: How much must have happened.

    Example:
        >>> import asyncio
        >>> from agentkit import Episode, Library
        >>> from agentkit.episodes import Turn
        >>> from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult
        >>> loan = ToolDefinition.from_schema("loan", "What a loan costs a month.", {
        ...     "properties": {"periods": {"type": "integer", "description": "Loan term."}}})
        >>> def refused(number, periods):
        ...     call = ToolCall(call_id="1", name="loan", arguments={"periods": periods})
        ...     failure = ToolFailure(
        ...         kind="retry_requested", rule=f"must be one of 36, 48, 60, got {periods}")
        ...     result = ToolResult(call_id="1", name="loan", status="failed", failure=failure)
        ...     turn = Turn(message=AssistantMessage(tool_calls=(call,)), results=(result,))
        ...     return Episode(episode_id=f"e{number}", request="", turns=(turn,))
        >>> seen = Observations(
        ...     library=Library([loan]), episodes=(refused(1, 31), refused(2, 50)))
        >>> [proposal] = asyncio.run(EvidenceProposer().propose(seen))
        >>> proposal.candidate.specification.rules
        (OneOf(parameter='periods', values=(36, 48, 60), kind='one_of'),)
    """

    name = "evidence"

    def __init__(self, knobs: EvidenceRules = EvidenceRules()) -> None:  # noqa: B008 - frozen
        self._knobs = knobs

    async def propose(self, observations: Observations) -> Sequence[Proposal]:
        """What should change, the tools in the order wanted or with most failures first."""
        library, episodes = observations.library, observations.episodes
        records = observed(episodes, library)
        routes = trajectories_of(filter(_is_data, episodes)).routes
        found: dict[str, tuple[list[Lesson], list[Lesson]]] = {}
        noted: set[str] = set()

        def pass_over(one: PassedOver) -> None:
            noted.add(one.tool)
            observations.pass_over(one)

        for name in sorted(name for name in records if name in library):
            seen = Seen(
                definition=library[name].definition,
                record=records[name],
                library=library,
                knobs=self._knobs,
                pass_over=pass_over,
            )
            stated = [*stated_lessons(seen), *worded_lessons(seen)]
            relaxed = relaxed_lessons(seen, stated)
            found[name] = [*stated, *relaxed], list(lookup_lessons(seen, routes))
            refused = len(records[name].refused)
            if refused and name not in noted and not any(found[name]):
                why = f"its refusals ({refused:,}) name no value, range, form or order to hold to"
                pass_over(PassedOver(tool=name, reason="says_nothing", why=why, failures=refused))
        wrongly = misuse(episodes, library)
        for name, lesson in chain(
            confusion_lessons(wrongly, library, self._knobs),
            abstention_lessons(wrongly, library, self._knobs),
        ):
            found.setdefault(name, ([], []))[1].append(lesson)
        return [
            proposal
            for name in _order(found, observations)
            for proposal in self._proposals(library[name].definition, *found[name])
        ]

    def _proposals(
        self, base: ToolDefinition, stated: list[Lesson], inferred: list[Lesson]
    ) -> Iterator[Proposal]:
        best = sorted(stated, key=lambda lesson: -lesson.failures)[: self._knobs.most_lessons]
        together = [lesson for lesson in best if all(map(is_vouched_for, lesson.origins))]
        waiting = [lesson for lesson in best if lesson not in together]
        for lessons in [together, waiting, *([lesson] for lesson in inferred)]:
            candidate = applied(base, lessons)
            if candidate.digest != base.digest:
                yield Proposal.of(
                    base,
                    candidate,
                    stream="evidence",
                    author=_AUTHOR,
                    reason="\n".join(map(str, lessons)),
                    evidence=dict.fromkeys(chain.from_iterable(one.episodes for one in lessons)),
                    origins=chain.from_iterable(one.origins for one in lessons),
                )


def _is_data(episode: Episode) -> bool:
    """Whether calls and results are JSON data, so that values in them can be compared.

    Episodes that ran or were read from a file are; those that somebody made by hand may hold
    integers of thousands of digits, or nesting without end.
    """
    try:
        parts = [[dict(call.arguments) for call in episode.calls], episode.output]
        return is_json([*parts, [result.value for result in episode.results]])
    except RecursionError:
        return False


def _order(
    found: dict[str, tuple[list[Lesson], list[Lesson]]], observations: Observations
) -> Iterable[str]:
    """The tools asked for, in that order; else the worst of the profile, then by failures."""
    if observations.tools:
        return [name for name in observations.tools if name in found]
    worst = [rate.tool for rate in observations.profile.worst_tools(len(found) or 1)]
    rank = {name: at for at, name in enumerate(worst)}
    failures = {name: sum(one.failures for one in chain(*both)) for name, both in found.items()}
    return sorted(found, key=lambda name: (rank.get(name, len(rank)), -failures[name], name))
