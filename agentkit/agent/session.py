"""Where a run begins: which library, what was said before, and what the model was shown of it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from typing import Any, Protocol, TypeVar

from agentkit import library as library_door
from agentkit.agent.selection import ShownTools
from agentkit.agent.types import (
    Emit,
    Limits,
    RunResult,
    asks_person,
    deferred_calls,
    ignore,
    waiting_calls,
)
from agentkit.episodes import Episode
from agentkit.episodes.episode import MEDIA_DATA
from agentkit.episodes.labels import (
    ROUTE_LABELS,
    TRACE_LABELS,
    VIEW_OF,
    WAITING_AGENT,
    WAITING_LABELS,
    WAITING_SPENT,
    WAITING_TOOLS,
    is_extra_record,
    is_imported,
)
from agentkit.errors import AnsweredBeforeError, LibraryWarning, OtherAgentError, UsageError
from agentkit.library.code_binding import (
    CodeBinding,
    bound_as_held,
    pinned,
    with_code,
    without_code,
)
from agentkit.library.library import Library, RecentVersions
from agentkit.library.store import EpisodeFilter, EpisodeStore, SelfRefreshing, Store, holds_episode
from agentkit.media import Media
from agentkit.messages import Message, ToolCall, Usage
from agentkit.models.base import ModelSettings
from agentkit.tools.canonical import digest
from agentkit.tools.invocation import RunFacts
from agentkit.tools.tool import Tool


def new_episode_id() -> str:
    """A unique id that sorts by time: milliseconds since 1970, then 48 random bits, in hex."""
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(6).hex()}"


_CLAIM = "claim"
"""Label of the record that says which process carries out the answers to a run that waits."""

_TIME_DIGITS = 12
_MOST_PENDING = 10_000
"""Runs that wait, or were answered, that an agent keeps in mind."""

T = TypeVar("T")


def continuation_id(episode_id: str) -> str:
    """The id of the one episode that goes on with another; so a second one is noticed."""
    digest = hashlib.sha256(f"continues {episode_id}".encode()).hexdigest()
    return f"{episode_id[:_TIME_DIGITS]}{digest[:_TIME_DIGITS]}"


def _claim_id(episode_id: str) -> str:
    """The id of the record that says which process carries out what was answered."""
    return continuation_id(f"{episode_id} claimed")


@dataclass(frozen=True, kw_only=True, slots=True)
class RunStart:
    """Where a run begins.

    Attributes:
        request: What the user says; empty when a run is resumed.
        media: What the user sends with it.
        history: The conversation before it.
        library: The pinned snapshot.
        shown: What the conversation has been shown of it.
        session_id: Conversation that the run belongs to, if any.
        metadata: The caller's labels.
        settings: How to generate this time; None as ever.
        resumes: Id of the episode whose waiting calls are answered.
        emit: Receives events.
        ends_loop: Whether the event loop ends with the run.
        episode_id: Id of the episode that the run will be.
        began_ns: When, in nanoseconds since 1970.
        deps: What tools find in their ``RunContext``.
        said: What another agent said and called since the request, before it handed over.
        limits: Its own, within what that agent leaves; None for those of the agent.
        within: The run that asked for it, and spends what it spends.
        chain: The agents that had the conversation since the request.
    """

    request: str
    library: Library
    media: tuple[Media, ...] = ()
    deps: object = None
    history: tuple[Message, ...] = ()
    shown: ShownTools = field(default_factory=ShownTools)
    session_id: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    settings: ModelSettings | None = None
    resumes: str | None = None
    emit: Emit = ignore
    ends_loop: bool = False
    episode_id: str = field(default_factory=new_episode_id)
    began_ns: int = field(default_factory=time.time_ns)
    said: tuple[Message, ...] = ()
    limits: Limits | None = None
    within: RunFacts | None = None
    chain: tuple[object, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class RouteRequest:
    """A run that is about to begin.

    Attributes:
        key: The session's id; without a session the id that the run's episode will have. So what
            was decided by it can be worked out again from the stored episode.
        library: What the run uses if nobody says otherwise: the newest version for a conversation
            that begins, its own version for one that goes on.
        at: The agent's library at another version. It may read the store, so call it in a thread.
        is_new: Whether the conversation begins with this run.
        labels: Labels of the conversation's episodes so far, later ones in the place of earlier
            ones of the same name; empty for one that begins.
    """

    key: str
    library: Library
    at: Callable[[int], Library]
    is_new: bool = True
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Route:
    """Where a run goes.

    Attributes:
        library: The snapshot that it is pinned to. Give the same object for the same tools: what
            was worked out for it, and what a provider has cached of a prompt, holds on then.
        labels: For ``Episode.metadata``; they go before the caller's of the same name.
    """

    library: Library
    labels: Mapping[str, str] = field(default_factory=dict)


class Router(Protocol):
    """Decides about runs. One serves any number of agents and runs at once."""

    async def route(self, asked: RouteRequest) -> Route:
        """Where the run goes.

        It stands before the answer, so it should take microseconds. What it raises ends the run
        before a model is asked: a router that could not say what is safe must not be passed by.
        """
        ...


def labels_of(episodes: Iterable[Episode]) -> dict[str, str]:
    """The labels of a conversation, oldest first; a later one goes before an earlier one."""
    labels: dict[str, str] = {}
    for episode in episodes:
        labels |= episode.metadata
    return labels


def unrouted(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels without those that a router gave, for a run that is routed anew."""
    return {name: text for name, text in labels.items() if name not in ROUTE_LABELS}


