"""``POST /v1/feedback``: what a client says of an answer that its key was given."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from agentkit.agent.episode_queue import EpisodeQueue
from agentkit.episodes import Episode
from agentkit.episodes.labels import KEY_LABEL, is_extra_record
from agentkit.errors import AgentKitError
from agentkit.evolution.learning import UserFeedback, keep_feedback
from agentkit.library.store import Store
from agentkit.messages import JsonObject, check_sent
from agentkit.server.chat_answer import ANSWER_PREFIX
from agentkit.server.chat_request import is_whole, validated
from agentkit.server.limits import Bodies
from agentkit.server.middleware import Exchange, RequestError, Scope, store_unavailable
from agentkit.server.responses import RESPONSE_PREFIX
from agentkit.server.runs import MinuteLog
from agentkit.tools.canonical import is_json

_LOG = logging.getLogger(__name__)

MAX_BODY_BYTES = 64_000
"""Largest feedback; it is a sentence and a call."""

_LONGEST_ID = 200
_LONGEST_REASON = 2_000
_LONGEST_NAME = 200


class CorrectedCall(BaseModel):
    """The call that should have been made.

    Attributes:
        name: The tool.
        arguments: What it should have been called with.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field(min_length=1, max_length=_LONGEST_NAME)
    arguments: JsonObject = Field(default_factory=dict)

    @field_validator("name", "arguments")
    @classmethod
    def _is_data(cls, value: Any) -> Any:
        if not is_json(value):
            raise ValueError("this is not JSON data that can be kept")
        check_sent(value)
        return value


class FeedbackBody(BaseModel):
    """The body of a request.

    Attributes:
        episode_id: The episode it is about, as ``agentkit.episode_id`` of the answer has it.
        response_id: Or the id of the answer.
        thumbs: Whether the answer was good.
        rating: Or how good, from 0 to 1.
        reason: Why, in the user's words.
        corrected_call: The call that was due; the answer was not good then.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    episode_id: str | None = Field(default=None, min_length=1, max_length=_LONGEST_ID)
    response_id: str | None = Field(default=None, min_length=1, max_length=_LONGEST_ID)
    thumbs: Literal["up", "down"] | None = None
    rating: float | None = Field(default=None, ge=0, le=1)
    reason: str = Field(default="", max_length=_LONGEST_REASON)
    corrected_call: CorrectedCall | None = None

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if (self.episode_id is None) == (self.response_id is None):
            raise ValueError("give episode_id or response_id, one of them")
        ratings = [self.thumbs is not None, self.rating is not None]
        if all(ratings) or not (any(ratings) or self.corrected_call):
            raise ValueError("give thumbs, rating or corrected_call; not thumbs and rating")
        if self.corrected_call and (self.thumbs == "up" or (self.rating or 0) > 0):
            raise ValueError("a call that has to be corrected was not good; leave thumbs out")
        if not is_whole(self.reason):
            raise ValueError("reason is not text that can be kept")
        return self

    @property
    def about(self) -> str:
        """The id of the episode."""
        given = self.episode_id or self.response_id or ""
        return given.removeprefix(ANSWER_PREFIX).removeprefix(RESPONSE_PREFIX)

    def of(self, sender: str) -> UserFeedback:
        """The record to store."""
        rating = float(self.thumbs == "up") if self.rating is None else self.rating
        call = self.corrected_call
        return UserFeedback(
            rating=rating,
            reason=self.reason,
            corrected_tool="" if call is None else call.name,
            corrected_arguments=None if call is None else call.arguments,
            sender=sender,
        )


@dataclass(kw_only=True, eq=False)
class FeedbackEndpoint:
    """The endpoint.

    Attributes:
        store: Holds the episodes, and takes what is said of them; None where none are kept.
        queue: Knows whether the store takes episodes now.
        bodies: Reads what is sent.
    """

    store: Store | None
    queue: EpisodeQueue
    bodies: Bodies

    def __post_init__(self) -> None:
        self._log = MinuteLog(_LOG)
        self._turn = asyncio.Lock()  # duplicates sent at once are handled one by one

    async def take(self, exchange: Exchange, scope: Scope) -> None:
        """Take in one request."""
        feedback = validated(FeedbackBody, await self.bodies.of(exchange, most=MAX_BODY_BYTES))
        if self.queue.is_failing:
            raise store_unavailable(_NOT_TAKEN, retry_after=self.queue.state.retry_after)
        try:
            async with self._turn:
                kept = await asyncio.to_thread(self._kept, feedback, exchange.key)
        except AgentKitError as error:
            self._log.error("feedback cannot be kept", error)
            raise store_unavailable(_NOT_TAKEN) from error
        verdict = kept.verdict
        answer = {
            "object": "feedback",
            "id": kept.episode_id,
            "episode_id": feedback.about,
            "passed": verdict is not None and verdict.passed,
        }
        await exchange.answer(json.dumps(answer).encode())

    def _kept(self, feedback: FeedbackBody, key: str) -> Episode:
        """The record; the store is read, so it is called in a thread."""
        store = self.store
        episode = None if store is None else store.get(feedback.about)
        if store is None or episode is None or not _is_of(episode, key):
            raise RequestError(
                status=404,
                message="no answer of that id was given to this key",
                code="unknown_episode",
                param="response_id" if feedback.episode_id is None else "episode_id",
            )
        return keep_feedback(store, episode, feedback.of(key))


_NOT_TAKEN = "the store is not available, so the feedback was not taken"


def _is_of(episode: Episode, key: str) -> bool:
    return episode.metadata.get(KEY_LABEL, "") == key and not is_extra_record(episode.metadata)
