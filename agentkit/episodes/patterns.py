"""Patterns of personal data, by name. Each pattern takes time in proportion to the text.

They know formats, not meaning: no names, no addresses. A finding is checked where there is
something to check, as the digits of cards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

from agentkit.episodes.secrets import secret_spans

PatternName = Literal["secret", "email", "card", "phone"]

Spans = Iterable[tuple[int, int]]
"""Beginning and end of each finding."""


_LONGEST_LOCAL = 64
_DOMAIN = re.compile(r"(?:[\w-]{1,63}\.){1,8}(?:xn--[\w-]{2,59}|[^\W\d_]{2,63})")
_IMAGES = frozenset({"png", "jpg", "jpeg", "gif", "webp", "svg", "avif"})
"""Endings of files such as ``logo@2x.png``, which is not an address."""

_PLAIN = str.maketrans(
    "\u00a0\u2007\u2009\u202f\u3000\u2010\u2011\u2012\u2013\uff0d\uff0b\uff08\uff09\uff0f\uff0e\uff10\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18\uff19",
    "     -----+()/.0123456789",
)
"""Spaces and dashes that do not break a line, and the wide signs of East Asia."""

_DIGITS = re.compile(r"(?:\d[^\d\n]{0,3}){7}")
"""Without seven digits near each other there is no number of anybody."""

_SPACELESS = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Letters of languages that leave no space before a number."""

_PHONE = re.compile(
    rf"(?:(?<![\w+])|(?<=[{_SPACELESS}]))\+\d[\d ()/.-]{{6,18}}\d(?:\b|(?=[{_SPACELESS}]))"
    r"|(?<![\w.-])(?:1[-. ])?(?:\(\d{3}\)\ ?|\d{3}[-.])\d{3}[-.]\d{4}\b(?![-.]\d)"
)
"""International ones, and North American ones."""

_CARD = re.compile(
    r"(?<![\w.-])(?:\d{13,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -])\d{6}\2\d{4,5})"
    r"(?!\w|[.-]\d)"
)


def _emails(text: str) -> Iterator[tuple[int, int]]:
    end, at = 0, text.find("@")
    while at != -1:
        domain = _DOMAIN.match(text, at + 1)
        start = _beginning(text, at, least=max(end, at - _LONGEST_LOCAL)) if domain else at
        if domain and start < at and domain.group().rsplit(".", 1)[1].lower() not in _IMAGES:
            end = domain.end()
            yield start, end
        at = text.find("@", max(at + 1, end))


def _beginning(text: str, at: int, *, least: int) -> int:
    """The start of the part of an address before its ``@``."""
    while at > least and (text[at - 1].isalnum() or text[at - 1] in "._+%-"):
        at -= 1
    return at


def _plain(text: str) -> str:
    """The text with plain spaces, dashes and digits, each at its place."""
    return text if text.isascii() else text.translate(_PLAIN)


def _phones(text: str) -> Iterator[tuple[int, int]]:
    text = _plain(text)
    for found in _PHONE.finditer(text) if _DIGITS.search(text) else ():
        if 8 <= sum(map(str.isdigit, found.group())) <= 15:
            yield found.span()


def _cards(text: str) -> Iterator[tuple[int, int]]:
    text = _plain(text)
    for found in _CARD.finditer(text) if _DIGITS.search(text) else ():
        if is_payment_card(_digits(found.group())):
            yield found.span()


def _digits(text: str) -> str:
    return "".join(filter(str.isdigit, _plain(text)))


PATTERNS: Mapping[PatternName, Callable[[str], Spans]] = {
    "secret": secret_spans,
    "email": _emails,
    "card": _cards,
    "phone": _phones,
}
"""Where each sort of personal data stands in a text, in the order in which they are looked for:
what one has taken, the next ones do not see."""


def is_iban(bare: str) -> bool:
    """Whether the check digits of an account number without spaces are right (ISO 13616).

    Example:
        >>> is_iban("DE89370400440532013000"), is_iban("DE89370400440532013001")
        (True, False)
    """
    moved = bare[4:] + bare[:4]
    return int("".join(str(int(char, 36)) for char in moved)) % 97 == 1


def passes_luhn(digits: str) -> bool:
    """Whether the check digit of a number is right (ISO 7812).

    Example:
        >>> passes_luhn("4111111111111111"), passes_luhn("4111111111111112")
        (True, False)
    """
    numbers = [int(digit) for digit in reversed(digits)]
    doubled = [sum(divmod(2 * number, 10)) for number in numbers[1::2]]
    return (sum(numbers[::2]) + sum(doubled)) % 10 == 0


def is_payment_card(digits: str) -> bool:
    """Whether a number is one that an issuer of payment cards could have given out.

    The first digits say whose it is; without them one number of ten would be a card.

    Example:
        >>> is_payment_card("4111111111111111"), is_payment_card("1700000000005")
        (True, False)
    """
    if not 13 <= len(digits) <= 19:
        return False
    two, four = int(digits[:2]), int(digits[:4])
    by_length = {
        13: two // 10 == 4,
        14: two in {30, 36, 38, 39},
        15: two in {34, 37},
        16: two // 10 == 4
        or 51 <= two <= 55
        or 2221 <= four <= 2720
        or two in {35, 60, 62, 64, 65, 81},
    }
    has_issuer = by_length.get(len(digits), two // 10 == 4 or two in {50, 56, 57, 58, 62, 63, 67})
    return has_issuer and passes_luhn(digits)
