"""``Redaction``: what to take out of an episode, as a callable that stores and writers take."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from agentkit.episodes.diagnosis import Attribution, Diagnosis, TurnDiagnosis
from agentkit.episodes.episode import Episode, GoalTrace, RefineTrace, RetrievalTrace, Turn
from agentkit.episodes.labels import ROUTE_LABELS, SHADOW_OF, TRACE_LABELS, VIEW_OF
from agentkit.episodes.naming import changed
from agentkit.episodes.redaction.json_values import JsonTexts
from agentkit.episodes.redaction.patterns import PATTERNS, Pattern, PatternName, is_payment_card
from agentkit.episodes.redaction.secrets import SECRET_NAME
from agentkit.episodes.verdict import Evidence, Verdict
from agentkit.errors import UsageError
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_LEAST_KEY, _MOST_KEY = 16, 64


@dataclass(frozen=True, kw_only=True)
class Redaction:
    """Takes personal data and secrets out of episodes. Doing it twice is doing it once.

    Ids and names stay, so that episodes are found, diagnosed and learned from as before; see
    ``agentkit.episodes.redaction.redaction`` for what is which. Patterns know formats, no meaning:
    the name of a person is no format. ``change_texts`` is the hook for what knows more.

    Attributes:
        patterns: The names of those of ``PATTERNS`` that are looked for; all of them by default.
        more: Patterns of your own by name, with what each looks for. Its time is for you to bound.
        known: Secrets to take out wherever they stand, such as keys of this process.
        key: 16 to 64 bytes. With it a placeholder is a pseudonym: the same address has the same
            one in all episodes, and only who has the key can tell which address that is.

    Raises:
        UsageError: There is no such pattern, or the key is too short or too long.

    Example:
        >>> redact = Redaction()
        >>> episode = Episode(episode_id="e1", request="I am ann@example.org, +1 415 555 0100")
        >>> redact(episode).request
        'I am <email>, <phone>'
        >>> Redaction(patterns={"phone"}).text("ann@example.org")
        'ann@example.org'
        >>> Redaction(key=b"0123456789abcdef").text("ann@example.org, Ann@example.org")
        '<email:onbhjkehlccmgmno>, <email:onbhjkehlccmgmno>'
    """

    patterns: Collection[PatternName] = tuple(PATTERNS)
    more: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    known: Collection[str] = field(default=(), repr=False)
    key: bytes | None = field(default=None, repr=False)
    _texts: TextRedaction = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check()
        ours = [pattern for name, pattern in PATTERNS.items() if name in self.patterns]
        own = [Pattern(name=name, spans=_finder(look)) for name, look in self.more.items()]
        texts = TextRedaction([*own, *ours], known=self.known, key=self.key)
        object.__setattr__(self, "_texts", texts)

    def __call__(self, episode: Episode) -> Episode:
        """The episode to keep."""
        hides = "secret" in self.patterns
        values = JsonTexts(
            text=self.text,
            number=self._number,
            is_secret=_is_secret if hides else _nothing,
            secret=self._secret,
        )
        return _with_texts(episode, values)

    def text(self, text: str) -> str:
        """A text alone, without what was found."""
        return self._texts(text)

    def _secret(self, text: str) -> str:
        return self._texts.placeholder(PATTERNS["secret"], text) if text else text

    def _number(self, number: int) -> int | str:
        """A whole number that is the number of a payment card is one."""
        if "card" not in self.patterns or not 10**12 <= number < 10**19:
            return number
        digits = str(number)
        is_card = is_payment_card(digits)
        return self._texts.placeholder(PATTERNS["card"], digits) if is_card else number

    def _check(self) -> None:
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
        if self.key is not None and not _LEAST_KEY <= len(self.key) <= _MOST_KEY:
            raise UsageError(
                f"a key has {_LEAST_KEY} to {_MOST_KEY} bytes, got {len(self.key)}; make one with "
                "secrets.token_bytes(32) and keep it apart from the episodes"
            )


def _finder(look: re.Pattern[str]) -> Callable[[str], Iterator[tuple[int, int]]]:
    """Where a pattern of the user's matches."""
    return lambda text: (found.span() for found in look.finditer(text))


