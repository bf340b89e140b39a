"""Patterns of personal data, by name. Each pattern takes time in proportion to the text.

They know formats, not meaning: no names, no addresses. A finding is checked where there is
something to check: the digits of cards and account numbers, the parts of an address of a computer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

from agentkit.episodes.secrets import secret_spans

PatternName = Literal["secret", "email", "iban", "card", "ipv6", "ipv4", "ssn", "phone"]

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

_SSN = re.compile(r"(?<![\w-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])")

_CARD = re.compile(
    r"(?<![\w.-])(?:\d{13,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -])\d{6}\2\d{4,5})"
    r"(?!\w|[.-]\d)"
)

_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}")

_BYTE = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = re.compile(rf"(?<![\w.-])(?:{_BYTE}\.){{3}}{_BYTE}(?![\w-]|\.\d)")
_IPV6 = re.compile(
    r"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:(?:\.\d{1,3}){3})?(?![\w:])"
)
_VERSION = re.compile(
    r"(?:\bv|\bver\.?|version|release|build|firmware|\w[=<>~]=)\s{0,2}\Z", re.IGNORECASE
)
_BEFORE = 12


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


def _ibans(text: str) -> Iterator[tuple[int, int]]:
    text, position = _plain(text), 0
    while found := _IBAN.search(text, position):
        end = _end_of_iban(found.group())
        position = found.start() + max(end, 4)
        if end:
            yield found.start(), position


def _end_of_iban(candidate: str) -> int:
    """The end of the account number at the start of a text; 0 when there is none."""
    left = length = iban_length(candidate[:2])
    for place, char in enumerate(candidate if length else "", start=1):
        left -= char != " "
        if left == 0:
            rest = candidate[place : place + 1]
            is_whole = not rest.strip()
            return place if is_whole and is_iban(candidate[:place].replace(" ", "")) else 0
    return 0


def _ipv4(text: str) -> Iterator[tuple[int, int]]:
    for found in _IPV4.finditer(text) if text.count(".") >= 3 else ():
        before = text[max(0, found.start() - _BEFORE) : found.start()]
        if not _is_numbering(found.group()) and not _VERSION.search(before):
            yield found.span()


def _is_numbering(found: str) -> bool:
    """Whether it is this computer, or rather a version, a section or a class of enzymes.

    One address of five hundred looks like ``3.5.1.50``, and hardly anybody has one of those.
    """
    parts = [int(part) for part in found.split(".")]
    return parts[0] in {0, 127} or (parts[0] <= 7 and max(parts) < 100)


def _ipv6(text: str) -> Iterator[tuple[int, int]]:
    from ipaddress import AddressValueError, IPv6Address

    for found in _IPV6.finditer(text) if text.count(":") >= 2 else ():
        if sum(map(bool, found.group().split(":"))) < 3:  # x[::2], fe80::1, ::1: nobody's
            continue
        try:
            IPv6Address(found.group())
        except AddressValueError:
            continue
        yield found.span()


def _ssns(text: str) -> Spans:
    text = _plain(text)
    return (found.span() for found in _SSN.finditer(text)) if text.count("-") >= 2 else ()


def _digits(text: str) -> str:
    return "".join(filter(str.isdigit, _plain(text)))


PATTERNS: Mapping[PatternName, Callable[[str], Spans]] = {
    "secret": secret_spans,
    "email": _emails,
    "iban": _ibans,
    "card": _cards,
    "ipv6": _ipv6,
    "ipv4": _ipv4,
    "ssn": _ssns,
    "phone": _phones,
}
"""Where each sort of personal data stands in a text, in the order in which they are looked for:
what one has taken, the next ones do not see."""


_IBAN_REGISTRY = """
AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22
DJ27 DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28
HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25
MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29
RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29
VA22 VG24 XK20 YE30
"""

_IBAN_LENGTHS: Mapping[str, int] = {entry[:2]: int(entry[2:]) for entry in _IBAN_REGISTRY.split()}
"""Characters of an IBAN by country, of those in the registry of SWIFT."""


def iban_length(country: str) -> int:
    """The length of a country's account numbers; 0 for one that has none.

    Example:
        >>> iban_length("DE"), iban_length("ZZ")
        (22, 0)
    """
    return _IBAN_LENGTHS.get(country, 0)


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
