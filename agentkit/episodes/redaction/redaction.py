"""``Redaction``: what to take out of an episode, as a callable that stores and writers take."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from agentkit.episodes.diagnosis import Attribution, Diagnosis, TurnDiagnosis
from agentkit.episodes.episode import Episode, GoalTrace, RefineTrace, RetrievalTrace, Turn
from agentkit.episodes.labels import ROUTE_LABELS, SHADOW_OF, TRACE_LABELS, VIEW_OF
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
        keeps_tokens: Whether token ids stay, which are the texts once more.

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
    keeps_tokens: bool = False
    _texts: TextRedaction = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check()
        ours = [pattern for name, pattern in PATTERNS.items() if name in self.patterns]
        own = [Pattern(name=name, spans=_Finder(look)) for name, look in self.more.items()]
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
        return EpisodeTexts(json=values, keeps_tokens=self.keeps_tokens).episode(episode)

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


class _Finder:
    """Where a pattern of the user's matches."""

    def __init__(self, look: re.Pattern[str]) -> None:
        self.look = look

    def __call__(self, text: str) -> Iterator[tuple[int, int]]:
        return (found.span() for found in self.look.finditer(text))


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
    return EpisodeTexts(json=JsonTexts(text=change)).episode(episode)


@dataclass(frozen=True, kw_only=True, slots=True)
class EpisodeTexts:
    """Changes the texts of each part of an episode.

    Attributes:
        json: Changes texts, alone and in JSON data.
        keeps_tokens: Whether token ids stay.
    """

    json: JsonTexts
    keeps_tokens: bool = False

    def episode(self, one: Episode) -> Episode:
        """The whole record."""
        return replace(
            one,
            request=self._text(one.request),
            turns=tuple(map(self._turn, one.turns)),
            output=self.json.value(one.output),
            error=None if one.error is None else self._text(one.error),
            verdict=None if one.verdict is None else self._verdict(one.verdict),
            diagnosis=None if one.diagnosis is None else self._diagnosis(one.diagnosis),
            metadata=self._labels(one.metadata),
        )

    def _text(self, text: str) -> str:
        return self.json.text(text)

    def _labels(self, labels: Mapping[str, str]) -> Mapping[str, str]:
        ours = {name: value for name, value in labels.items() if name in _OUR_LABELS}
        others = {name: value for name, value in labels.items() if name not in _OUR_LABELS}
        return {**ours, **self.json.object(others)}

    def _turn(self, one: Turn) -> Turn:
        return replace(
            one,
            message=self._message(one.message),
            results=tuple(map(self._result, one.results)),
            retrieval=None if one.retrieval is None else self._trace(one.retrieval),
            searches=tuple(map(self._trace, one.searches)),
            refine=None if one.refine is None else self._refine(one.refine),
            correction=self._text(one.correction),
            tokens=one.tokens if self.keeps_tokens else None,
        )

    def _message(self, one: AssistantMessage) -> AssistantMessage:
        items = tuple(
            item for item in one.provider_items if self.json.value(item.data) == item.data
        )
        calls = tuple(map(self._call, one.tool_calls))
        return replace(one, text=self._text(one.text), tool_calls=calls, provider_items=items)

    def _call(self, one: ToolCall) -> ToolCall:
        malformed = None if one.malformed is None else self._text(one.malformed)
        return replace(one, arguments=self.json.object(one.arguments), malformed=malformed)

    def _result(self, one: ToolResult) -> ToolResult:
        return replace(
            one,
            value=self.json.value(one.value),
            text=self._text(one.text),
            failure=None if one.failure is None else self._failure(one.failure),
        )

    def _failure(self, one: ToolFailure) -> ToolFailure:
        excerpt = one.schema_excerpt
        return replace(
            one,
            rule=self._text(one.rule),
            path=self._text(one.path),
            schema_excerpt=None if excerpt is None else self.json.object(excerpt),
            nearest=tuple(map(self._text, one.nearest)),
        )

    def _trace(self, one: RetrievalTrace) -> RetrievalTrace:
        query = self._text(one.query)
        words = query.casefold()  # a word of what was taken out is no word any more
        left = (term for term in one.unmatched if query == one.query or term.casefold() in words)
        return replace(
            one,
            query=query,
            notes=tuple(map(self._text, one.notes)),
            goals=tuple(map(self._goal, one.goals)),
            unmatched=tuple(map(self._text, left)),
        )

    def _goal(self, one: GoalTrace) -> GoalTrace:
        return replace(one, intent=self._text(one.intent))

    def _refine(self, one: RefineTrace) -> RefineTrace:
        return replace(
            one,
            proposals=tuple(tuple(map(self._call, calls)) for calls in one.proposals),
            tokens=one.tokens if self.keeps_tokens else (),
        )

    def _verdict(self, one: Verdict) -> Verdict:
        evidence = tuple(map(self._evidence, one.evidence))
        return replace(one, evidence=evidence, details=self.json.object(one.details))

    def _evidence(self, one: Evidence) -> Evidence:
        return replace(
            one,
            message=self._text(one.message),
            parameter=self._text(one.parameter),
            expected=self.json.value(one.expected),
            actual=self.json.value(one.actual),
        )

    def _diagnosis(self, one: Diagnosis) -> Diagnosis:
        return replace(one, turns=tuple(map(self._turn_diagnosis, one.turns)))

    def _turn_diagnosis(self, one: TurnDiagnosis) -> TurnDiagnosis:
        return replace(
            one,
            parameter=self._text(one.parameter),
            evidence=tuple(map(self._evidence, one.evidence)),
            hint=self._text(one.hint),
            attributions=tuple(map(self._attribution, one.attributions)),
        )

    def _attribution(self, one: Attribution) -> Attribution:
        return replace(one, parameter=self._text(one.parameter))


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
