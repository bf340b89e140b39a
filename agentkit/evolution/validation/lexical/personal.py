"""What belongs to a person."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentkit.evolution.validation.reasons import Form, first_found, reason
from agentkit.evolution.validation.report import FailedCheck, ProposedChange

_PHONE = re.compile(
    r"(?<![\w+])(?:\+|00)[1-9]\d{0,2}[ ()/.-]{0,2}\d[\d ()/.-]{6,16}\d\b"  # international
    r"|(?<![\w-])(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-. ]\d{4}\b(?!-)"  # North American
    r"|(?<!\d)1[3-9]\d[ -]?\d{4}[ -]?\d{4}(?!\d)"  # mobile, China
    r"|(?<!\d)0\d{1,4}[ /-]\d{2,4}[ -]?\d{2,4}(?:[ -]?\d{2,4})?(?!\d)"  # national, Europe and Japan
)
_NUMBER = re.compile(
    r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])"  # social security number, United States
    r"|(?<!\d)[1-9]\d{5}(?:19|20)\d\d(?:0[1-9]|1[0-2])[0-3]\d{4}[\dXx](?!\d)"  # identity, China
)
_ACCOUNT = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")
_CARD = re.compile(r"(?<![\w-])\d(?:[ -]?\d){12,18}(?![\w-])")
_BORN = re.compile(
    r"\b(?:geboren am|n[ée]e? le|nacid[oa] el|patient|customer|kunde|cliente?)\s"
    r"(?:is |: ?)?(?:Mr|Mrs|Ms|Dr|Herr|Frau|M\.|Mme|Sr|Sra)\.?\s[A-Z]\w+"
    r"|\b(?:born on|date of birth:?|geboren am|née? le|nacid[oa] el)\s\d"
    r"|\b(?:Mr|Mrs|Ms|Dr|Herrn?|Frau|Mme|Sra?)\.?\s[A-Z]\w+\s[A-Z]\w+"
    r"|(?:先生|女士)(?:的|\uff0c)?(?:电话|手机|住址|身份证)"
)
_DIGITS = re.compile(r"\d[\d ()/.-]{4}")
_CAPITAL = re.compile(r"[a-z.] [A-Z]|\d|先生|女士")
_FICTITIOUS = re.compile(r"(?:\D|^)555\D?01\d\d$|\+?1?\D*555")


def no_private_data(change: ProposedChange) -> Iterator[FailedCheck]:
    """Phone numbers, national ids, bank accounts, payment cards, people with their title.

    Accounts and cards count when their check digits are right. Plain names of people are not
    seen; a judge may. Numbers that count upwards and American
    ones with 555 belong to nobody and pass.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> years = rewrite("cars_search", {"rule": "Years such as 2019 or 2020-2023."})
        >>> list(no_private_data(years))
        []
        >>> told = {"rule": "Mrs. Ada Palmer, +44 20 7946 0958, wants a V60."}
        >>> leaked = rewrite("cars_search", told)
        >>> [(found.code, found.excerpt) for found in no_private_data(leaked)]
        [('private_data', '+44 20 7946 0958')]
    """
    for edit, found, form in first_found(change, _FORMS):
        yield reason(
            "private_data",
            "lexical",
            edit,
            found,
            message=f"it holds {form.what}",
            advice="say what such values look like, without one that belongs to somebody",
        )


def _is_phone(found: str) -> bool:
    digits = "".join(filter(str.isdigit, found))
    made_up = _FICTITIOUS.search(found) or digits.startswith("123456") or len(set(digits)) < 3
    return not made_up and len(digits) >= 9


def _is_account(found: str) -> bool:
    """Whether the check digits of an IBAN are right (ISO 13616)."""
    bare = found.replace(" ", "")
    return int("".join(str(int(char, 36)) for char in bare[4:] + bare[:4])) % 97 == 1


def _is_card(found: str) -> bool:
    """Whether the check digit of a card number is right (ISO 7812)."""
    digits = [int(char) for char in reversed(found) if char.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


_FORMS = (
    Form(what="a phone number", pattern=_PHONE, counts=_is_phone, gate=_DIGITS),
    Form(what="a number that belongs to a person", pattern=_NUMBER, gate=_DIGITS),
    Form(what="a bank account", pattern=_ACCOUNT, counts=_is_account, gate=_DIGITS),
    Form(what="a payment card", pattern=_CARD, counts=_is_card, gate=_DIGITS),
    Form(what="something about a person", pattern=_BORN, gate=_CAPITAL),
)