def untraced(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels without those that say where another run was traced."""
    return {name: text for name, text in labels.items() if name not in TRACE_LABELS}


def happened(episodes: Iterable[Episode]) -> list[Episode]:
    """The episodes of a conversation without shadow runs and other records beside it.

    A request that a guardrail blocked is no part of it.
    What was imported is no part of it: a file could make up results, and route it by its labels.
    """
    labelled = ((one, one.metadata) for one in episodes)
    own = (one for one, of in labelled if not (is_extra_record(of) or is_imported(of)))
    return [one for one in own if one.stop_reason != "blocked" or one.turns]


def conversation(episodes: Iterable[Episode]) -> tuple[Message, ...]:
    """The messages of a conversation from its episodes, oldest first.

    An episode that resumes another repeats the turn that was waiting, now with its results; the
    waiting copy is dropped, so that each call appears once. Of several that resume the same one the
    last counts. A run that was cancelled or failed in mid-turn contributes its complete turns only.
    """
    kept: list[Episode] = []
    for episode in episodes:
        if episode.resumes is not None:
            kept = [
                _without_last_turn(earlier, episode.resumes)
                for earlier in kept
                if earlier.resumes != episode.resumes
            ]
        kept.append(episode)
    return tuple(message for episode in kept for message in _complete(episode).messages())


def _complete(episode: Episode) -> Episode:
    """The episode without a last turn that was blocked, or whose calls do not all have results."""
    if not episode.turns:
        return episode
    last = episode.turns[-1]
    complete = len(last.results) == len(last.message.tool_calls)
    complete &= bool(last.results) or episode.stop_reason != "blocked"
    return episode if complete else replace(episode, turns=episode.turns[:-1])


def _without_last_turn(episode: Episode, resumed_id: str) -> Episode:
    if episode.episode_id != resumed_id:
        return episode
    return replace(episode, turns=episode.turns[:-1])


class LibraryProvider:
    """The current snapshot, and older ones for conversations that began on them.

    Of the older ones the ``MOST_VERSIONS`` that were used last are held; others are read from the
    store again.

    Args:
        store: Where versions come from; None when the tools live in code only. One that refreshes
            itself, a ``Replica``, hands over each new version when it is there; of others
            ``refresh`` takes them up.
        library: A snapshot to use instead of the store's; it then never changes.
        tools: Tools in code, bound to the store's definitions of their names, and registered where
            it knows none (``agentkit.library.code_binding``).
        pin: A library version that every run uses; None for the newest.
        frozen: Refuse to begin where code and library differ.
        hides_unbound: Leave out tools without code.

    Attributes:
        binding: What binding the code came to.
    """

    def __init__(
        self,
        *,
        store: Store | None,
        library: Library | None,
        tools: Sequence[Tool],
        pin: int | None = None,
        frozen: bool = False,
        hides_unbound: bool = False,
    ) -> None:
        self._store = store if library is None else None
        self._tools = tuple(tools)
        self._hides_unbound = hides_unbound
        self._older = RecentVersions()
        bound, self.binding = self._bound(library, pin, frozen=frozen)
        for note in self.binding.notes:
            warnings.warn(note, LibraryWarning, stacklevel=3)  # where the agent is made
        self._current = self._shown(bound)
        self._pin = pin
        source: object = self._store
        self._replica = source if isinstance(source, SelfRefreshing) else None
        if self._replica is not None and pin is None:
            self._replica.follow(self._take_up)

    def _bound(
        self, library: Library | None, pin: int | None, *, frozen: bool
    ) -> tuple[Library, CodeBinding]:
        """The code of this process on the library that new runs are pinned to."""
        if self._store is None:
            if pin is not None:
                raise UsageError("a library version is held with a store; pass store= beside it")
            own = Library() if library is None else library
            bound = with_code(own, self._tools)
            absent = without_code(bound)
            return bound, CodeBinding(library_version=own.version, without_code=absent)
        if pin is not None:
            return pinned(self._store, pin, self._tools, frozen=frozen)
        found = bound_as_held(self._store, self._tools)
        return found or library_door.bind_code(self._store, self._tools, frozen=frozen)

    @property
    def current(self) -> Library:
        """The newest snapshot."""
        return self._current

    def for_run(self) -> Library:
        """The snapshot for a run that begins now.

        Raises:
            StoreError: This is a fork of the process that made the replica.
        """
        if self._store is not None and self._replica is not None:
            self._store.load()  # at hand; asks nobody
        return self._current

    def at(self, version: int) -> Library:
        """The snapshot of that version; the current one when there is no store to ask.

        Raises:
            StoreUnavailableError: That version is not held here, and the store is away. A
                conversation never goes on with another version than its own for that.
        """
        current = self._current
        if self._store is None or version == current.version:
            return current
        held = self._older.get(version)
        if held is None:
            held = self._with_code(self._store.load(version))
            self._older.put(held)
        return held

    def refresh(self) -> Library:
        """Take up the newest version, if there is one."""
        if self._pin is not None:
            return self._current
        if self._replica is not None:
            self._replica.refresh()
        elif self._store is not None:
            versions = self._store.versions()
            if versions and versions[-1] != self._current.version:
                self._take_up(self._store.load())
        return self._current

    def _take_up(self, base: Library) -> None:
        """Make another version the current one; with a replica that is its thread's work."""
        before = self._current
        if base.version != before.version:
            newest = self._with_code(base).continuing(before)
            if self._replica is not None:
                newest.caught_up()
            self._older.put(before)
            self._current = newest

    def _with_code(self, base: Library) -> Library:
        return self._shown(with_code(base, self._tools))

    def _shown(self, library: Library) -> Library:
        """The library without the tools that can not run here, where these are hidden."""
        if not self._hides_unbound:
            return library
        return library.without(tool.name for tool in library if not tool.is_bound)


class PendingApprovals:
    """Which runs wait, so that decisions and values are for calls that were asked about, once.

    An episode that is handed back may have travelled, to a browser for instance, and a person
    approved what it shows. So it must be as the store has it, or be of a run of this agent; without
    a store only the latter counts.

    Args:
        store: Where episodes are kept.
    """

    def __init__(self, store: EpisodeStore | None) -> None:
        self._store = store
        self._own: OrderedDict[str, bytes] = OrderedDict()
        self._answered: OrderedDict[str, str] = OrderedDict()
        self._given_back: OrderedDict[str, str] = OrderedDict()

    def remember(self, result: RunResult) -> None:
        """Keep in mind that a run waits, if it does."""
        if result.stop_reason == "deferred":
            _put(self._own, result.episode.episode_id, _as_asked(result.episode))

    def check(self, episode: Episode) -> None:
        """Refuse a run that is not known, or not as it is known. The store may be read.

        Raises:
            UsageError: As said.
            AnsweredBeforeError: Its answers are at hand.
        """
        episode_id = episode.episode_id
        store = self._store
        is_answered = store is not None and holds_episode(store, continuation_id(episode_id))
        if is_answered or episode_id in self._answered:
            raise _answered_before(episode_id)
        given = _as_asked(episode)
        if self._own.get(episode_id) == given:
            return
        kept = None if store is None else store.get(episode_id)
        if kept is None or is_imported(kept.metadata) or _as_asked(kept) != given:
            raise UsageError(
                f"no run {episode_id!r} waits that is as this one, and an answer is for what was "
                "asked. Go on with the unchanged result, or with what store.get() gives; without "
                "a store, only the agent that asked takes answers"
            )

    def take(self, episode: Episode) -> str:
        """Note that the answers are carried out now; gives the mark of the claim.

        Raises:
            AnsweredBeforeError: They were before.
        """
        mark = self._given_back.pop(episode.episode_id, None) or new_episode_id()
        if self._answered.setdefault(episode.episode_id, mark) is not mark:
            raise _answered_before(episode.episode_id)
        _put(self._answered, episode.episode_id, mark)
        return mark

    def give_back(self, episode: Episode, mark: str) -> None:
        """Note that nothing ran, since the claim failed: it may be tried again by its mark."""
        self._answered.pop(episode.episode_id, None)
        _put(self._given_back, episode.episode_id, mark)

    def claim(self, episode: Episode, mark: str) -> None:
        """Have the store say that this process carries the answers out. It is written to.

        Several processes may share a store. A store keeps one record of an id, so whichever wrote
        the claim first goes on, and the others read its mark. A process that dies between claim and
        run leaves calls that nobody runs any more, rather than calls that run twice.

        Raises:
            AnsweredBeforeError: Another process was first.
            StoreError: The store failed; nothing runs.
        """
        if self._store is None:
            return
        claim_id = _claim_id(episode.episode_id)
        labels = {VIEW_OF: episode.episode_id, _CLAIM: mark}
        self._store.append(
            Episode(episode_id=claim_id, request="", stop_reason="cancelled", metadata=labels)
        )
        kept = self._store.get(claim_id)
        if kept is not None and kept.metadata.get(_CLAIM) != mark:
            raise _answered_before(episode.episode_id)


def _put(memory: OrderedDict[str, T], episode_id: str, value: T) -> None:
    memory[episode_id] = value
    while len(memory) > _MOST_PENDING:
        memory.popitem(last=False)


def _as_asked(episode: Episode) -> bytes:
    """A digest of a run, without what was judged of it since."""
    record = replace(episode, verdict=None, diagnosis=None).to_json()
    record.pop(MEDIA_DATA, None)  # the digests are in the record
    # Escaped, so that half a surrogate pair, which a person's own words may hold, has a digest.
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).digest()


