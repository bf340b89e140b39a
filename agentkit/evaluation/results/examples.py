"""Episodes that failed, cut to what a reader needs to judge them."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from sys import intern
from typing import NamedTuple
from zlib import crc32

from agentkit.episodes import Episode, Evidence, EvidenceKind, FailureLabel, TurnDiagnosis
from agentkit.evaluation.labels import EvaluationLabels
from agentkit.evaluation.results.texts import shown, shown_call, shown_value

MOST_CALLS = 6
MOST_FINDINGS = 6
_ENOUGH = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One piece of evidence, as text.

    Attributes:
        kind: What sort of thing was found.
        message: The finding in a sentence.
        tool: The tool it is about; empty when it is about none.
        parameter: The argument it is about; empty when it is about none.
        expected: What would have been right, as JSON text; empty when that is not said.
        actual: What was there instead.
    """

    kind: EvidenceKind
    message: str
    tool: str = ""
    parameter: str = ""
    expected: str = ""
    actual: str = ""

    def says_more(self, value: str) -> bool:
        """Whether a value, one of these two, is not to be read in the message already."""
        start = value[:_ENOUGH].rstrip("…").replace('"', "'")
        return bool(start) and start not in self.message.replace('"', "'")


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """One turn that failed. Every text is cut to a readable length.

    Attributes:
        episode_id: The episode, for everything else about it.
        task: Its task.
        category: The task's category.
        attempt: Number of the attempt.
        user_turn: Which thing that the user said it answers, from 0.
        turn: Which step of the model it is about, from 0.
        label: The turn's dominant label.
        labels: All of its labels.
        tool: The tool that the label blames; empty when it blames none.
        parameter: The argument that it blames.
        request: What the user asked.
        calls: The calls of the turn.
        more_calls: How many calls were left out of ``calls``.
        answer: What the model said beside its calls.
        findings: What was found wrong.
        hint: How to repair it.
    """

    episode_id: str
    task: str
    category: str
    attempt: int
    user_turn: int
    turn: int
    label: FailureLabel
    labels: tuple[FailureLabel, ...]
    tool: str
    parameter: str
    request: str
    calls: tuple[str, ...]
    more_calls: int
    answer: str
    findings: tuple[Finding, ...]
    hint: str


class Place(NamedTuple):
    """Where an episode stands in a run; also the order in which examples are preferred.

    The digest of the task comes first, so that the examples of a label are not all from the
    category whose name sorts first.
    """

    digest: int
    task: str
    attempt: int
    user_turn: int
    session: str
    episode_id: str
    category: str

    @classmethod
    def of(cls, episode: Episode, labels: EvaluationLabels) -> Place:
        """The place of an episode with these labels."""
        return cls(
            digest=crc32(labels.task.encode("utf-8", "surrogatepass")),
            task=intern(labels.task),
            attempt=labels.attempt,
            user_turn=labels.user_turn,
            session=episode.session_id or "",
            episode_id=episode.episode_id,
            category=intern(labels.category),
        )


@dataclass(kw_only=True, slots=True)
class ExampleShelf:
    """Keeps the first few examples of each subject, whatever order episodes come in.

    Attributes:
        most: How many of a subject.
    """

    most: int = 6
    _kept: dict[tuple[str, ...], list[tuple[Place, Example]]] = field(default_factory=dict)

    def offer(
        self, subject: tuple[str, ...], place: Place, episode: Episode, turn: TurnDiagnosis
    ) -> None:
        """Keep a failed turn if it comes before those kept so far.

        Args:
            subject: What it is an example of.
            place: Where the episode stands.
            episode: The episode.
            turn: The diagnosis of its turn.
        """
        kept = self._kept.setdefault(subject, [])
        if len(kept) >= self.most and place >= kept[-1][0]:
            return
        if any(other == place for other, _ in kept):  # one turn of an episode is enough
            return
        insort(kept, (place, example_of(place, episode, turn)), key=lambda entry: entry[0])
        del kept[self.most :]

    def of(self, subject: tuple[str, ...]) -> Iterator[Example]:
        """The examples of a subject, in order."""
        for _, example in self._kept.get(subject, ()):
            yield example


def example_of(place: Place, episode: Episode, diagnosis: TurnDiagnosis) -> Example:
    """A failed turn, cut to a readable size.

    Args:
        place: Where the episode stands in its run.
        episode: The episode.
        diagnosis: The diagnosis of one of its turns.
    """
    at = diagnosis.turn
    message = episode.turns[at].message if 0 <= at < len(episode.turns) else None
    calls = () if message is None else message.tool_calls
    return Example(
        episode_id=episode.episode_id,
        task=place.task,
        category=place.category,
        attempt=place.attempt,
        user_turn=place.user_turn,
        turn=at,
        label=diagnosis.label,
        labels=diagnosis.labels or (diagnosis.label,),
        tool=diagnosis.tool,
        parameter=diagnosis.parameter,
        request=shown(episode.request),
        calls=tuple(shown_call(call) for call in calls[:MOST_CALLS]),
        more_calls=max(0, len(calls) - MOST_CALLS),
        answer="" if message is None else shown(message.text),
        findings=tuple(_findings(diagnosis.evidence or _verdict_evidence(episode))),
        hint=shown(diagnosis.hint),
    )


def _verdict_evidence(episode: Episode) -> tuple[Evidence, ...]:
    return () if episode.verdict is None else episode.verdict.evidence


def _findings(evidence: Iterable[Evidence]) -> Iterator[Finding]:
    for one in tuple(evidence)[:MOST_FINDINGS]:
        yield Finding(
            kind=one.kind,
            message=shown(one.message),
            tool=one.tool,
            parameter=one.parameter,
            expected="" if one.expected is None else shown_value(one.expected),
            actual="" if one.actual is None else shown_value(one.actual),
        )
