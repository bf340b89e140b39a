"""How secrets look: keys in formats that their issuers document, and what is called a password."""

from __future__ import annotations

import re
from collections.abc import Iterator

KEY_FORMATS = re.compile(
    r"""
      \b(?:sk|pk|rk)-(?=[\w-]{0,60}\d)[\w-]{16,}   # OpenAI, Anthropic, OpenRouter, ...
    | \b(?:sk|rk)_(?:live|test)_\w{16,}            # Stripe
    | \bgh[pousr]_\w{20,} | \bgithub_pat_\w{20,}   # GitHub
    | \bhf_\w{20,}                                 # Hugging Face
    | \bglpat-[\w-]{20,} | \bnpm_\w{36}            # GitLab, npm
    | \bdop_v1_[0-9a-f]{64}                        # DigitalOcean
    | \bSG\.[\w-]{16,64}\.[\w-]{16,64}             # SendGrid
    | \bA[KS]IA[0-9A-Z]{16}\b                      # AWS
    | \bAIza[\w-]{30,}                             # Google
    | \bxox[abprs]-[\w-]{10,}                      # Slack
    | \beyJ[\w-]{8,900}\.eyJ[\w-]{8,4000}\.[\w-]+  # JSON web tokens; unbounded would be quadratic
    | (?<=[Bb]earer\ )(?=[\w.~+/-]{0,99}\d)[\w.~+/-]{12,}=*
    | (?<=[Aa]uthorization:\ Basic\ )[A-Za-z0-9+/]{6,}=*
    | (?<=[Aa]uthorization":\ "Basic\ )[A-Za-z0-9+/]{6,}=*
    """,
    re.VERBOSE,
)
"""Keys whose format their issuers document."""

KEY_PARTS = (
    *("sk-", "pk-", "rk-", "sk_", "rk_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    *("hf_", "AKIA", "ASIA", "AIza", "xox", "eyJ", "earer ", " Basic ", '"Basic '),
    *("glpat-", "npm_", "dop_v1_", "SG."),
)
"""What each of these keys holds one of: most texts hold none, and that is seen at once."""

_NAMES = (
    r"passw(?:or)?d|passphrase|passcode|secret|credentials?|authorization|cookie"
    r"|(?:api|access|private|secret)[ _-]?key|(?:access|refresh|auth|api|bearer|session)[ _-]?token"
)

SECRET_NAME = re.compile(rf"(?:{_NAMES})$|^pwd$|^token$", re.IGNORECASE)
"""Names of fields that hold a secret, however it looks."""

_FIELD = rf"[\w-]{{0,40}}(?:{_NAMES})"

_QUOTED = re.compile(
    rf'"{_FIELD}"\s{{0,3}}:\s{{0,3}}"((?:[^"\\]|\\.){{1,300}})"'
    rf'|\\"{_FIELD}\\"\s{{0,3}}:\s{{0,3}}\\"([^"\\]{{1,300}})\\"'  # in a text in JSON
    rf"|'{_FIELD}'\s{{0,3}}:\s{{0,3}}'([^'\\]{{1,300}})'",  # as Python writes it
    re.IGNORECASE,
)
"""A field of that name in JSON that stands in a text."""

_IN_URL = re.compile(r"(?<=://)[^\s/:@\"'<>]{0,64}:([^\s/@\"'<>]{1,200})@")
"""``postgres://ann:PASSWORD@host``."""

_ASSIGNED = re.compile(
    rf"(?<![A-Za-z0-9])(?:{_NAMES}|pwd)[\"']?\s{{0,3}}"
    r"(?:is\s|=|:[\s\"'])\s{0,3}[\"']?([^\s\"'<>,;]{4,200}(?<!\.))",
    re.IGNORECASE,
)
"""Said in words; what follows is one when it has a digit or a sign, or it would be any word."""

_NAME_PARTS = ("pass", "secret", "credential", "authorization", "cookie", "key", "token", "pwd")
"""What a finding holds one of, at least: most texts hold none, and that is seen at once."""

_SIGN = re.compile(r"[\d!@#$%^&*]")

_BEGIN, _END = "-----BEGIN ", "-----END "
_PEM = re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----")
_LAST_LINE = re.compile(r"-----END [A-Z ]{0,30}-----")


def secret_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where secrets stand in a text."""
    if any(part in text for part in KEY_PARTS):
        yield from (found.span() for found in KEY_FORMATS.finditer(text))
    yield from _private_keys(text)
    if "://" in text:
        yield from (found.span(1) for found in _IN_URL.finditer(text))
    lower = text.casefold()
    if not any(part in lower for part in _NAME_PARTS):
        return
    yield from (found.span(found.lastindex or 0) for found in _QUOTED.finditer(text))
    for found in _ASSIGNED.finditer(text):
        if _SIGN.search(found.group(1)):
            yield found.span(1)


def _private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Keys in PEM; one that is cut off goes on to the end."""
    if _BEGIN not in text:
        return
    position = 0
    while begin := _PEM.search(text, position):
        end = text.find(_END, begin.end())
        line = _LAST_LINE.match(text, end) if end != -1 else None
        position = line.end() if line else len(text)
        yield begin.start(), position
