"""``library_round``: what was suggested after a step, and what the Tool Manager made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import fmean

from agentkit.diagnosis import FailureProfile
from agentkit.episodes import Episode
from agentkit.evaluation.results.texts import shown
from agentkit.evolution import Proposer, ToolManager, evolve
from agentkit.evolution.compare import Compare
from agentkit.evolution.round import ProposalOutcome as RoundOutcome
from agentkit.library import Library
from agentkit.library.dag import depth
from agentkit.retrieval.cards import schema_text
from agentkit.retrieval.tokens import estimate_tokens
from agentkit.tools.definition import ToolDefinition
from agentkit_bench.language.measures import texts_of, word_distance
from agentkit_training.coevolution.records import LibrarySize, ProposalOutcome

_MOST = 70  # characters of what is quoted, in all
_MOST_OF_FIELD = 24
_WORDS_BEFORE = 2  # that did not change, so that one sees where the change is


def told_change(before: ToolDefinition, after: ToolDefinition) -> str:
    """What the first text that differs was and is, shortened to a line of about 100 characters.

    Of a text of several lines, such as the usage rules, only those are told that came or went.

    Args:
        before: The definition that a proposal was made for.
        after: What the library has now.

    Returns:
        The change; empty where no text differs.

    Example:
        >>> before = ToolDefinition.from_schema("lamp", "Switch a lamp.", {"type": "object"})
        >>> after = ToolDefinition.from_schema("lamp", "Switch a lamp on.", {"type": "object"})
        >>> told_change(before, after)
        'summary was "Switch a lamp.", is now "Switch a lamp on."'
    """
    old, new = texts_of(before), texts_of(after)
    fields = [one for one in {**old, **new} if old.get(one) != new.get(one)]
    if not fields:
        return ""
    more = f", and {len(fields) - 1} more" if len(fields) > 1 else ""
    return _told(fields[0], old.get(fields[0], ""), new.get(fields[0], "")) + more


def _told(field: str, old: str, new: str) -> str:
    gone, come = _without(old, new), _without(new, old)
    if not gone and not come:  # the same lines in another order
        gone, come = old, new
    name = shown(field, _MOST_OF_FIELD)
    if not gone or not come:
        return f'{name}, {"new" if come else "gone"}: "{shown(gone + come, _MOST)}"'
    words = zip(gone.split(), come.split(), strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], words))
    start = max(0, same - _WORDS_BEFORE)
    was, now = (_from(text, start) for text in (gone, come))
    return f'{name} was "{was}", is now "{now}"'


def _without(text: str, other: str) -> str:
    """The lines of a text that another one does not have."""
    known = set(other.splitlines())
    return "\n".join(line for line in text.splitlines() if line not in known)


def _from(text: str, start: int) -> str:
    """A text from one of its words on."""
    words = " ".join(text.split()[start:])
    return shown(f"\u2026 {words}" if start else words, _MOST // 2)


@dataclass(frozen=True, kw_only=True, slots=True)
class LibraryRound:
    """What came of one look at the library.

    Attributes:
        proposals: What was suggested, in order, with what became of it.
        silent: Proposers that could not say anything, and why.
    """

    proposals: tuple[ProposalOutcome, ...] = ()
    silent: tuple[str, ...] = ()


async def library_round(
    manager: ToolManager,
    proposers: Sequence[Proposer],
    episodes: Sequence[Episode],
    profile: FailureProfile,
    *,
    compare: Compare | None = None,
) -> LibraryRound:
    """Let the proposers look at episodes, and the Tool Manager decide (ToolDNA, lines 7 to 24).

    It is a round of the runtime (``agentkit.evolution.evolve``): the paper takes up each valid
    proposal at once, and so does this, one after another, each on what the one before left. Tools
    come in the order of the profile, those first that have failed most in the recent steps.

    Args:
        manager: The only writer.
        proposers: Who suggests.
        episodes: Those of the steps since the last round.
        profile: Failures of these and of earlier episodes.
        compare: Does held-out tasks; None where the checks alone decide.
    """
    if not proposers or not episodes:
        return LibraryRound()
    done = await evolve(
        manager,
        proposers,
        episodes=episodes,
        compare=compare,
        tools=_order(manager.library, profile),
    )
    return LibraryRound(
        proposals=tuple(_outcome(one, manager) for one in done.considered),
        silent=tuple(f"{one.proposer}: {one.error}" for one in done.silent),
    )


def library_size(library: Library) -> LibrarySize:
    """How large a library is, and how deep."""
    depths = [depth(library, tool.name) for tool in library if tool.definition.is_composite]
    return LibrarySize(
        tools=len(library),
        composites=len(depths),
        mean_depth=fmean(depths) if depths else 0.0,
        max_depth=max(depths, default=0),
        tokens=sum(estimate_tokens(schema_text(one)) for one in library.definitions),
    )


def _order(library: Library, profile: FailureProfile) -> tuple[str, ...]:
    """All tools, those that fail most first."""
    worst = [rate.tool for rate in profile.worst_tools(len(library)) if rate.tool in library]
    return tuple(dict.fromkeys([*worst, *library.tools]))


def _words(definition: ToolDefinition) -> str:
    return "\n".join(texts_of(definition).values())


def _outcome(one: RoundOutcome, manager: ToolManager) -> ProposalOutcome:
    record = one.record
    candidate = record.candidate
    base = None if candidate is None else manager.revision(record.tool_name, record.base)
    edit, change = 0.0, ""
    if candidate is not None and base is not None:
        edit = word_distance(_words(base), _words(candidate))
        change = told_change(base, candidate) if record.state == "active" else ""
    return ProposalOutcome(
        tool=record.tool_name,
        stream=record.stream,
        state=record.state,
        why=one.why or record.last_word,
        codes=tuple(dict.fromkeys(check.code for check in record.failed)),
        proposal_id="" if candidate is None else record.proposal_id,  # that of a text is random
        edit=edit,
        change=change,
    )
