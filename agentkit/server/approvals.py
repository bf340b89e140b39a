"""``/v1/approvals``: calls that wait for a person, and what the person decides."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from pydantic import BaseModel, ConfigDict, Field

from agentkit.agent.session import awaits_person, continuation_id, waiting_runs
from agentkit.agent.types import Approval, deferred_calls
from agentkit.episodes import Episode
from agentkit.episodes.labels import KEY_LABEL, WAITING_AGENT, is_imported
from agentkit.errors import AgentKitError, ReadingLimitError
from agentkit.library.store import EpisodeStore, holds_episode
from agentkit.messages import ToolCall
from agentkit.reading import read_once
from agentkit.server.chat import ChatCompletions
from agentkit.server.chat_answer import answer_text
from agentkit.server.chat_request import validated
from agentkit.server.middleware import (
    Exchange,
    RequestError,
    Scope,
    store_unavailable,
)
from agentkit.server.work import Work, already_answered

MAX_BODY_BYTES = 64_000
_LONGEST_REASON = 2_000
_PAGE = 100
_PAGE_BYTES = 4_000_000
_MOST_RESUMED = 20
_LISTED_CHARS = 2_000
"""Of a request, or of the arguments of a call, as the list shows them."""


class DecisionBody(BaseModel):
    """The body of a decision.

    Attributes:
        approved: Whether the calls that wait may run.
        calls: By call id, for single calls that are decided otherwise.
        reason: Why not, in words that the model reads.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    approved: bool
    calls: dict[str, bool] = Field(default_factory=dict)
    reason: str = Field(default="", max_length=_LONGEST_REASON)

    def of(self, episode: Episode) -> dict[str, Approval]:
        """The decision on each call that waits.

        Raises:
            RequestError: A call of that id does not wait.
        """
        waiting = {call.call_id for call in deferred_calls(episode)}
        if unknown := sorted(self.calls.keys() - waiting):
            message = f"no call {unknown[0][:100]!r} waits in this run"
            raise RequestError(message=message, code="unknown_call", param="calls")
        decisions = {call_id: self.calls.get(call_id, self.approved) for call_id in waiting}
        return {
            call_id: Approval(approved=yes, reason="" if yes else self.reason)
            for call_id, yes in decisions.items()
        }


@dataclass(kw_only=True, eq=False)
class ApprovalsEndpoint:
    """``GET /v1/approvals``, and ``GET`` and ``POST /v1/approvals/{id}``, for keys that approve.

    Attributes:
        chat: Carries runs out.
        approvers: Names of these keys; for any other one nothing waits.
    """

    chat: ChatCompletions
    approvers: frozenset[str]

    async def answer_one(self, exchange: Exchange, scope: Scope) -> None:
        """Show what waits in a run, whole, or carry out a decision on it."""
        if exchange.method == "POST":
            await self._decide(exchange, scope)
            return

        def read(store: EpisodeStore | None) -> bytes:
            run = self._waiting(store, scope["path_params"]["episode_id"], exchange.key)
            return json.dumps(_shown(run, store)).encode()

        await exchange.answer(await self._read(read))

    async def _decide(self, exchange: Exchange, scope: Scope) -> None:
        body = await self.chat.bodies.of(exchange, most=MAX_BODY_BYTES)
        decision = validated(DecisionBody, body)
        try:
            read_once(body)
        except ReadingLimitError as error:
            raise RequestError(message=f"the decision is not clear: {error}") from error
        waiting = await self._read(self._waiting, scope["path_params"]["episode_id"], exchange.key)
        if waiting.history_length and waiting.session_id is None:
            raise RequestError(
                status=409,
                message="only the client has the conversation before this run; use sessions",
                code="no_session",
            )
        scope.setdefault("state", {})["waiting"] = waiting
        work = Work(
            episode_id=continuation_id(waiting.episode_id),
            session_id=waiting.session_id,
            labels=waiting.metadata,
            waiting=waiting,
            approvals=decision.of(waiting),
        )
        result = await self.chat.carried_out(work, exchange, scope)
        answer = {
            "object": "approval",
            "id": waiting.episode_id,
            "episode_id": result.episode.episode_id,
            "stop_reason": result.stop_reason,
            "content": answer_text(result, as_json=self.chat.agent.output_schema is not None),
        }
        await exchange.answer(json.dumps(answer).encode())

    async def list_waiting(self, exchange: Exchange, scope: Scope) -> None:
        """What waits, the oldest first, up to a hundred runs at a time; long texts are cut."""
        after = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("after", [""])[0]
        is_approver = exchange.key in self.approvers

        def read(store: EpisodeStore | None) -> bytes:  # encoded here, off the event loop
            listed: list[str] = []
            waiting = iter(
                waiting_runs(store, after=after) if store is not None and is_approver else ()
            )
            while len(listed) < _PAGE and sum(map(len, listed)) <= _PAGE_BYTES:
                if (one := next(waiting, None)) is None:
                    break
                listed.append(json.dumps(_shown(one, store, most=_LISTED_CHARS)))
            more = json.dumps(next(waiting, None) is not None)
            page = f'{{"object": "list", "data": [{", ".join(listed)}], "has_more": {more}}}'
            return page.encode()

        await exchange.answer(await self._read(read))

    async def _read(self, read: Any, *args: Any) -> Any:
        try:
            return await asyncio.to_thread(read, self.chat.agent.store, *args)
        except AgentKitError as error:
            raise store_unavailable() from error

    def _waiting(self, store: EpisodeStore | None, episode_id: str, key: str) -> Episode:
        """The run of that id, which waits. The store is read."""
        waiting = None if store is None or key not in self.approvers else store.get(episode_id)
        if waiting is None or is_imported(waiting.metadata) or not awaits_person(waiting):
            raise RequestError(
                status=404, message="no run of that id waits for this key", code="unknown_approval"
            )
        if store is not None and holds_episode(store, continuation_id(episode_id)):
            raise already_answered()
        return waiting


def _shown(
    episode: Episode, store: EpisodeStore | None, *, most: int | None = None
) -> Mapping[str, Any]:
    """A run that waits; texts and arguments longer than ``most`` characters are cut texts."""
    first: Episode | None = episode
    for _ in range(_MOST_RESUMED):  # whoever goes on with a run says nothing new
        if store is not None and first is not None and first.resumes is not None:
            first = store.get(first.resumes)
    calls = [
        {"id": call.call_id, "name": call.name, "arguments": _arguments(call, most)}
        for call in deferred_calls(episode)
    ]
    return {
        "object": "approval",
        "id": episode.episode_id,
        "since": episode.started_at,
        "agent": episode.metadata.get(WAITING_AGENT, ""),
        "key": episode.metadata.get(KEY_LABEL, ""),  # which the client cannot choose
        "user": episode.metadata.get("user", ""),
        "session_id": episode.session_id,
        "request": _cut("" if first is None else first.request, most),
        "calls": calls,
    }


def _arguments(call: ToolCall, most: int | None) -> object:
    if call.malformed is not None:
        return _cut(call.malformed, most)
    arguments, text = dict(call.arguments), ""
    if most is None:
        return arguments
    for piece in json.JSONEncoder().iterencode(arguments):
        text += piece
        if len(text) > most:
            return _cut(text, most)
    return arguments


def _cut(text: str, most: int | None) -> str:
    if most is None or len(text) <= most:
        return text
    return f"{text[:most]}… (cut; GET /v1/approvals/ID has it whole)"
