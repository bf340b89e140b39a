"""What promoted changes are worth on later traffic, and which of them stopped helping.

A fold over the ledger and stored episodes: nothing is kept beside them, so the same events and
episodes always give the same numbers, in whatever order they are read. An episode says by its
``library_version`` which definition it ran with, and by its labels which arm of a canary. Who asks
again and again keeps a ``Traffic``, which takes what is new.

What is measured is the share of conversations whose first episode that called the tool had a wrong
or refused call, at the parameters that the change is about; of instructions, of those whose first
judged episode that read them failed. Where the change went through a canary,
later traffic is held against the control of that; where it was tried in shadow, against the traffic
beside which it was. Neither holds the episodes that the change was made from. Otherwise it is all
traffic before the promotion: *before and after*, which is no comparison, as anything may have
changed meanwhile, and flatters a change that was made because calls went wrong.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from agentkit.diagnosis.findings import parameter_of
from agentkit.diagnosis.labels import blamed_argument
from agentkit.episodes import Episode
from agentkit.episodes.labels import (
    ARM,
    EXPERIMENT,
    INSTRUCTIONS,
    PROBE_OF,
    in_library_names,
    is_extra_record,
    is_imported,
)
from agentkit.evolution.checker import Revision, without_rules
from agentkit.evolution.differences import view_changes
from agentkit.evolution.gate_statistics import evidence, gamma, log_money_path
from agentkit.evolution.gates import GateConfig
from agentkit.evolution.ledger import Ledger
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.proposal import Observations, Proposal, ProposalRecord
from agentkit.evolution.proposers.observed import OF_THE_TOOL
from agentkit.library.events import Author
from agentkit.metrics.statistics import Interval, wilson_interval
from agentkit.tools.definition import ToolDefinition, is_instructions

Against = Literal["canary", "shadow", "before"]
"""What later traffic is held against: the change's own control, or the traffic before it."""

_WORDS: Mapping[Against, str] = {
    "canary": "in the control of its canary",
    "shadow": "while it ran in shadow",
    "before": "before it",
}
_MOST_NAMED = 64

MOST_TRAFFIC = 50_000
"""The newest episodes of one tool that its worth is read from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Worth:
    """What a promoted change is worth on later traffic.

    Attributes:
        proposal_id: The change.
        tool: The tool.
        parameters: The parameters that it is about; empty for the tool as a whole.
        against: What later traffic is held against.
        control: Conversations there.
        control_wrong: Those of them with a wrong or refused call.
        later: Conversations since the promotion, as long as the change is in force.
        later_wrong: Those of them with a wrong or refused call.
        gain: By how much the share of these fell; above 0 it helps. Newcombe's interval (1998,
            *Statistics in Medicine* 17, 873-890, method 10): twice Wilson's.
        has_stopped: Whether it no longer helps (``has_stopped_helping``); false where nothing can
            be told, and for a change that is not in force any more.
        wrong: Ids of later episodes with such a call, the newest.
    """

    proposal_id: str
    tool: str
    parameters: tuple[str, ...]
    against: Against
    control: int
    control_wrong: int
    later: int
    later_wrong: int
    gain: Interval
    has_stopped: bool = False
    wrong: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The worth as a JSON object."""
        return asdict(self)

    def __str__(self) -> str:
        where = f" at {', '.join(self.parameters)}" if self.parameters else ""
        what = "failed runs" if is_instructions(self.tool) else f"wrong or refused calls{where}"
        low, high = 100 * self.gain.low, 100 * self.gain.high
        note = " (before and after, not a comparison)" if self.against == "before" else ""
        return (
            f"{what} in {self.later_wrong:,} of {self.later:,} "
            f"conversations since, {self.control_wrong:,} of {self.control:,} "
            f"{_WORDS[self.against]}: {100 * self.gain.value:+.1f} points gained "
            f"({low:+.1f} to {high:+.1f}){note}"
        )


