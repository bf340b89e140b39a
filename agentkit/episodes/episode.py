"""``Episode``: the record of one run, from the request to the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

from agentkit.episodes.verdict import Diagnosis, Verdict
from agentkit.errors import EpisodeFormatError, NewerEpisodeError
from agentkit.media import Media, media_from_json
from agentkit.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    TokenIds,
    ToolCall,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
)
from agentkit.records import Record, changed, from_record

FORMAT_VERSION = 5
"""Newest version of the JSON form of an episode. Older ones stay readable, and each is written in
the oldest version that holds all of it: 2 has the library's names of tools, 3 token ids, the parts
of an answer that only its provider understands, and why an answer was cut short, 4
guardrails, and what was left out of a history, 5 media, and the calls of programs."""

MEDIA_DATA = "media_data"
"""The key of a record's table of the bytes of its media, in base64 by their digests."""

StopReason = Literal[
    "finished",  # the model answered
    "deferred",  # calls wait for somebody outside the run (approval, or an unbound tool)
    "step_limit",
    "token_limit",
    "cost_limit",
    "output_invalid",  # the final answer never matched the output schema
    "blocked",  # by a guardrail; see Episode.guardrails
    "cancelled",  # Ctrl-C or task cancellation; what happened so far is kept
    "error",  # the model failed for good; see Episode.error
]

CutReason = Literal["length", "content_filter"]
"""Why a provider ended an answer before the model did."""

RefineMode = Literal["none", "vanilla", "adaptive", "self_consistency"]


