"""``Asked``: a chat completion request, read and checked.

What a client may choose is the conversation, and some settings where the operator says so. The
model and the tools are the agent's: what would change them is refused where the client would be
misled, and named in the answer where it would not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkit.messages import JsonObject, UserMessage
from agentkit.models.base import ModelSettings
from agentkit.models.wire import parse_json
from agentkit.server.conversation import Conversation, is_whole, read_messages
from agentkit.server.problem import Problem, invalid
from agentkit.server.wanted import not_honoured, wanted_settings

_SESSION = re.compile(r"[A-Za-z0-9._:@-]{1,128}")
_MOST_LABELS = 16
_LONGEST_LABEL = 64
_LONGEST_TEXT = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What a client wants.

    Attributes:
        conversation: The messages.
        stream: Whether the answer is to come piece by piece.
        include_usage: Whether a stream is to end with the number of tokens.
        session: The client's name for a conversation that the server keeps; None when the client
            keeps it.
        labels: The client's labels for the episode.
        settings: How to generate the answer; None as the agent has it.
        not_honoured: Fields that were set and make no difference.
    """

    conversation: Conversation
    stream: bool = False
    include_usage: bool = False
    session: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    settings: ModelSettings | None = None
    not_honoured: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Reader:
    """Reads requests.

    Attributes:
        model: The only model there is.
        alias: Another name that it is asked by: that of the model behind the agent.
        max_messages: Most messages in one request.
        output_schema: What the agent's answers match; None for text.
        takes_settings: Whether clients may say how to generate.
    """

    model: str
    max_messages: int
    output_schema: JsonObject | None
    takes_settings: bool = False
    alias: str = ""

    def read(self, body: bytes, session: str | None) -> Asked | Problem:
        """The request in ``body``.

        Args:
            body: JSON.
            session: The value of the session header, if there is one.
        """
        record = _parsed(body)
        if isinstance(record, Problem):
            return record
        problem = self._unusable(record) or _refused(record) or self._refused_format(record)
        if problem is not None:
            return problem
        conversation = read_messages(record.get("messages"), most=self.max_messages)
        if isinstance(conversation, Problem):
            return conversation
        session = record.get("session_id") if session is None else session
        labels = _bad_session(session, conversation) or _labels(record)
        if isinstance(labels, Problem):
            return labels
        settings = wanted_settings(record) if self.takes_settings else None
        if isinstance(settings, Problem):
            return settings
        options = record.get("stream_options") or {}
        return Asked(
            conversation=conversation,
            stream=bool(record.get("stream")),
            include_usage=options.get("include_usage") is True,
            session=session,
            labels=labels,
            settings=settings,
            not_honoured=not_honoured(record, takes_settings=self.takes_settings),
        )

    def _unusable(self, record: JsonObject) -> Problem | None:
        model = record.get("model")
        if not isinstance(model, str):
            return invalid("model must be a string", param="model", code="missing_model")
        if model not in {self.model, self.alias}:
            message = f"there is no model {model[:100]!r} here; this server has {self.model!r}"
            return Problem(status=404, message=message, code="model_not_found", param="model")
        if not isinstance(record.get("stream"), bool | None):
            return invalid("stream must be true or false", param="stream")
        if not isinstance(record.get("stream_options"), dict | None):
            return invalid("stream_options must be an object", param="stream_options")
        return None

    def _refused_format(self, record: JsonObject) -> Problem | None:
        """Answers have the agent's format; another one can not be asked for."""
        wanted = record.get("response_format")
        if wanted is None:
            return None
        kind = wanted.get("type") if isinstance(wanted, dict) else None
        own = self.output_schema
        described = wanted.get("json_schema") if isinstance(wanted, dict) else None
        schema = described.get("schema") if isinstance(described, dict) else None
        fits = {
            "text": own is None,
            "json_object": own is not None,
            "json_schema": own is not None and schema == own,
        }
        if isinstance(kind, str) and fits.get(kind):
            return None
        has = "text" if own is None else "JSON of the agent's own schema"
        message = f"this agent answers with {has}; response_format can not change that"
        return invalid(message, param="response_format", code="unsupported_value")


def _parsed(body: bytes) -> JsonObject | Problem:
    try:
        record = parse_json(body.decode("utf-8"))
    except ValueError as error:  # UnicodeDecodeError is one
        return invalid(f"the body is not JSON: {error}", code="invalid_json")
    if not isinstance(record, dict):
        return invalid("the body is not a JSON object", code="invalid_json")
    return record


def _refused(record: JsonObject) -> Problem | None:
    """The first field that would change what the answer is."""
    wanted: Mapping[str, tuple[bool, str]] = {
        "tools": (
            bool(record.get("tools")),
            "the agent behind this server has its own tools; leave tools out",
        ),
        "functions": (
            bool(record.get("functions")),
            "the agent behind this server has its own tools; leave functions out",
        ),
        "tool_choice": (
            record.get("tool_choice") not in {None, "auto"}
            if isinstance(record.get("tool_choice"), str | None)
            else True,
            "which tools are used is the agent's choice; leave tool_choice out",
        ),
        "n": (record.get("n") not in (None, 1), "one answer to a request; n must be 1"),
        "stop": (bool(record.get("stop")), "stop sequences are not supported; leave stop out"),
        "logprobs": (
            bool(record.get("logprobs") or record.get("top_logprobs")),
            "probabilities of tokens are not reported; leave logprobs out",
        ),
        "modalities": (
            record.get("modalities") not in (None, ["text"]) or bool(record.get("audio")),
            "answers are text; leave modalities and audio out",
        ),
    }
    for name, (is_refused, why) in wanted.items():
        if is_refused:
            return invalid(why, param=name, code="unsupported_parameter")
    return None


def _bad_session(session: Any, conversation: Conversation) -> Problem | None:
    if session is None:
        return None
    if not isinstance(session, str) or not _SESSION.fullmatch(session):
        message = "a session id is up to 128 letters, digits and . _ : @ -"
        return invalid(message, param="session_id", code="invalid_session")
    if not conversation.answers and [type(m) for m in conversation.messages] != [UserMessage]:
        message = (
            "the server keeps this session's conversation: send the new user message alone, "
            "or leave the session out and send the whole conversation"
        )
        return invalid(message, param="messages", code="history_with_session")
    return None


def _labels(record: JsonObject) -> dict[str, str] | Problem:
    """``metadata`` and ``user`` as labels; their names can not be mistaken for agentkit's own."""
    labels = {}
    user, metadata = record.get("user"), record.get("metadata")
    if user is not None:
        if not _is_text(user, _LONGEST_TEXT):
            return invalid(f"user must be text of up to {_LONGEST_TEXT} characters", param="user")
        labels["user"] = user
    if metadata is None:
        return labels
    if not isinstance(metadata, dict) or len(metadata) > _MOST_LABELS:
        return invalid(f"metadata must hold up to {_MOST_LABELS} pairs", param="metadata")
    for name, text in metadata.items():
        if not _is_text(name, _LONGEST_LABEL) or not _is_text(text, _LONGEST_TEXT):
            message = (
                f"names in metadata have up to {_LONGEST_LABEL} characters, values are text of "
                f"up to {_LONGEST_TEXT}"
            )
            return invalid(message, param="metadata")
        labels[f"client.{name}"] = text
    return labels


def _is_text(value: Any, longest: int) -> bool:
    return isinstance(value, str) and len(value) <= longest and is_whole(value)