def worth_of(
    proposal_id: str,
    ledger: Ledger,
    revision: Revision,
    episodes: Iterable[Episode] | Traffic,
    *,
    rules: GateConfig = GateConfig(),  # noqa: B008 - frozen
) -> Worth | None:
    """What a promoted change is worth; None where nothing can be held against anything.

    That is so for one that was never promoted, brought a new tool, or has no later traffic or no
    control.

    Args:
        proposal_id: The change.
        ledger: Of the library.
        revision: Finds earlier definitions.
        episodes: What happened, in any order and as it was last judged, or what was kept of it;
            only episodes that called the tool count.
        rules: ``min_sessions`` asked of a control and of a decline, and the level of the latter.
    """
    record = ledger.proposals[proposal_id]
    places = _places(record, revision)
    if record.activation is None or places is None:
        return None
    in_force = _in_force(record, places, ledger, revision)
    if isinstance(episodes, Traffic):
        traffic = episodes
    else:
        traffic = Traffic([record.tool_name])
        for episode in episodes:
            traffic.add(episode)
    controls, later = _arms(record, places, ledger, traffic, in_force)
    own: tuple[Against, ...] = ("canary", "shadow")
    enough = (one for one in own if len(controls[one]) >= rules.min_sessions)
    against: Against = next(enough, "before")
    control = controls[against]
    if not later or not control:
        return None
    before, after = ([is_wrong for _, is_wrong in arm] for arm in (control, later))
    return Worth(
        proposal_id=proposal_id,
        tool=record.tool_name,
        parameters=tuple(sorted(places)),
        against=against,
        control=len(before),
        control_wrong=sum(before),
        later=len(after),
        later_wrong=sum(after),
        gain=_difference(before, after),
        has_stopped=in_force[2] == math.inf and has_stopped_helping(before, after, rules),
        wrong=tuple(name for name, is_wrong in later if is_wrong)[-_MOST_NAMED:],
    )


def _difference(before: Sequence[bool], after: Sequence[bool]) -> Interval:
    """By how much a share fell, with Newcombe's interval."""
    was, now = (wilson_interval(sum(arm), len(arm)) for arm in (before, after))
    gain = was.value - now.value
    low = gain - math.hypot(was.value - was.low, now.high - now.value)
    high = gain + math.hypot(was.high - was.value, now.value - now.low)
    return Interval(value=gain, low=low, high=high, level=was.level)


# --- When a change stopped helping: an alarm that may be looked at in every round -----------------
# Null hypothesis: calls go wrong no more often since some time than before that time, in the
# control or in the change's own earlier traffic. Against the upper end of Wilson's interval of what
# came before, the rest is an e-process (``log_money_path``). The times are the promotion, and 1, 2,
# 4, 8 and so on times ``min_sessions`` later, so that a change that helped for long is found out
# too. Number n gets ``alpha gamma(n)``, half for the interval and half for the e-process, which is
# ``alpha`` in all. A change that got worse and is better still than its control stays.


def has_stopped_helping(before: Sequence[bool], after: Sequence[bool], rules: GateConfig) -> bool:
    """Whether a change no longer helps; false where that cannot be told.

    Args:
        before: Whether each conversation of the control went wrong.
        after: The same of later ones, in the order of time.
        rules: ``alpha`` and ``min_sessions``.

    Example:
        >>> often, never = [True, True, False] * 50, [False] * 100
        >>> has_stopped_helping(often, never, GateConfig())
        False
        >>> has_stopped_helping(often, [*never, *[True] * 100], GateConfig())
        True
    """
    least, start, number = rules.min_sessions, 0, 1
    while start + least <= len(after):
        level = rules.alpha * gamma(number) / 2
        reference, rest = after[:start] if start else before, after[start:]
        bound = wilson_interval(sum(reference), len(reference), level=1 - 2 * level).high
        is_no_better = sum(rest) * len(before) >= sum(before) * len(rest)
        if is_no_better and bound < 1:
            money = log_money_path(map(float, rest), bound=bound, low=0.0)
            if evidence(money, level=level, least=least).reached is not None:
                return True
        start, number = 2 * start or least, number + 1
    return False


