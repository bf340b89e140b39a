"""``Work``: what the agent is to do for one request, a new run or one that goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from agentkit.agent.agent import Agent
from agentkit.agent.delegation import PARENT_LABEL
from agentkit.agent.session import continuation_id, conversation, new_episode_id
from agentkit.agent.types import (
    Decision,
    Request,
    ResumeOptions,
    RunEvent,
    RunOptions,
    RunResult,
    asks_person,
    waiting_calls,
)
from agentkit.episodes import Episode, StopReason
from agentkit.episodes.labels import (
    ANONYMOUS,
    KEY_LABEL,
    REQUEST_LABEL,
    WITNESS,
    is_extra_record,
    is_imported,
)
from agentkit.evolution.validation.texts import name_key
from agentkit.library.store import EpisodeFilter, EpisodeStore, holds_episode
from agentkit.media import Media, parts_of
from agentkit.messages import Message, check_sent
from agentkit.reading import read_json
from agentkit.server.chat_answer import call_id_on_the_wire
from agentkit.server.chat_request import Asked
from agentkit.server.middleware import NO_RETRY, Exchange, RequestError

_UNNAMED = "resp."
"""Conversations that clients go on with by the id of the last answer, not by a name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """The work for the agent.

    Attributes:
        episode_id: Id of the episode that it will be.
        request: The user's message; empty when a run resumes.
        media: What was sent with it.
        history: What was said before, when no store has it.
        session_id: The conversation, as the store knows it.
        labels: For the episode.
        waiting: The run that resumes; None for a new one.
        values: Results by call id, for a run that resumes.
        approvals: Decisions by call id, for a run that resumes.
        deps: What tools find in their ``RunContext``.
    """

    episode_id: str
    request: str = ""
    media: tuple[Media, ...] = ()
    history: tuple[Message, ...] = ()
    session_id: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    waiting: Episode | None = None
    values: Mapping[str, object] = field(default_factory=dict)
    approvals: Mapping[str, Decision] = field(default_factory=dict)
    deps: Any = None

    async def carried_out(self, agent: Agent) -> RunResult:
        """The outcome.

        Raises:
            RunError: As for ``Agent.run``.
        """
        if self.waiting is None:
            return await agent.run(self._said, **self._options())
        return await agent.resume(self.waiting, **self._resume_options())

    def streamed(self, agent: Agent) -> AsyncGenerator[RunEvent, None]:
        """What happens on the way to the outcome."""
        if self.waiting is None:
            return agent.stream(self._said, **self._options())
        return agent.stream_resume(self.waiting, **self._resume_options())

    @property
    def _said(self) -> Request:
        return [*parts_of(self.request, self.media)] if self.media else self.request

    def _options(self) -> RunOptions[Any]:
        return RunOptions(
            deps=self.deps,
            session_id=self.session_id,
            history=self.history,
            metadata=self.labels,
            episode_id=self.episode_id,
        )

    def _resume_options(self) -> ResumeOptions[Any]:
        return ResumeOptions(
            deps=self.deps,
            approvals=self.approvals,
            values=self.values,
            history=self.history,
        )

    def unfinished(self, agent: Agent, stop_reason: StopReason, why: str) -> Episode:
        """The episode of work that ended before the agent could record it."""
        return Episode(
            episode_id=self.episode_id,
            request=self.request,
            media=self.media,
            stop_reason=stop_reason,
            model=agent.model.name,
            library_version=agent.library.version,
            session_id=self.session_id,
            history_length=len(self.history),
            started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            error=why,
            metadata=dict(self.labels),
        )


def new_work(
    chat_request: Asked, exchange: Exchange, *, keeps: bool, has_clients: bool = False
) -> Work:
    """A new run for a user message.

    Whatever the client leaves out, the episode names a user: requests of one person must not count
    as two witnesses when evidence is learned from. A name in which nobody sees anything is none.

    Args:
        chat_request: The request.
        exchange: The request.
        keeps: Whether there is a store for conversations.
        has_clients: Whether several keys ask, each of which could name users as it likes.
    """
    labels = dict(chat_request.labels)
    if not name_key(labels.get("user", "")):
        labels["user"] = exchange.key or ANONYMOUS
    labels[REQUEST_LABEL] = exchange.request_id
    if exchange.key:
        labels[KEY_LABEL] = exchange.key
        labels |= {WITNESS: exchange.key} if has_clients else {}
    episode_id = new_episode_id()
    if keeps and chat_request.is_followable and not chat_request.session:
        chat_request = replace(chat_request, session=f"{_UNNAMED}{episode_id}")
    return Work(
        episode_id=episode_id,
        request=chat_request.messages[-1].text,
        media=chat_request.messages[-1].media,
        history=() if chat_request.session else chat_request.messages[:-1],
        session_id=_session_id(chat_request, exchange),
        labels=labels,
    )


def _session_id(chat_request: Asked, exchange: Exchange) -> str | None:
    """The session as the store knows it: no key reaches the conversations of another one."""
    if chat_request.session is None or not exchange.key:
        return chat_request.session
    return f"{exchange.key}/{chat_request.session}"