GuardrailPlace = Literal["input", "tool_call", "tool_result", "output"]
"""The subject of a guardrail."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GuardrailRecord(Record):
    """The decision of one guardrail.

    Attributes:
        name: The guardrail.
        on: What it looked at.
        outcome: ``failed`` when it raised or took too long, which ends the run.
        reason: Why, in its words.
        call_id: The tool call that it looked at.
        seconds: Wall time.
    """

    _OPTIONAL: ClassVar = ("reason", "call_id")

    name: str
    on: GuardrailPlace
    outcome: Literal["passed", "rewritten", "blocked", "asked", "failed"]
    reason: str = ""
    call_id: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class StageReport(Record):
    """The record of one retrieval stage.

    Attributes:
        stage: Its name.
        survivors: Tools left after it.
        tokens: Estimated prompt tokens that showing the survivors would cost.
        seconds: Wall time.
        cpu_seconds: Processor time of the thread that ran it.
        goal: The intent of the sub-goal, when a planner split the query; "" otherwise.
    """

    _OPTIONAL: ClassVar = ("cpu_seconds", "goal")

    stage: str
    survivors: int
    tokens: int
    seconds: float
    cpu_seconds: float = 0.0
    goal: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class GoalTrace(Record):
    """One step that a planner split the query into.

    Attributes:
        intent: The step in words.
        ranked: Names of the tools that were found for it, best first.
    """

    intent: str
    ranked: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievalTrace(Record):
    """Which tools a turn's model got to see, and how they were found.

    Attributes:
        query: The text that was searched for.
        shortlist: Names of the ranked tools, best first.
        offered: Names of the tools whose full schema the model has from then on.
        stages: One report per stage, in order.
        notes: Fallbacks that were taken, in words.
        goals: The steps that a planner split the query into; empty when it was not split.
        unmatched: Words of the query, as search terms, that no tool has.
        cards: Names of the tools that ``search_tools`` listed as one-line cards.
    """

    _OPTIONAL: ClassVar = ("notes", "goals", "unmatched", "cards")

    query: str
    shortlist: tuple[str, ...]
    offered: tuple[str, ...]
    stages: tuple[StageReport, ...] = ()
    notes: tuple[str, ...] = ()
    goals: tuple[GoalTrace, ...] = ()
    unmatched: tuple[str, ...] = ()
    cards: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class RefineTrace(Record):
    """How a turn's calls were refined before they ran (ToolACE-R, Algorithm 1).

    Attributes:
        mode: The strategy.
        proposals: The calls of each iteration, the direct answer first.
        chosen: Index into ``proposals`` of the calls that were run.
        converged: Whether two consecutive proposals were equal.
        usage: What the iterations after the first cost.
        tokens: Tokens by answer in order, the direct one first and those without calls included,
            from servers that report them.
    """

    _OPTIONAL: ClassVar = ("tokens",)

    mode: RefineMode
    proposals: tuple[tuple[ToolCall, ...], ...]
    chosen: int
    converged: bool
    usage: Usage = field(default_factory=Usage)
    tokens: tuple[TokenIds, ...] = ()

    @property
    def iterations(self) -> int:
        """Refinement rounds after the direct answer."""
        return len(self.proposals) - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryTrace(Record):
    """A history processor's changes to what the model was sent.

    Attributes:
        name: The processor.
        left_out: Messages that were left out from then on, as first and last place in the
            conversation, from 0; ``Episode.history_length`` says where the run's own begin.
        shortened: Calls whose results were sent shortened; the episodes hold them whole.
        added: Texts that were put in their place, such as a summary.
        note: Why nothing was changed, when it failed.
    """

    _OPTIONAL: ClassVar = ("left_out", "shortened", "added", "note")

    name: str
    left_out: tuple[tuple[int, int], ...] = ()
    shortened: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramCall(Record):
    """A call that a program of the model made (code mode).

    Attributes:
        program: Id of the call that ran the program.
        call: The call; its id is the program's, a dot, and its number.
        result: What came of it.
    """

    program: str
    call: ToolCall
    result: ToolResult


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn(Record):
    """One model step: what it was offered, what it said, what its calls gave.

    Attributes:
        message: The model's answer, after refinement.
        results: One result per call, in the order of the calls.
        usage: All model use of the turn, refinement included.
        retrieval: How the tools for the request were found; None when all were offered, and in
            turns after the first.
        searches: What the model's own searches for tools found, in order.
        refine: How the calls were refined; None when they were not.
        correction: What the model was sent about an answer that did not match the output schema.
        tokens: The tokens of the answer that ``message`` holds, from servers that report them.
        finish_reason: Why the answer ends where it ends, when the model was not done: at its
            longest length, or held back by the provider's filter. None when it was done.
        history: What was left out of the conversation before the model was asked.
        program_calls: The calls that its programs made, in order.
        seconds: Wall time of the turn.
        model_seconds: The part of it spent waiting for the model.
    """

    _OPTIONAL: ClassVar = (
        "retrieval",
        "searches",
        "refine",
        "correction",
        "tokens",
        "finish_reason",
        "history",
        "program_calls",
    )

    message: AssistantMessage
    results: tuple[ToolResult, ...] = ()
    usage: Usage = field(default_factory=Usage)
    retrieval: RetrievalTrace | None = None
    searches: tuple[RetrievalTrace, ...] = ()
    refine: RefineTrace | None = None
    correction: str = ""
    tokens: TokenIds | None = None
    finish_reason: CutReason | None = None
    history: tuple[HistoryTrace, ...] = ()
    program_calls: tuple[ProgramCall, ...] = ()
    seconds: float = 0.0
    model_seconds: float = 0.0

    def steps(self) -> Iterator[tuple[ToolCall, ToolResult | None]]:
        """Each call with its result, None where there is none; for a program the calls it made.

        A program that was not run to its end comes before its calls.
        """
        calls, results = self.message.tool_calls, self.results
        by_id = {result.call_id: result for result in results}
        is_complete = len(calls) == len(results)  # then they stand in one order
        by_program: dict[str, list[ProgramCall]] = {}
        for one in self.program_calls:
            by_program.setdefault(one.program, []).append(one)
        for at, call in enumerate(calls):
            result = results[at] if is_complete else by_id.get(call.call_id)
            inside = by_program.get(call.call_id, ())
            if not inside or result is None or result.status != "ok":
                yield call, result
            yield from ((one.call, one.result) for one in inside)


@dataclass(frozen=True, kw_only=True, slots=True)
class Episode(Record):
    """The record of one run. Append-only: a later judgement makes a new record.

    Attributes:
        episode_id: Unique id, sortable by time of creation.
        request: What the user asked.
        media: The images, audio and files that were sent with it. The record holds the bytes of
            each medium, those of results included, once.
        turns: The model steps in order.
        stop_reason: Why the run ended.
        output: The final answer: text, or the structured value as JSON data.
        model: The model's name.
        library_version: The snapshot that the run was pinned to.
        library_digest: Digest over the definitions of that snapshot; empty when not computed.
        session_id: Conversation that the run belongs to, if any.
        history_length: Messages of the conversation before ``request``.
        resumes: Id of the episode whose waiting calls this one answers; its first turn repeats
            the waiting turn, now with results.
        usage: All model use.
        started_at: ISO 8601 time in UTC.
        seconds: Wall time of the run.
        error: Type and message of the failure, for ``error`` and ``cancelled``.
        verdict: Judgement of a verifier, if there is one.
        diagnosis: Why it failed, if that was diagnosed.
        metadata: The caller's own labels.
        library_names: What the library calls the tools that were offered under another name, by
            that name. Empty when all were offered as the library calls them; for older episodes,
            which do not record it, as well. ``agentkit.episodes.labels`` reads it.
        guardrails: What guardrails decided, in order.
        format: Version of this record's form.
    """

    _OPTIONAL: ClassVar = ("media", "library_names", "guardrails")

    episode_id: str
    request: str
    media: tuple[Media, ...] = ()
    turns: tuple[Turn, ...] = ()
    stop_reason: StopReason = "finished"
    output: Any = None
    model: str = ""
    library_version: int = 0
    library_digest: str = ""
    session_id: str | None = None
    history_length: int = 0
    resumes: str | None = None
    usage: Usage = field(default_factory=Usage)
    started_at: str = ""
    seconds: float = 0.0
    error: str | None = None
    verdict: Verdict | None = None
    diagnosis: Diagnosis | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    library_names: Mapping[str, str] = field(default_factory=dict)
    guardrails: tuple[GuardrailRecord, ...] = ()
    format: int = 1

    def __post_init__(self) -> None:
        needed = 4 if self.guardrails else 2 if self.library_names else 1
        for turn in self.turns:
            needed = max(needed, _needed_format(turn))
        needed = 5 if self.media else needed
        if needed > self.format:
            object.__setattr__(self, "format", needed)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Every call that the model made, in order; then, for each turn, those of its programs."""
        return tuple(
            call
            for turn in self.turns
            for call in (*turn.message.tool_calls, *(one.call for one in turn.program_calls))
        )

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """Every result, in the order of ``calls``."""
        return tuple(
            result
            for turn in self.turns
            for result in (*turn.results, *(one.result for one in turn.program_calls))
        )

    def messages(self) -> tuple[Message, ...]:
        """The conversation of this run alone, from the request to the last answer."""
        messages: list[Message] = []
        if self.request:
            messages.append(UserMessage(text=self.request, media=self.media))
        for turn in self.turns:
            messages.append(turn.message)
            messages.extend(map(as_message, turn.results))
            if turn.correction:
                messages.append(UserMessage(text=turn.correction))
        return tuple(messages)

    def to_json(self) -> dict[str, Any]:
        """The episode as one JSON object."""
        record = Record.to_json(self)
        if self.format >= FORMAT_VERSION:
            shown = (*self.media, *(one for result in self.results for one in result.media))
            held = {one.sha256: one.base64 for one in shown if one.data is not None}
            record |= {MEDIA_DATA: held} if held else {}
        return record

    @classmethod
    def from_json(cls, record: JsonObject) -> Episode:
        """The inverse of ``to_json``.

        Raises:
            EpisodeFormatError: The record is not an episode, or its format is newer than ours.
        """
        try:
            if record["format"] > FORMAT_VERSION:
                raise NewerEpisodeError(
                    f"episode {record['episode_id']!r} has format {record['format']}, this "
                    f"agentkit reads up to {FORMAT_VERSION}; upgrade agentkit-evolve"
                )
            fields = {**record, "usage": record["usage"], "turns": record["turns"]}
            held = fields.pop(MEDIA_DATA, None)
            episode = from_record(cls, fields)
            return episode if not held else _with_media(episode, held)
        except KeyError as error:
            raise EpisodeFormatError(
                f"not an episode (it has no {error}): {str(record)[:200]}"
            ) from error
        except (AttributeError, TypeError, ValueError) as error:
            raise EpisodeFormatError(
                f"not an episode ({type(error).__name__}: {error}): {str(record)[:200]}"
            ) from error


