"""Asking a model a question within a retrieval: a model that fails is a value, not a crash.

Planner and judges are helpers of retrieval. When one of them cannot answer, the search goes on
without it and says so; so whatever a model raises ends here, as ``Asked.failure``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agentkit.messages import SystemMessage, Usage, UserMessage
from agentkit.models.base import ChatModel, ModelRequest, ModelSettings
from agentkit.models.literals import LiteralReader, UnreadableError
from agentkit.retrieval.cards import TokenCounter

PLANNER_SETTINGS = ModelSettings(temperature=0.2, top_p=0.95, max_tokens=1024)
"""CoCoDA's settings for prompts other than rollouts (Appendix D), with a shorter answer."""

MAX_ANSWER = 100_000
"""Longest answer that is read, in characters; what comes after is not looked at."""

_MAX_ATTEMPTS = 200
_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_CUT = " \u2026 "


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """The result of a question.

    Attributes:
        text: The answer, at most ``MAX_ANSWER`` characters; empty when there is none.
        usage: What it cost; one request when the model failed.
        failure: Why there is no answer, in words; empty when there is one.
    """

    text: str
    usage: Usage = field(default_factory=Usage)
    failure: str = ""


async def ask(model: ChatModel, system: str, user: str, settings: ModelSettings) -> Asked:
    """Ask ``model`` once. Never raises for what the model does."""
    messages = (SystemMessage(text=system), UserMessage(text=user))
    try:
        response = await model.complete(ModelRequest(messages=messages, settings=settings))
    except Exception as error:  # noqa: BLE001 - any model may be plugged in; the search continues
        failure = f"{model.name} failed: {type(error).__name__}: {error}"
        return Asked(text="", usage=Usage(requests=1), failure=shortened(failure, 300))
    text = _THINKING.sub("", response.message.text[:MAX_ANSWER])
    failure = "" if text.strip() else f"{model.name} answered nothing"
    return Asked(text=text, usage=response.usage, failure=failure)


def values_in(text: str) -> Iterator[Any]:
    r"""The lists and objects in a text, outermost first, in the order of the text.

    Prose and code fences around them are passed over; single quotes, bare keys, trailing commas
    and missing closing brackets are tolerated (``agentkit.models.literals``). Where an outer
    bracket cannot be read, what stands inside it is looked at, so that an answer cut off in the
    middle still gives its complete parts.

    Example:
        >>> list(values_in('Sure:\n```json\n[{"a": 1,}]\n``` or {b: \'x\'}'))
        [[{'a': 1}], {'b': 'x'}]
    """
    reader, position = LiteralReader(text), 0
    for _ in range(_MAX_ATTEMPTS):
        starts = [at for at in (text.find("[", position), text.find("{", position)) if at >= 0]
        if not starts:
            return
        reader.seek(min(starts))
        try:
            yield reader.value()
            position = reader.position
        except UnreadableError:
            position = min(starts) + 1


def shortened(text: str, longest: int) -> str:
    """The text on one line, cut at ``longest`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "\u2026"


def fitted(text: str, tokens: int, count_tokens: TokenCounter) -> str:
    """The text, cut in its middle so that it costs at most ``tokens``.

    The start and the end of a request say most about it, so both are kept, two parts to one. Of
    a text that cannot be cut so far nothing is left.

    Example:
        >>> fitted("abcdefghijkl", 8, len)
        'abcd … l'
    """
    if count_tokens(text) <= tokens:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens(_cut(text, middle)) <= tokens:
            low = middle
        else:
            high = middle - 1
    return _cut(text, low) if low else ""


def _cut(text: str, kept: int) -> str:
    tail = kept // 3
    return text[: kept - tail] + _CUT + text[len(text) - tail :]