def followed(episode_id: str, store: EpisodeStore, key: str) -> str:
    """The session of an earlier answer, which must be the last one in it. The store is read.

    Raises:
        RequestError: There is no such answer for this key, its conversation was not kept, or it
            went on.
    """
    last = store.get(episode_id)
    if last is None or is_imported(last.metadata) or last.metadata.get(KEY_LABEL, "") != key:
        raise RequestError(
            status=404,
            message="no response of that id is kept for this key",
            code="previous_response_not_found",
            param="previous_response_id",
        )
    if last.session_id is None:
        raise RequestError(
            message="the conversation of that response was not kept; send it whole instead",
            code="no_session",
            param="previous_response_id",
        )
    kept = store.select(EpisodeFilter(session_id=last.session_id))
    newest = next((one for one in kept if not is_extra_record(one.metadata)), last)
    if newest.episode_id != last.episode_id:
        raise RequestError(
            status=409,
            message=f"that conversation went on; its last response is resp_{newest.episode_id}",
            code="conversation_went_on",
            param="previous_response_id",
        )
    return last.session_id


async def continued_work(
    chat_request: Asked, exchange: Exchange, store: EpisodeStore | None
) -> Work:
    """The run that goes on with the client's answers to its calls.

    Args:
        chat_request: The request, which ends in tool messages.
        exchange: The request.
        store: Holds the waiting run.

    Raises:
        RequestError: No run waits for these answers, or they are not what it waits for.
    """
    ids = {call_id.partition(".")[0] for call_id in chat_request.answers}
    waiting = None
    if store is not None and len(ids) == 1:
        waiting = await asyncio.to_thread(store.get, ids.pop())
    if store is None or waiting is None or not _may_go_on(waiting, chat_request, exchange):
        message = "no run waits for these calls; tool_call_id must be as the answer had it"
        raise RequestError(message=message, param="messages", code="unknown_tool_call")
    if PARENT_LABEL in waiting.metadata:  # guardrails of the agent above would see nothing of it
        message = (
            "these calls wait in a run of an agent that another one asked, and no client answers "
            "them; an approver decides at /v1/approvals, or the server's own code with Agent.resume"
        )
        raise RequestError(status=403, message=message, param="messages", code="run_of_other_agent")
    work = await asyncio.to_thread(_going_on, waiting, chat_request, store)
    if await asyncio.to_thread(holds_episode, store, work.episode_id):
        raise already_answered()
    return _with_answers(work, waiting, chat_request.answers)


def already_answered() -> RequestError:
    """These calls were answered before: nothing runs twice."""
    message = "these calls were answered before; continue with a new user message"
    return RequestError(status=409, message=message, code="already_answered", headers=(NO_RETRY,))


def _may_go_on(waiting: Episode, chat_request: Asked, exchange: Exchange) -> bool:
    return (
        waiting.stop_reason == "deferred"
        and not is_imported(waiting.metadata)
        and waiting.metadata.get(KEY_LABEL, "") == exchange.key
        and (
            chat_request.session is None
            or waiting.session_id == _session_id(chat_request, exchange)
        )
    )


def _going_on(waiting: Episode, chat_request: Asked, store: EpisodeStore) -> Work:
    """The work without its answers. The store is read, so it is called in a thread."""
    return Work(
        episode_id=continuation_id(waiting.episode_id),
        history=() if waiting.session_id else _earlier_messages(waiting, chat_request, store),
        session_id=waiting.session_id,
        labels=waiting.metadata,
        waiting=waiting,
    )


def _earlier_messages(
    waiting: Episode, chat_request: Asked, store: EpisodeStore
) -> tuple[Message, ...]:
    """The conversation before the waiting run: the client's part, and runs that it went on from."""
    chain = [waiting]
    while chain[0].resumes is not None:
        earlier = store.get(chain[0].resumes)
        if earlier is None:
            break
        chain.insert(0, earlier)
    history = conversation(chain)
    return (*chat_request.history, *history[: len(history) - len(waiting.messages())])


def _with_answers(work: Work, waiting: Episode, answers: Mapping[str, str]) -> Work:
    """With a value for each call of the client's own; an approver decides on the others."""
    calls = {
        call_id_on_the_wire(waiting.episode_id, call.call_id): (call, asks_person(result))
        for call, result in waiting_calls(waiting)
    }
    for call, is_decided in (calls[wire_id] for wire_id in answers if wire_id in calls):
        if is_decided:
            raise RequestError(
                status=403,
                message=f"{call.name} waits for a person on the server's side; this server takes "
                "no approvals from clients",
                code="approval_not_accepted",
                param="messages",
            )
    own = {wire_id: call for wire_id, (call, is_decided) in calls.items() if not is_decided}
    if own.keys() != answers.keys():
        missing = ", ".join(sorted(own.keys() ^ answers.keys()))
        message = f"each call needs one tool message, and no other; look at {missing[:200]}"
        raise RequestError(message=message, param="messages", code="unanswered_tool_call")
    return replace(
        work, values={call.call_id: _value(answers[wire_id]) for wire_id, call in own.items()}
    )


def _value(text: str) -> object:
    """A tool message's content: an object or a list where it is JSON of one, else the text."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        value: object = read_json(text)
        check_sent(value)
    except ValueError:
        return text
    return value