def _answered_before(episode_id: str) -> AnsweredBeforeError:
    return AnsweredBeforeError(
        f"the waiting calls of {episode_id} were answered before, and nothing runs twice; go on "
        "with a new request"
    )


def pending_approvals(
    store: EpisodeStore, *, limit: int = 100, after: str = ""
) -> tuple[Episode, ...]:
    """The kept runs with calls that a person has to approve, those that wait longest first.

    Decide with ``Agent.resume(episode, approvals={call_id: True})``. What was decided before, was
    imported, or also waits for a value that only its caller has, is left out.

    Args:
        store: Where episodes are kept.
        limit: Most runs.
        after: The id of the last run of an earlier answer, to go on behind it.
    """
    return tuple(islice(waiting_runs(store, after=after), limit))


def waiting_runs(store: EpisodeStore, *, after: str = "") -> Iterator[Episode]:
    """The runs of ``pending_approvals``, lazily."""
    is_behind = not after
    for one in store.select(EpisodeFilter(stop_reason="deferred", oldest_first=True)):
        is_ours = not (is_imported(one.metadata) or is_extra_record(one.metadata))
        is_open = is_behind and is_ours and awaits_person(one)
        if is_open and not holds_episode(store, continuation_id(one.episode_id)):
            yield one
        is_behind = is_behind or one.episode_id == after


