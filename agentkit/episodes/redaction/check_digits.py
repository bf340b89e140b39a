"""Numbers that carry check digits: what only looks like one is left alone."""

from __future__ import annotations

from collections.abc import Mapping

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
    """How long an account number of a country is; 0 for one that has none.

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