def as_message(result: ToolResult) -> ToolMessage:
    """A result as the model reads it."""
    return ToolMessage(
        call_id=result.call_id, name=result.name, text=result.text, media=result.media
    )


_HOLD_MEDIA = {
    Episode: ("media", "turns"),
    Turn: ("results", "program_calls"),
    ProgramCall: ("result",),
    ToolResult: ("media",),
}


def _with_media(episode: Episode, held: Mapping[str, str]) -> Episode:
    """The episode with the bytes of its media, which its record holds apart."""

    def whole(medium: Media) -> Media:
        return media_from_json(medium.reference(), held.get(medium.sha256))

    return changed(episode, _HOLD_MEDIA, whole)


def _needed_format(turn: Turn) -> int:
    """The oldest format that holds all of the turn."""
    if turn.program_calls:
        return 5
    for result in turn.results:
        if result.media:
            return 5
    if turn.history:
        return 4
    has_tokens = turn.tokens is not None or (turn.refine is not None and bool(turn.refine.tokens))
    is_third = has_tokens or turn.finish_reason is not None or bool(turn.message.provider_items)
    return 3 if is_third else 1


class Verifier(Protocol):
    """Judges one episode. ``agentkit.evaluation.verifiers`` holds ready ones.

    It is asynchronous, since some ask a model or run code.
    """

    async def verify(self, episode: Episode) -> Verdict:
        """The judgement. What cannot be judged is a verdict with a ``fault``, not an exception."""
        ...