def reserved_ids(store: EpisodeStore) -> frozenset[str]:
    """The ids under which runs that wait will be answered; no other record may have them."""
    waiting = store.select(EpisodeFilter(stop_reason="deferred"))
    ours = [one.episode_id for one in waiting if not is_imported(one.metadata)]
    return frozenset(taken for one in ours for taken in (continuation_id(one), _claim_id(one)))


def awaits_person(episode: Episode) -> bool:
    """Whether a person's decision is all that a run waits for."""
    waiting = waiting_calls(episode)
    return bool(waiting) and all(asks_person(result) for _, result in waiting)


def waiting_labels(agent: str, library: Library, calls: Iterable[ToolCall]) -> dict[str, str]:
    """Labels of a run that waits: its agent, and the definitions that its calls were made to."""
    tools = {call.name: library.get(call.name) for call in calls}
    known = {name: one.definition.digest if one else None for name, one in tools.items()}
    return {WAITING_AGENT: agent, WAITING_TOOLS: digest(known)}


_SPENT = re.compile(r"(\d{1,9}) calls, (\d{1,12}) tokens, (\d{1,12}\.\d{6}) USD", re.ASCII)


def spent_label(run: RunFacts, episode: Episode) -> str:
    """What a run that waits has spent; a call that waits counts when it runs.

    Args:
        run: The run, or, where it goes on from others, all of them.
        episode: The run as it waits.
    """
    most = run.limits.max_calls if run.limits else 0
    waits = sum(result.status == "deferred" for _, result in episode.turns[-1].steps() if result)
    calls = max(0, most - (most if run.calls_left is None else run.calls_left) - waits)
    return f"{calls} calls, {run.usage.total_tokens} tokens, {run.usage.cost_usd or 0.0:.6f} USD"


