"""``Redaction``: what to take out of an episode, as a callable that stores and writers take."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from agentkit.episodes.episode import Episode
from agentkit.episodes.redaction.check_digits import is_payment_card
from agentkit.episodes.redaction.json_values import JsonTexts
from agentkit.episodes.redaction.patterns import PATTERNS, Pattern, PatternName
from agentkit.episodes.redaction.records import EpisodeTexts
from agentkit.episodes.redaction.secrets import SECRET_NAME
from agentkit.episodes.redaction.texts import TextRedaction
from agentkit.errors import UsageError

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_LEAST_KEY, _MOST_KEY = 16, 64


@dataclass(frozen=True, kw_only=True)
class Redaction:
    """Takes personal data and secrets out of episodes. Doing it twice is doing it once.

    Ids and names stay, so that episodes are found, diagnosed and learned from as before; see
    ``agentkit.episodes.redaction.records`` for what is which. Patterns know formats, no meaning:
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
