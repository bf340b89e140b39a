"""Taking findings out of a text, until there are none."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from hashlib import blake2b

from agentkit.episodes.redaction.patterns import Pattern

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