def _is_secret(name: str) -> bool:
    return SECRET_NAME.search(name) is not None


def _nothing(_: str) -> bool:
    return False


_OUR_LABELS = ROUTE_LABELS | TRACE_LABELS | {SHADOW_OF, VIEW_OF}


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
    return _with_texts(episode, JsonTexts(text=change))


_TEXTS: Mapping[type, Sequence[str]] = {
    Episode: ("request", "turns", "output", "error", "verdict", "diagnosis"),
    Turn: ("message", "results", "retrieval", "searches", "refine", "correction"),
    AssistantMessage: ("text", "tool_calls"),
    ToolCall: ("arguments", "malformed"),
    ToolResult: ("value", "text", "failure"),
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
"""Where texts stand; all other fields are ids, names and numbers, but for those below."""


def _with_texts(episode: Episode, json: JsonTexts) -> Episode:
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
                words = query.casefold()  # a word of what was taken out is no word any more
                is_same = query == record.query
                left = (one for one in record.unmatched if is_same or one.casefold() in words)
                return {"unmatched": tuple(map(json.text, left))}
        return {}

    return changed(episode, _TEXTS, json.value, also)


_ROUNDS = 8
"""What was taken out may uncover something beside it. Text that does so again and again is built
to; it goes as a whole."""

_GONE = "<redacted>"

PLACEHOLDER = re.compile(r"<[a-z][a-z0-9_]*(?::[a-p]{16})?>")
"""What stands where something was."""

_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")


class TextRedaction:
    """Puts a placeholder where a pattern finds something.

    Args:
        patterns: What to look for, in this order.
        known: Secrets to take out wherever they stand.
        key: With a key a placeholder holds a pseudonym: the same finding has the same one, and
            without the key nobody can tell which it is.
    """

    def __init__(
        self, patterns: Sequence[Pattern], *, known: Collection[str] = (), key: bytes | None = None
    ) -> None:
        self._patterns = patterns
        self._known = tuple(sorted(filter(None, known), key=len, reverse=True))
        self._key = key

    def __call__(self, text: str) -> str:
        """The text without what was found."""
        for _ in range(_ROUNDS):
            after = self._once(text)
            if after == text:
                return text
            text = after
        return _GONE

    def placeholder(self, pattern: Pattern, found: str) -> str:
        """What to write in the place of a finding; a placeholder is one already."""
        if PLACEHOLDER.fullmatch(found):
            return found
        if self._key is None:
            return f"<{pattern.name}>"
        said = f"{pattern.name}:{pattern.same(found)}".encode("utf-8", "backslashreplace")
        digest = blake2b(said, key=self._key, digest_size=8).hexdigest()
        return f"<{pattern.name}:{digest.translate(_LETTERS)}>"

    def _once(self, text: str) -> str:
        for secret in self._known:
            if secret in text:
                text = _replaced(text, secret)
        for pattern in self._patterns:
            text = self._without(pattern, text)
        return text

    def _without(self, pattern: Pattern, text: str) -> str:
        pieces: list[str] = []
        position = 0
        for start, end in sorted(pattern.spans(text)):
            if start >= position and end > start:
                found = text[start:end]
                pieces += [text[position:start], self.placeholder(pattern, found)]
                position = end
        return "".join([*pieces, text[position:]]) if pieces else text


def _replaced(text: str, secret: str) -> str:
    """The text without a known secret; in placeholders it is none, even if it is called secret."""
    pieces, position = [], 0
    for placeholder in PLACEHOLDER.finditer(text):
        pieces.append(text[position : placeholder.start()].replace(secret, "<secret>"))
        pieces.append(placeholder.group())
        position = placeholder.end()
    return "".join([*pieces, text[position:].replace(secret, "<secret>")])