# --- The calls that count -------------------------------------------------------------------------


_Wrong: TypeAlias = frozenset[str | None]
"""The parameters at which calls went wrong: none for calls that went well, an empty text for a
verdict that names none, None for a refusal that names none, which counts for every parameter."""

_Call: TypeAlias = tuple[str, bool]
"""The id of a conversation's first episode that called the tool, and whether a call went wrong."""

_Row: TypeAlias = tuple[str, str, _Wrong]
_Group: TypeAlias = tuple[int, str, str]
_Ordered: TypeAlias = list[tuple[_Row, str, _Group]]


@dataclass(kw_only=True, slots=True)
class _OfTool:
    """Of one tool the first episode of each conversation, by version, experiment and arm."""

    count: int = 0
    newest: str = ""
    rows: dict[_Group, dict[str, _Row]] = field(default_factory=lambda: defaultdict(dict))
    changes: int = 0
    ordered: tuple[int, _Ordered] = (0, [])


class Traffic:
    """Episodes that called tools, as far as the worth of changes is read from them.

    It takes them one by one and in any order; one that comes again, judged anew, takes its own
    place. Some 300 bytes are held of each conversation.

    Args:
        tools: Names of the tools to look at; more may be added to ``tools`` later, and then their
            earlier episodes.
    """

    def __init__(self, tools: Iterable[str] = ()) -> None:
        self.tools = set(tools)
        self._found: dict[str, _OfTool] = defaultdict(_OfTool)
        self._same: dict[_Wrong, _Wrong] = {}

    def add(self, episode: Episode) -> None:
        """Take an episode, as it was last judged.

        Of a tool with ``MOST_TRAFFIC`` of them no older ones are taken.
        """
        labels, names = episode.metadata, episode.library_names
        is_aside = is_extra_record(labels) or is_imported(labels) or PROBE_OF in labels
        if is_aside or not episode.library_version:  # 0: no store has this library
            return
        called = {names.get(call.name, call.name) for call in episode.calls}
        called = (called | _read(episode)) & self.tools
        one = in_library_names(episode) if called else episode
        for tool in called:
            found, name = self._found[tool], one.episode_id
            conversation = one.session_id or name
            rows = found.rows[one.library_version, labels.get(EXPERIMENT, ""), labels.get(ARM, "")]
            known = rows.get(conversation)
            if known is None or known[1] != name:
                if found.count >= MOST_TRAFFIC and name < found.newest:
                    continue
                found.count, found.newest = found.count + 1, max(name, found.newest)
            wrong = _wrong(one, tool)
            row = one.started_at, name, self._same.setdefault(wrong, wrong)
            if known is None or row[:2] <= known[:2]:
                rows[conversation] = row
                found.changes += 1

    def of(self, tool: str) -> _Ordered:
        """The first episodes of conversations in order of time, also while others are taken."""
        found = self._found.get(tool, _OfTool())
        changes = found.changes
        if found.ordered[0] != changes:
            rows = [
                (row, conversation, group)
                for group, own in list(found.rows.items())
                for conversation, row in list(own.items())
            ]
            found.ordered = changes, sorted(rows, key=lambda one: one[0][:2])
        return found.ordered[1]


