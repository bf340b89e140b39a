"""Taking what is personal or secret out of episodes before they are kept."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentkit.episodes.episode import (
    Episode,
    GoalTrace,
    GuardrailRecord,
    HistoryTrace,
    ProgramCall,
    RefineTrace,
    RetrievalTrace,
    Turn,
)
from agentkit.episodes.labels import (
    ROUTE_LABELS,
    SHADOW_OF,
    TRACE_LABELS,
    VIEW_OF,
    WAITING_LABELS,
)
from agentkit.episodes.patterns import PATTERNS, PatternName, is_payment_card
from agentkit.episodes.secrets import holds_secret, is_secret_pair
from agentkit.episodes.verdict import Attribution, Diagnosis, Evidence, TurnDiagnosis, Verdict
from agentkit.errors import UsageError
from agentkit.media import Media
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult
from agentkit.records import changed
from agentkit.tools.invocation import described
from agentkit.tools.patterns import written_out

__all__ = ["PATTERNS", "PatternName", "Redaction", "change_texts"]

_NAME = re.compile(r"[a-z][a-z0-9_]*")

PLACEHOLDER = re.compile(r"<[a-z][a-z0-9_]*>")
"""The placeholder for a removed text."""

_ROUNDS = 8
"""What was taken out may uncover something beside it. Text that does so again and again is built
to; it goes as a whole."""

_GONE = "<redacted>"


@dataclass(frozen=True, kw_only=True)
class Redaction:
    """Removes personal data and secrets from episodes. It is idempotent.

    Ids and names stay, so that episodes are found, diagnosed and learned from as before. Patterns
    know formats, no meaning: the name of a person is not a format. ``change_texts`` is the hook for
    what knows more.

    Attributes:
        patterns: The names of the ``PATTERNS`` to search for; all of them by default.
        more: Patterns of your own by name, with what each looks for. Its time is for you to bound.

    Raises:
        UsageError: There is no such pattern.

    Example:
        >>> redact = Redaction()
        >>> episode = Episode(episode_id="e1", request="I am ann@example.org, +1 415 555 0100")
        >>> redact(episode).request
        'I am <email>, <phone>'
        >>> Redaction(patterns={"phone"}).text("ann@example.org")
        'ann@example.org'
    """

    patterns: Collection[PatternName] = tuple(PATTERNS)
    more: Mapping[str, re.Pattern[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = sorted(set(self.patterns) - set(PATTERNS))
        if isinstance(self.patterns, str) or unknown:
            raise UsageError(
                f"no such patterns: {', '.join(map(repr, unknown))}; there are "
                f"{', '.join(PATTERNS)}, and more= takes your own"
            )
        bad = sorted(name for name in self.more if name in PATTERNS or not _NAME.fullmatch(name))
        if bad:
            raise UsageError(
                f"patterns of your own are called by small letters, and not as ours; got {bad}"
            )

    def __call__(self, episode: Episode) -> Episode:
        """The episode to keep."""
        hides = "secret" in self.patterns
        values = _JsonTexts(
            text=self.text,
            number=self._number,
            hides=hides,
            secret=lambda text: _placeholder("secret", text) if text else text,
        )
        return _with_texts(episode, values)

    def text(self, text: str) -> str:
        """A text alone, without what was found."""
        for _ in range(_ROUNDS):
            after = text
            for name, look in self.more.items():
                after = _without(name, (one.span() for one in look.finditer(after)), after)
            for name, spans in PATTERNS.items():
                if name in self.patterns:
                    after = _without(name, spans(after), after)
            if after == text:
                return text
            text = after
        return _GONE

    def _number(self, number: int) -> int | str:
        """A whole number that is the number of a payment card is one."""
        is_card = "card" in self.patterns and 10**12 <= number < 10**19
        return "<card>" if is_card and is_payment_card(str(number)) else number


# --- Exceptions in logs ---------------------------------------------------------------------------
# The text of an exception was written for developers and may hold anything: an address with a
# password, a query, a path. Whatever logs one asks here for its words.

_LONGEST_LOGGED = 20_000


def log_text(text: str) -> str:
    """A text for the log, without what looks like a secret; of a very long one the end.

    It steers no terminal, and no line of it looks like another message: they are indented.
    """
    return written_out(without_secrets(text)).replace("\n", "\n  ")


def without_secrets(text: str) -> str:
    """A text without what looks like a secret; of a very long one the end."""
    if len(text) > _LONGEST_LOGGED:
        end = text[-_LONGEST_LOGGED:]
        text = end.partition("\n")[2] or end.partition(" ")[2] or end
    return Redaction(patterns={"secret"}).text(text)


def error_line(error: BaseException) -> str:
    """Kind, text and notes of an exception for the log, without what looks like a secret."""
    notes = getattr(error, "__notes__", ())
    return log_text("; ".join((described(error), *map(str, notes))))


def error_report(error: BaseException) -> str:
    """The same with the traceback, and with the exceptions behind it."""
    return log_text("".join(traceback.format_exception(error)).rstrip())


def log_failure(
    log: logging.Logger, error: BaseException, message: str, *arguments: object
) -> None:
    """Log a failure with the report of its exception behind the message."""
    log.error("%s: %s", message % arguments, error_report(error))


def _placeholder(name: str, found: str) -> str:
    """The replacement for a finding; a placeholder stays as it is."""
    return found if PLACEHOLDER.fullmatch(found) else f"<{name}>"


def _without(name: str, spans: Iterable[tuple[int, int]], text: str) -> str:
    pieces: list[str] = []
    position = 0
    for start, end in sorted(spans):
        if start >= position and end > start:
            pieces += [text[position:start], _placeholder(name, text[start:end])]
            position = end
    return "".join([*pieces, text[position:]]) if pieces else text


@dataclass(frozen=True, kw_only=True, slots=True)
class _JsonTexts:
    """Changes the texts of JSON data and leaves its form.

    Attributes:
        text: Changes one text.
        number: Changes a whole number; what it returns may be a text.
        hides: Whether fields and pairs that are named as secrets hold some.
        secret: Changes the text of such a field.
    """

    text: Callable[[str], str]
    number: Callable[[int], int | str] = int
    hides: bool = False
    secret: Callable[[str], str] = str

    def object(self, data: Mapping[Any, Any], *, inside: bool = False) -> dict[str, Any]:
        """A JSON object; keys that become equal get a number.

        Python writes other keys than texts, such as numbers, too: they stay as they are.

        Args:
            data: The object.
            inside: Whether its name is that of a secret.
        """
        changed: dict[Any, Any] = {}
        named = data.get("name")  # {"name": "DB_PASSWORD", "value": ...}
        is_named = isinstance(named, str) and holds_secret(named, data.get("value"))
        for key, item in data.items():
            if isinstance(key, str):
                hidden = holds_secret(key, item, inside=inside) or (is_named and key == "value")
                name = self._free(self.text(key), changed)
                is_kept = not (hidden and self.hides)
                changed[name] = self.value(item) if is_kept else self._hidden(item)
            else:
                changed[key] = self.value(item)
        return changed

    def value(self, data: Any) -> Any:
        """Any JSON data. Tuples stay tuples; what is no JSON is left as it is, media excepted."""
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, int) and not isinstance(data, bool):
            return self.number(data)
        if isinstance(data, Mapping):
            return self.object(data)
        if isinstance(data, list | tuple):
            last = self._hidden if self.hides and is_secret_pair(data) else self.value
            return type(data)([*map(self.value, data[:-1]), *map(last, data[-1:])])
        if isinstance(data, Media):  # cannot be searched, and a URL may be a key
            return data.forgotten(self.text(data.name))
        return data

    def _hidden(self, data: Any) -> Any:
        """Redact a field named as a secret: its texts and numbers, in a list or object too."""
        if isinstance(data, str):
            return self.secret(data)
        if isinstance(data, int) and not isinstance(data, bool):
            return self.secret(str(data))
        if isinstance(data, list | tuple):
            return type(data)([self._hidden(item) for item in data])
        return self.object(data, inside=True) if isinstance(data, Mapping) else self.value(data)

    @staticmethod
    def _free(name: str, taken: Mapping[str, Any]) -> str:
        number, free = 1, name
        while free in taken:
            number += 1
            free = f"{name} {number}"
        return free


_OUR_LABELS = ROUTE_LABELS | TRACE_LABELS | WAITING_LABELS | {SHADOW_OF, VIEW_OF}


def change_texts(episode: Episode, change: Callable[[str], str]) -> Episode:
    """The episode with each of its texts as ``change`` returns it.

    This is the hook for what knows more than patterns. Token ids are left out: they are the
    texts once more. So are parts of an answer that only its provider understands, where they
    would change: a provider takes them as they were, or not at all.

    Example:
        >>> quiet = change_texts(Episode(episode_id="e1", request="I am Ann"), lambda text: "-")
        >>> quiet.episode_id, quiet.request
        ('e1', '-')
    """
    return _with_texts(episode, _JsonTexts(text=change))


_TEXTS: Mapping[type, Sequence[str]] = {
    Episode: ("request", "media", "turns", "output", "error", "verdict", "diagnosis", "guardrails"),
    GuardrailRecord: ("reason",),
    HistoryTrace: ("added", "note"),
    Turn: (
        *("message", "results", "retrieval", "searches", "refine"),
        *("correction", "history", "program_calls"),
    ),
    ProgramCall: ("call", "result"),
    AssistantMessage: ("text", "tool_calls"),
    ToolCall: ("arguments", "malformed"),
    ToolResult: ("value", "text", "media", "failure"),
    ToolFailure: ("rule", "path", "schema_excerpt", "nearest"),
    RetrievalTrace: ("query", "notes", "goals"),
    GoalTrace: ("intent",),
    RefineTrace: ("proposals",),
    Verdict: ("evidence", "details"),
    Evidence: ("message", "parameter", "expected", "actual"),
    Diagnosis: ("turns",),
    TurnDiagnosis: ("parameter", "evidence", "hint", "attributions"),
    Attribution: ("parameter",),
}
"""Fields that hold texts; all others are ids, names and numbers, except those below."""


def _with_texts(episode: Episode, json: _JsonTexts) -> Episode:
    def also(record: Any) -> Mapping[str, Any]:
        match record:
            case Episode():
                ours = {k: v for k, v in record.metadata.items() if k in _OUR_LABELS}
                others = {k: v for k, v in record.metadata.items() if k not in _OUR_LABELS}
                return {"metadata": {**ours, **json.object(others)}}
            case Turn():
                return {"tokens": None}
            case RefineTrace():
                return {"tokens": ()}
            case AssistantMessage():
                items = record.provider_items
                return {"provider_items": tuple(o for o in items if json.value(o.data) == o.data)}
            case RetrievalTrace():
                query = json.text(record.query)
                words = query.casefold()  # a word of what was taken out is not a word any more
                is_same = query == record.query
                left = (one for one in record.unmatched if is_same or one.casefold() in words)
                return {"unmatched": tuple(map(json.text, left))}
        return {}

    return changed(episode, _TEXTS, json.value, also)
