"""Keys, passwords and tokens."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from agentkit.evolution.learning.private import KEY_FORMATS
from agentkit.evolution.validation.reasons import Form, first_found, reason
from agentkit.evolution.validation.report import FailedCheck, ProposedChange

_NAMED = re.compile(
    r"""
    -----BEGIN[ ][A-Z ]*(?:PRIVATE|SECRET)
    | \b(?:password|passcode|passwort|kennwort|mot\ de\ passe|contrase[nñ]a|secret|api[ _-]?key
        | access[ _-]?(?:key|token)|auth[ _-]?token|bearer|client[ _-]?secret|pin\ code|pwd)
      \s{0,2}(?:is\b|ist\b|est\b|es\b|[:=\uff1a])\s{0,2}["'`]?(?=\S{0,40}[\d!@#$%^&*])[^\s"'`,.]{4,}
    | (?:密码|口令|密钥|パスワード|暗証番号)\s?(?:是|为|は|[:=\uff1a])\s?[\w!@#$%^&*-]{4,}
    | \b[a-z][a-z0-9+]*://[^\s/:@]+:[^\s/@]+@
    | \b(?:glpat|npm|pypi|dop_v1|shpat|sq0csp|SG|xapp|ya29|AC|SK)[-_.][\w.-]{16,}
    | \b(?:ASIA|AROA|AIDA)[0-9A-Z]{16}\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
_GATE = re.compile(
    r"\S{12}|-----|[:=\uff1a@]|\s(?:is|ist|est|es)\s|[\u662f\u4e3a\u306f]|(?i:bearer)"
)
_NAMED_HOLDS = (
    *("-----begin", "pass", "kennwort", "contrase", "secret", "key", "token", "bearer", "pin code"),
    *("pwd", "密码", "口令", "密钥", "パスワード", "暗証番号", "://", "glpat", "npm", "pypi"),
    *("dop_v1", "shpat", "sq0csp", "sg-", "sg_", "sg.", "xapp", "ya29", "ac-", "ac_", "ac."),
    *("sk-", "sk_", "sk.", "asia", "aroa", "aida"),
)
_KEY_HOLDS = (
    *("sk-", "pk-", "rk-", "sk_", "rk_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    *("hf_", "akia", "aiza", "xox", "eyj", "bearer "),
)
_LONG_WORD = re.compile(r"(?<![\w/+=.-])[\w+/=-]{20,}(?![\w/+=-])", re.ASCII)
_SEPARATOR = re.compile(r"[_/-]")
_RUN = re.compile(r"[a-z]+|[A-Z]+|\d+")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.IGNORECASE)
_LEAST_LENGTH = 16
_LEAST_DIGITS = 2
_LEAST_BITS = 3.4
"""Shannon entropy a character. Words of natural language stay below it, random ones above."""


def no_secrets(change: ProposedChange) -> Iterator[FailedCheck]:
    """Keys in known formats, passwords that are called so, and long random words.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> named = "The id is a UUID, e.g. 123e4567-e89b-12d3-a456-426614174000."
        >>> list(no_secrets(rewrite("cars_search", {"rule": named})))
        []
        >>> leaked = rewrite("cars_search", {"rule": "Sign in with password: winter2024!"})
        >>> [(found.code, found.excerpt) for found in no_secrets(leaked)]
        [('secret', 'password: winter2024!')]
    """
    for edit, found, _ in first_found(change, _FORMS, gate=_GATE):
        yield reason(
            "secret",
            "lexical",
            edit,
            found,
            message="it holds what looks like a key, a password or a token",
            advice="take it out, and have it replaced where it is valid",
        )


def is_random_word(word: str) -> bool:
    """Whether a long word looks drawn at random.

    Example:
        >>> is_random_word("Zx9Qm2Lw8Rt5Vb1Nk7Hs"), is_random_word("calendar_find_slot_2025")
        (True, False)
    """
    part = max(_SEPARATOR.split(word), key=len)
    if _UUID.match(word) or sum(map(str.isdigit, part)) < _LEAST_DIGITS:
        return False
    counts = Counter(part)
    bits = -sum(n / len(part) * math.log2(n / len(part)) for n in counts.values())
    is_mixed = len(_RUN.findall(part)) * 4 >= len(part)  # words are long runs of one kind
    return len(part) >= _LEAST_LENGTH and is_mixed and bits >= _LEAST_BITS


_FORMS = (
    Form(pattern=KEY_FORMATS, holds=_KEY_HOLDS),
    Form(pattern=_NAMED, holds=_NAMED_HOLDS),
    Form(pattern=_LONG_WORD, counts=is_random_word),
)