def _arms(
    record: ProposalRecord,
    places: frozenset[str],
    ledger: Ledger,
    traffic: Traffic,
    in_force: tuple[int, int, float],
) -> tuple[Mapping[Against, list[_Call]], list[_Call]]:
    """What a change can be held against, and the traffic since; each in the order of time."""
    tool, (first, start, end), [begun, ended] = record.tool_name, in_force, _in_shadow(record)
    controls: dict[Against, list[_Call]] = {one: [] for one in _WORDS}
    later = list[_Call]()
    seen: set[tuple[str, int, bool]] = set()
    for (at, name, wrong), conversation, (version, experiment, arm) in traffic.of(tool):
        trial = ledger.proposals.get(experiment)
        is_tried = trial is not None and trial.tool_name == tool
        is_served = not (is_tried and arm == "candidate")  # with the definition of its version
        if (conversation, version, is_served) in seen:
            continue
        seen.add((conversation, version, is_served))
        call = name, _is_about(wrong, places)
        if trial is record and arm == "control":
            controls["canary"].append(call)
        if is_served and begun <= at < ended:
            controls["shadow"].append(call)
        if is_served and first <= version < end:
            (controls["before"] if version < start else later).append(call)
    return controls, later


def _in_shadow(record: ProposalRecord) -> tuple[str, str]:
    """When it began to run in shadow, and when that ended; two empty texts where it never did."""
    times = [(event.kind, event.at) for event in record.events if event.kind != "assessed"]
    for (kind, begun), (_, ended) in pairwise(times):
        if kind == "shadow":
            return begun, ended
    return "", ""


def _read(episode: Episode) -> set[str]:
    """The instructions that an episode read, where a verdict says how it went."""
    is_judged = episode.verdict is not None and not episode.verdict.fault
    return {episode.metadata.get(INSTRUCTIONS, "")} - {""} if is_judged else set()


def _wrong(episode: Episode, tool: str) -> _Wrong:
    """Where calls of the tool were refused or found wrong; of instructions whether it failed."""
    if is_instructions(tool):
        return frozenset() if episode.verdict is None or episode.verdict.passed else frozenset({""})
    made = [step for turn in episode.turns for step in turn.steps() if step[0].name == tool]
    verdict, ids = episode.verdict, {call.call_id for call, _ in made} - {""}
    evidence = () if verdict is None or verdict.fault or not made else verdict.evidence
    found = {one.parameter for one in evidence if one.tool == tool or one.call_id in ids}
    refused = {
        parameter_of(result.failure) or blamed_argument(result.failure, call.arguments) or None
        for call, result in made
        if result is not None and result.failure and result.failure.kind in OF_THE_TOOL
    }
    return frozenset(found | refused)


def _is_about(wrong: _Wrong, places: frozenset[str]) -> bool:
    """Whether a call went wrong at some of these parameters, or at all where there are none."""
    return bool(wrong) and (not places or None in wrong or not places.isdisjoint(wrong))


# --- Where and how long a change is in force ------------------------------------------------------


def _places(record: ProposalRecord, revision: Revision) -> frozenset[str] | None:
    """The parameters that a change is about, empty for the tool; None for a tool that is new."""
    base = revision(record.tool_name, record.base) if record.base else None
    if base is None or record.candidate is None:
        return None
    bare = (without_rules(base), without_rules(record.candidate))
    if any(not one.place for one in view_changes(*bare)):
        return frozenset()
    changes = view_changes(base, record.candidate)
    return frozenset(one.place.partition("[")[0].partition(".")[0] for one in changes) - {""}


def _in_force(
    record: ProposalRecord, places: frozenset[str], ledger: Ledger, revision: Revision
) -> tuple[int, int, float]:
    """Library versions: from which traffic is that of before, is with it, and is so no longer.

    Promotions that are about other parameters of the tool change nothing.
    """
    first, start, end = 1, activated_at(record), math.inf
    for other in ledger.proposals.values():
        if other.tool_name != record.tool_name or other.activation is None or other is record:
            continue
        theirs = _places(other, revision)
        if theirs is None or (places and theirs and not places & theirs):
            continue
        if activated_at(other) < start:
            first = max(first, activated_at(other))
        else:
            end = min(end, activated_at(other))
    if record.proposal_id not in ledger.promoted.get(record.tool_name, ()):
        end = min(end, record.events[-1].library_version)
    return first, start, end


def activated_at(record: ProposalRecord) -> int:
    """The library version that a promotion made; 0 for none."""
    return 0 if record.activation is None else record.activation.library_version