def spent_before(episode: Episode, limits: Limits) -> RunFacts | None:
    """The run that one belongs to that goes on from a waiting one: their limits are the same."""
    found = _SPENT.fullmatch(episode.metadata.get(WAITING_SPENT, ""))
    if found is None:
        return None
    usage = Usage(prompt_tokens=int(found[2]), cost_usd=float(found[3]))
    return RunFacts(limits=limits, usage=usage, calls_left=max(0, limits.max_calls - int(found[1])))


@dataclass(frozen=True, kw_only=True, slots=True)
class RunPreparation:
    """Finds where runs begin.

    Attributes:
        agent: The agent's name.
        libraries: The library's versions.
        store: Where conversations are kept; None when callers keep them.
        router: Decides which library each run uses; None leaves it as it is.
        approvals: Which runs wait for answers.
    """

    agent: str
    libraries: LibraryProvider
    store: EpisodeStore | None
    router: Router | None
    approvals: PendingApprovals

    async def of_request(self, start: RunStart, history: Sequence[Message] | RunResult) -> RunStart:
        """The start of a run for a new request.

        Args:
            start: What the caller said, with the current library.
            history: The conversation, for callers who keep it.

        Raises:
            UsageError: A session was asked for without a store, or together with a history.
        """
        said = history.messages if isinstance(history, RunResult) else tuple(history)
        start = replace(start, history=said, shown=_shown_in(history))
        if start.session_id is None:
            # Who keeps messages alone can hand on the labels of the last episode as metadata.
            known = history.episode.metadata if isinstance(history, RunResult) else start.metadata
            return await self._routed(start, known if said else {}, is_new=not said)
        if said:
            raise UsageError("give session_id or history, not both: a session has its own")
        episodes = await self._session(start.session_id)
        if episodes:  # a conversation keeps the library version that it began with
            library = await asyncio.to_thread(self.libraries.at, episodes[0].library_version)
            shown = ShownTools.in_episodes(episodes)
            start = replace(start, library=library, history=conversation(episodes), shown=shown)
        return await self._routed(start, labels_of(episodes), is_new=not episodes)

    async def of_answers(
        self,
        start: RunStart,
        waiting: RunResult | Episode,
        history: Sequence[Message],
        *,
        approves: bool,
    ) -> RunStart:
        """The start of a run that goes on with one whose calls were answered.

        Args:
            start: What the caller said.
            waiting: The run that waited.
            history: The messages before that run when they are in no store.
            approves: Whether a call runs now.

        Raises:
            UsageError: No such run waits (``PendingApprovals``).
            AnsweredBeforeError: It was answered before.
            OtherAgentError: It is another agent's, or a tool is not as it was shown.
        """
        episode = waiting.episode if isinstance(waiting, RunResult) else waiting
        asker = episode.metadata.get(WAITING_AGENT, self.agent)
        if asker != self.agent:
            raise OtherAgentError(
                f"the run {episode.episode_id} waits for the agent {asker!r}, and this is "
                f"{self.agent!r}, whose tools are others; resume it with {asker!r}"
            )
        await asyncio.to_thread(self.approvals.check, episode)
        said, shown = await self._before(waiting, history)
        labels = {k: text for k, text in episode.metadata.items() if k not in WAITING_LABELS}
        start = replace(
            start,
            library=await asyncio.to_thread(self.libraries.at, episode.library_version),
            history=said,
            shown=shown,
            session_id=episode.session_id,
            metadata=untraced(unrouted(labels)),
            resumes=episode.episode_id,
        )
        start = await self._routed(start, labels, is_new=False)
        if approves and WAITING_TOOLS in episode.metadata:
            now = waiting_labels(asker, start.library, deferred_calls(episode))
            if now[WAITING_TOOLS] != episode.metadata[WAITING_TOOLS]:
                raise OtherAgentError(
                    f"a tool that the run {episode.episode_id} waits to call is not as it was when "
                    f"the agent {asker!r} asked, and an approval is for what was shown; resume it "
                    "with that agent and its tools of then, or refuse its calls and ask anew"
                )
        mark = self.approvals.take(episode)
        try:
            await _seen_through(asyncio.to_thread(self.approvals.claim, episode, mark))
        except BaseException:
            self.approvals.give_back(episode, mark)
            raise
        return start

    async def _routed(self, start: RunStart, known: Mapping[str, str], *, is_new: bool) -> RunStart:
        """The start with the library and the labels that the router gives it.

        Args:
            start: As it is without a router.
            known: Labels of the conversation so far.
            is_new: Whether the conversation begins here.
        """
        if self.router is None:
            return start
        asked = RouteRequest(
            key=start.session_id or start.resumes or start.episode_id,
            library=start.library,
            at=self.libraries.at,
            is_new=is_new,
            labels=known,
        )
        route = await self.router.route(asked)
        labels = {**unrouted(start.metadata), **route.labels}
        return replace(start, library=route.library, metadata=labels)

    async def _session(self, session_id: str) -> list[Episode]:
        store = self.store
        if store is None:
            raise UsageError(
                f"session {session_id!r} needs a store to live in; "
                "pass store='sqlite:///agent.db' to Agent, or keep the history yourself"
            )
        matching = EpisodeFilter(session_id=session_id, oldest_first=True)
        return await asyncio.to_thread(lambda: happened(store.select(matching)))

    async def _before(
        self, waiting: RunResult | Episode, history: Sequence[Message]
    ) -> tuple[tuple[Message, ...], ShownTools]:
        """What was said before the turn that waits, and what was shown of the library by then."""
        episode = waiting.episode if isinstance(waiting, RunResult) else waiting
        session: list[Episode] | None = None
        if episode.session_id is not None and self.store is not None:
            session = await self._session(episode.session_id)
        shown = ShownTools.in_episodes([episode] if session is None else session)
        if isinstance(waiting, RunResult):
            return waiting.messages[: -1 - len(episode.turns[-1].results)], shown
        own = replace(episode, turns=episode.turns[:-1])
        if session is None:
            return (*history, *own.messages()), shown
        # In the store's order: ids of one moment do not sort.
        earlier = takewhile(lambda e: e.episode_id != episode.episode_id, session)
        # What waits repeats the turn of one that it goes on from.
        return conversation([*earlier, own]), shown


async def _seen_through(work: Coroutine[Any, Any, None]) -> None:
    """Wait for work to end; whoever is cancelled meanwhile is cancelled at the next wait.

    So a run whose answers are claimed begins, and records that it was cut.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if task.exception() is not None:
            raise
        current = asyncio.current_task()
        assert current is not None
        current.uncancel()
        current.cancel()


def _shown_in(history: Sequence[Message] | RunResult) -> ShownTools:
    if isinstance(history, RunResult):
        return ShownTools.in_episodes([history.episode])
    return ShownTools.in_messages(history)