# --- Changes that undo each other -----------------------------------------------------------------


def undoing(record: ProposalRecord, ledger: Ledger, revision: Revision) -> tuple[str, ...]:
    """In sentences: what earlier promotions set and this takes back, or sets once more.

    Args:
        record: A proposal, promoted or not.
        ledger: Of the library.
        revision: Finds earlier definitions.
    """

    def changed(one: ProposalRecord) -> dict[tuple[str, str, str, str], str]:
        base = revision(one.tool_name, one.base) if one.base else None
        if base is None or one.candidate is None:
            return {}
        return {
            (two.place, two.keyword, two.before, two.after): two.sentence
            for two in view_changes(base, one.candidate)
        }

    ours = changed(record)
    back = {(place, keyword, after, before) for place, keyword, before, after in ours}
    until = math.inf if record.activation is None else activated_at(record)
    told = []
    for other in ledger.proposals.values():
        is_same_tool = other.tool_name == record.tool_name and other is not record
        if not is_same_tool or other.activation is None or activated_at(other) >= until:
            continue
        theirs = changed(other)
        for deed, keys in (("takes back", back), ("sets again", ours.keys())):
            if same := [said for key, said in theirs.items() if key in keys]:
                told.append(f"{deed} what {other.proposal_id} set: {' '.join(same[-2:])}")
    return tuple(told)


# --- What stopped helping is proposed for removal -------------------------------------------------


class WorthProposer:
    """Proposes to take back promoted changes that stopped helping on later traffic.

    Each proposal gives the tool what it had before the change, with the numbers as its reason. It
    is checked, compared and approved like any other. A change that still helps, or of which nothing
    can be told, is left alone: for one that never got worse the chance of being proposed, ever, is
    at most ``rules.alpha``.

    Args:
        manager: Of the library whose promotions are looked at.
        traffic: Gives the episodes that called a tool, for the tools of which the round has new
            ones that went wrong; without it the episodes of the round have to do.
        rules: The knobs; see ``worth_of``.
    """

    name = "worth"

    def __init__(
        self,
        manager: ToolManager,
        *,
        traffic: Callable[[str], Iterable[Episode]] | None = None,
        rules: GateConfig | None = None,
    ) -> None:
        self._manager = manager
        self._traffic = traffic
        self._rules = rules or GateConfig()

    async def propose(self, observations: Observations) -> Sequence[Proposal]:
        """One proposal for each change that stopped helping, the oldest first."""
        return list(self._removals(observations))

    def _removals(self, observations: Observations) -> Iterator[Proposal]:
        ledger, revision = self._manager.ledger, cache(self._manager.revision)
        by_tool: dict[str, list[Episode]] = defaultdict(list)
        for episode in observations.episodes:
            called = {call.name for call in episode.calls} | _read(episode)
            for name in called & ledger.promoted.keys():
                by_tool[name].append(episode)
        for tool, seen in by_tool.items():
            if observations.tools and tool not in observations.tools:
                continue
            fresh = filter(observations.is_fresh, seen)
            if not any(_wrong(one, tool) for one in fresh):
                continue
            episodes = seen if self._traffic is None else tuple(self._traffic(tool))
            for name in ledger.promoted[tool]:
                found = worth_of(name, ledger, revision, episodes, rules=self._rules)
                if found is None or not found.has_stopped:
                    continue
                record = ledger.proposals[name]
                earlier = revision(tool, record.base)
                if earlier is not None and record.candidate is not None:
                    yield _removal(found, record.candidate, earlier)


def _removal(worth: Worth, made: ToolDefinition, earlier: ToolDefinition) -> Proposal:
    return Proposal.of(
        made,
        earlier,
        stream="evidence",
        author=Author(kind="program", name=WorthProposer.name),
        reason=f"Take back {worth.proposal_id}, which no longer helps: {worth}.",
        evidence=worth.wrong,
    )
