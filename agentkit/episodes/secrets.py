"""Patterns of secrets: keys in formats their issuers document, and values named as passwords.

Tables: ``_FORMATS`` of keys, ``_NAMES`` of what holds a secret, ``_FORMS`` of how a name and its
value stand together. Each pattern consumes what it reads: the time is linear in the text.
"""

from __future__ import annotations

import html
import re
import unicodedata
from array import array
from collections.abc import Callable, Iterator, Sequence

_FORMATS = (
    # what it holds (any of them), how it looks
    (("sk-", "pk-", "rk-"), r"\b(?:sk|pk|rk)-(?=[\w-]{0,60}\d)[\w-]{16,}"),  # OpenAI, Anthropic
    (("sk_", "rk_", "whsec_"), r"\b(?:(?:sk|rk)_(?:live|test)|whsec)_[\w+/]{16,}"),  # Stripe
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"\bgh[pousr]_\w{20,}"),  # GitHub
    (("github_pat_", "hf_", "gsk_"), r"\b(?:github_pat|hf|gsk)_\w{20,}"),  # Hugging Face, Groq
    (("glpat-", "gldt-", "glrt-"), r"\bgl(?:pat|dt|rt)-[\w-]{20,}"),  # GitLab
    (("npm_", "pypi-"), r"\bnpm_\w{36} | \bpypi-[\w-]{40,}"),
    (("dop_v1_", "dckr_pat_"), r"\bdop_v1_[0-9a-f]{64} | \bdckr_pat_[\w-]{20,}"),  # DigitalOcean
    (("SG.",), r"\bSG\.[\w-]{16,64}\.[\w-]{16,64}"),  # SendGrid
    # AWS, with the secret that often stands behind
    (("AKIA", "ASIA"), r"\bA[KS]IA[0-9A-Z]{16}\b(?:[\s:,;|\"']{1,4}[A-Za-z0-9/+]{40}(?![\w/+]))?"),
    (("AIza", "GOCSPX-", "ya29."), r"\b(?:AIza|GOCSPX-|ya29\.)[\w-]{20,}"),  # Google
    (("xox", "xapp-"), r"\bx(?:ox[a-eprs]|app)(?:\.xox[a-z])?-[\w.-]{10,}"),  # Slack
    (("hooks.slack.com/",), r"(?<=hooks\.slack\.com/services/)\w[\w/]{20,}"),
    (("/webhooks/",), r"(?<=/webhooks/)\d{17,20}/[\w-]{60,}"),  # Discord
    (("shpat_", "shpss_", "shpca_"), r"\bshp(?:at|ss|ca)_[0-9a-f]{32}"),  # Shopify
    (("sq0csp-", "sq0atp-"), r"\bsq0(?:csp|atp)-[\w-]{20,}"),  # Square
    (("hvs.", "glsa_"), r"\bhvs\.[\w-]{24,} | \bglsa_\w{32,}"),  # Vault, Grafana
    (("ATATT3x", "lin_api_"), r"\bATATT3x[\w=-]{40,} | \blin_api_\w{30,}"),  # Atlassian, Linear
    (("AGE-SECRET-KEY-1",), r"\bAGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    ((":AA",), r"\b\d{8,10}:AA[\w-]{33}(?![\w-])"),  # Telegram
    # JSON web tokens; unbounded would be quadratic
    (("eyJ",), r"\beyJ[\w-]{8,900}\.eyJ[\w-]{8,4000}\.[\w-]+"),
    (("earer ", "EARER "), r"(?<=[Bb]earer\ |BEARER\ )(?=[\w.~+/-]{0,99}\d)[\w.~+/-]{12,}=*"),
    (
        (" Basic ",),
        r"(?<=[Aa]uthorization:\ Basic\ )(?=[A-Za-z+/]{0,99}?(?:\d|[a-z][A-Z]))[A-Za-z0-9+/]{6,}=*",
    ),
    (('"Basic ',), r"(?<=[Aa]uthorization\":\ \"Basic\ )[A-Za-z0-9+/]{6,}=*"),
)

KEY_FORMATS = re.compile("|".join(look for _, look in _FORMATS), re.VERBOSE)
"""Keys whose format their issuers document."""

KEY_PARTS = tuple(part for parts, _ in _FORMATS for part in parts)
"""Every such key contains one of these; most texts contain none, so this check is quick."""

_KEYS = r"(?:api|access|private|secret|account|signing|encryption|master|subscription)[ _-]?key"
_TOKENS = (
    r"(?:access|refresh|auth|api|bearer|session|id|bot|security|private|csrf|client|device)"
    r"[ _-]?token"
)
_PASSES = r"(?:db|user|admin|root|smtp|mail|ftp|sql|redis|proxy|login)[_-]?pass(?!w)"
_NAMES = (
    r"passw(?:or)?d|passphrase|passcode|secret|credentials?|authorization|cookie"
    rf"|{_KEYS}|{_TOKENS}|{_PASSES}"
    r"|passwort|kennwort|contrase[n\u00f1]a|mot[ _]de[ _]passe|senha|wachtwoord"
    r"|\u043f\u0430\u0440\u043e\u043b\u044c|has\u0142o|l\u00f6senord"
)
_NAMES_OF_EAST_ASIA = (
    r"\u5bc6\u7801|\u5bc6\u78bc|\u53e3\u4ee4|\u5bc6\u94a5|\u30d1\u30b9\u30ef\u30fc\u30c9"
    r"|\u6697\u8a3c\u756a\u53f7|\ube44\ubc00\ubc88\ud638"
)

SECRET_NAME = re.compile(
    rf"(?:{_NAMES}|{_NAMES_OF_EAST_ASIA})$|^pwd$|^token$|shared[ _-]?access[ _-]?signature$",
    re.IGNORECASE,
)
"""Names of fields that hold a secret, however it looks."""

_SECRETS_NAME = re.compile(r"(?:passw(?:or)?d|passphrase|passcode)s$", re.IGNORECASE)
_IN_SECRET = re.compile(r"value|pass|pin", re.IGNORECASE)

_QUOTED = r"(?:\"((?:[^\"\\\n]|\\.)*+)|'((?:[^'\\\n]|\\.)*+))"
"""The rest of a quoted value, as far as it goes; one that is cut off ends with its line."""

_WORD = r"([^\s\"'<>,;]{4,}(?<![.)\]}]))"

_SIGN = re.compile(r"[\d!@#$%^&*]")
_RANGE = re.compile(r"\d{1,3}-\d{1,3}\Z")
_MIXED = re.compile(r"(?=\D*\d)(?=[^A-Za-z]*[A-Za-z])\S{6,}\Z")
_USUAL_TEXT = """
string str text value required optional none null true false
password secret token cookie hidden masked redacted
option flag prompt needs takes must should will is are
was has have when where which with that this instead from
and for the not before after only or to
"""
_USUAL = frozenset(_USUAL_TEXT.split())
"""Words that follow such a name in ordinary talk about it."""


def _is_odd(value: str) -> bool:
    """Whether it is not a word of any language: it has a digit or a sign, and is not a range."""
    return _SIGN.search(value) is not None and not _RANGE.match(value)


def _is_mixed(value: str) -> bool:
    """Whether letters and digits stand together in one longer word."""
    return _MIXED.match(value) is not None


def _is_long_and_mixed(value: str) -> bool:
    return len(value) >= 16 and _is_mixed(value)


def _is_no_usual_word(value: str) -> bool:
    return value.casefold() not in _USUAL


def _is_no_number(value: str) -> bool:
    return _is_no_usual_word(value) and not value.isdigit()


def _is_argument(value: str) -> bool:
    """Not ``--password TEXT``, which is how help pages name a value."""
    return _is_no_usual_word(value) and not (value.isalpha() and value.isupper())


def _holds_pairs(value: str) -> bool:
    return "=" in value


def _is_credential(value: str) -> bool:
    """Whether credentials follow ``Basic``: ordinary words are of one case."""
    return _is_odd(value) or re.search(r"[a-z][A-Z]", value) is not None


_ANY_NAME = rf"(?:{_NAMES}|(?<![A-Za-z0-9])pwd(?!=[/~]))"
_TOLD_OF = (
    r"name|file|path|dir|ur[il]|host|port|type|kind|arn|id|ref|class|model|limit|len|length|min|max"
    r"|size|count|used|ttl|age|expir[a-z]*|created|updated|rotat[a-z]*|algo[a-z]*|format|header"
    r"|field|param|prefix|region|version|endpoint|policy|date|at|hint|reset|status|link|pattern"
    r"|regex|scope|issue|issuer|label|var|bucket|budget"
)
_NAME_OF_PARTS = (
    rf"(?:secret|passw(?:or)?d|token)(?:_(?!(?:{_TOLD_OF})s?(?![a-z]))[a-z0-9]{{1,20}}){{1,4}}"
)
_OF_PARTS = re.compile(rf"{_NAME_OF_PARTS}$", re.IGNORECASE)
"""``SECRET_KEY_BASE``, and not ``SECRET_FILE`` and others that tell of a secret."""

_HOLDS = r"[\"']?\s{0,3}[:=]\s{0,3}[\"']?"
_IS = r"(?:(?:is|was|ist|est|es)\s|[:=]=|[=-]>|=)"

_FORMS = (
    # what stands behind a name, which values count. "password": "correct horse"
    (rf"{_ANY_NAME}[\"']\s{{0,9}}(?::|=>)\s{{0,9}}{_QUOTED}", bool),
    (rf"{_ANY_NAME}\s{{0,9}}(?:{_IS}|:)\s{{0,9}}{_QUOTED}", _is_no_usual_word),
    (rf"{_ANY_NAME}[\"']?\s{{0,9}}(?:{_IS}|:[\s\"'])\s{{0,9}}[\"']?{_WORD}", _is_odd),
    (rf"(?<![\w/.-]){_ANY_NAME}:{_WORD}", _is_odd),
    # in variables of the environment any word is one
    (
        r"(?-i:(?:[A-Z]{1,9}_|(?<=_))(?:PASS|PWD)|PASSWORD|PASSWD|SECRET)=([^\s\"'<>,;${}()]{4,})",
        _is_no_number,
    ),
    (rf"(?-i:[A-Z]{1, 9}_TOKEN|(?<=[A-Z0-9]_)(?:TOKEN|PASS))\s{{0,3}}=\s{{0,3}}{_WORD}", _is_mixed),
    (
        rf"(?-i:{_NAME_OF_PARTS.upper()}){_HOLDS}([^\s\"'<>,;()\[\]{{}}$]{{6,}}+)(?![(\[])",
        _is_mixed,
    ),
    (rf"{_NAME_OF_PARTS}{_HOLDS}([\w+/=-]{{16,}}+)(?![(\[.])", _is_mixed),
    (
        (
            rf"(?:{_NAMES_OF_EAST_ASIA})\s{{0,3}}[:=\u662f\u4e3a\u70ba\u306f\ub294]"
            r"\s{0,3}([!-~]{4,})"
        ),
        _is_odd,
    ),
    # these are words of texts and code as well: only what looks drawn counts
    (rf"(?<![\w-])(?:token=|pass[:=]\s?)[\"']?{_WORD}", _is_mixed),
    (rf"(?<![\w-])token[\"']?\s{{0,3}}(?:is\s|:)\s{{0,3}}[\"']?{_WORD}", _is_long_and_mixed),
    # headers, as they are sent and in pairs of bytes; XML
    (r"cookie:\s{0,3}([\w.$!#%&*+^`|~-]{1,100}=[^\n\"']+)", bool),
    (
        (
            r"authorization[\"']?\s{0,3}[:=,]\s{0,3}b?[\"']?"
            r"(?:basic|bearer|token|apikey|negotiate|ntlm)\s{1,3}([^\s\"'<>,;]{6,})"
        ),
        _is_credential,
    ),
    (
        (
            r"authorization[\"']?\s{0,3}[:=,]\s{0,3}b?[\"']?"
            r"(?:digest|hawk|oauth|aws4-[\w-]{1,30})\s{1,3}([^\n<>]{8,})"
        ),
        _holds_pairs,
    ),
    (
        rf"(?:{_NAMES})[\"']\s{{0,9}},\s{{0,9}}[\"']value[\"']\s{{0,9}}:\s{{0,9}}{_QUOTED}",
        _is_no_usual_word,
    ),
    (rf"(?:{_NAMES})[\"'],\s?b?[\"']([^\"'\n]{{8,}})", _is_odd),
    (rf"(?:{_NAMES})>([^<>]+)</", _is_no_usual_word),
)
"""Patterns of a name with its secret; the last group is the secret."""

_ALONE: tuple[tuple[str, str, Callable[[str], object]], ...] = (
    # what the text holds, how it looks, which values count: URLs, command lines, .netrc
    (
        "=",
        r"(?:[?&;]|x-amz-|x-goog-)(?:sig|signature|code|key|auth)=([^\s\"'<>,;&]{16,})",
        _is_mixed,
    ),
    (
        "--",
        (
            rf"(?<![\w-])--[\w-]{{0,40}}(?:{_NAMES}|token)(?:\s{{1,3}}|=)"
            r"(?:\"([^\"\n]++)|'([^'\n]++)|([^\s\"'<>,;`|\[\]-][^\s\"'<>,;`|\]]*+))"
        ),
        _is_argument,
    ),
    ("-u", r"\s-u(?:ser)?[ =][\"']?[^\s:\"']{1,64}:([^\s\"'<>]{4,})", _is_mixed),
    *(
        (
            program,
            rf"\b{program}\s(?:[^\n|;&]{{0,100}}?\s)?-p(?!\$)([^\s\"'<>|;&]{{6,}})",
            _is_mixed,
        )
        for program in ("mysql", "mysqldump", "mysqladmin", "mariadb")
    ),
    ("://", r"://([\w-]{20,200})@", _is_mixed),
    ("login", r"\blogin\s{1,9}\S{1,64}\s{1,9}password\s{1,9}([^\s<>]+)", bool),
)
"""The same, where the name does not come first."""

_NAME = re.compile(
    rf"(?:{_NAMES}|{_NAMES_OF_EAST_ASIA}|pwd|token|pass)"
    r"(?=(?:_[a-z0-9]{1,20}){0,4}[\"']?\s{0,9}(?:[=:,>\u662f\u4e3a\u70ba\u306f\ub294]|->|(?:is|was|ist|est|es)\s))".casefold()
)
_NAME_PARTS = (
    *("pass", "pwd", "secret", "credential", "authorization", "cookie", "key", "token", "mot"),
    *("kennwort", "contrase", "senha", "wachtwoord", "\u043f\u0430\u0440\u043e\u043b\u044c"),
    *("has\u0142o", "l\u00f6senord", "\u5bc6", "\u53e3", "\u30d1", "\u6697", "\ube44"),
)
"""Most texts hold none of these, and that is seen at once."""

_BEHIND_NAMES = tuple((re.compile(look, re.IGNORECASE), counts) for look, counts in _FORMS)
_ON_THEIR_OWN = tuple(
    (holds, re.compile(look, re.IGNORECASE), counts) for holds, look, counts in _ALONE
)

_HOST = r"(?:localhost|[\w-]{1,63}(?:\.[\w-]{1,63}){1,9}|[\w-]{1,63}(?=:\d{1,5}/)|\[)[/:]"
_IN_URL = re.compile(
    r"(?<=://)[^\s/:@\"'<>]{0,64}:(?!\d{1,5}/)"
    rf"([^\s@\"'<>]{{1,200}}(?:@(?!{_HOST})[^\s@?#,;\"'<>]{{1,100}}(?=@)){{0,4}})@"
)
"""``postgres://ann:PASSWORD@host``; what stands before a path is a port. A raw ``@`` is the
password's, unless a host and a path stand behind it."""

_BEGIN, _END = "-----BEGIN ", "-----END "
_PEM = re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
_LAST_LINE = re.compile(r"-----END [A-Z ]{0,30}-----")

_UNSEEN = (
    r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\ufe00-\ufe0f\ufeff\ufffd\U000e0000-\U000e007f"
)
_WIDE_OR_CURLY = r"\uff01-\uff5e\u2018\u2019\u201c-\u201e\u00ab\u00bb"
_ODD_SIGN = re.compile(rf"[%&\\{_UNSEEN}{_WIDE_OR_CURLY}]")
_DISGUISES = re.compile(
    rf"[{_UNSEEN}{_WIDE_OR_CURLY}]"
    r"|%(?:25){0,3}[2-7][0-9A-Fa-f]|\\{1,8}u00[2-7][0-9A-Fa-f]|\\{1,8}[\"']"
    r"|&(?:quot|apos|amp|#3[49]|#x2[27]|#61|#x3d|#58|#x3a);"
)
"""Invisible characters, and other ways to write ASCII: in URLs, JSON, HTML, wide or curly."""

_CURLY = str.maketrans("\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb", '\'\'"""""')


def holds_secret(name: str, value: object, *, inside: bool = False) -> bool:
    """Whether a field of that name holds a secret.

    Args:
        name: The name of the field.
        value: What it holds; of lists the name may be a plural.
        inside: Whether it is a field of an object that is named as a secret.

    Example:
        >>> holds_secret("db_password", "swordfish"), holds_secret("user", "ann")
        (True, False)
    """
    if SECRET_NAME.search(name) or (inside and _IN_SECRET.fullmatch(name)):
        return True
    if isinstance(value, list | tuple):
        return _SECRETS_NAME.search(name) is not None
    return isinstance(value, str) and _is_mixed(value) and _OF_PARTS.search(name) is not None


def is_secret_pair(pair: Sequence[object]) -> bool:
    """Whether two texts are a name and its secret, as headers are listed."""
    match pair:
        case [str(name), str(value)]:
            return len(value) >= 8 and _is_odd(value) and SECRET_NAME.search(name) is not None
    return False


def secret_spans(text: str) -> Iterator[tuple[int, int]]:
    """The places of secrets in a text, in order; overlapping ones are merged.

    Example:
        >>> [text[slice(*span)] for text in ("DB_PASS=hunter2",) for span in secret_spans(text)]
        ['hunter2']
    """
    found = [*_spans(text)]
    if _ODD_SIGN.search(text) and _DISGUISES.search(text):
        plain, places = _undisguised(text)
        found += ((places[start], places[end]) for start, end in _spans(plain))
    last = (0, 0)
    for start, end in sorted(found):
        if start < last[1]:
            last = (last[0], max(last[1], end))
            continue
        if last[1]:
            yield last
        last = (start, end)
    if last[1]:
        yield last


def _spans(text: str) -> Iterator[tuple[int, int]]:
    if any(part in text for part in KEY_PARTS):
        yield from (found.span() for found in KEY_FORMATS.finditer(text))
    yield from _private_keys(text)
    if "://" in text:
        yield from (found.span(1) for found in _IN_URL.finditer(text))
    lower = text.replace("\u0130", "I").lower()  # the one letter that would become two
    yield from _behind_names(text, lower)
    for holds, look, counts in _ON_THEIR_OWN:
        for found in look.finditer(text) if holds in lower else ():
            value = found.lastindex or 0
            if counts(found[value]):
                yield found.span(value)


def _behind_names(text: str, lower: str) -> Iterator[tuple[int, int]]:
    """Each form is tried where a name begins, and reads no sign twice."""
    if not any(part in lower for part in _NAME_PARTS):
        return
    ends = [0] * len(_BEHIND_NAMES)
    for name in _NAME.finditer(lower):
        for place, (look, counts) in enumerate(_BEHIND_NAMES):
            if name.start() < ends[place]:
                continue
            if found := look.match(text, name.start()):
                ends[place], value = found.end(), found.lastindex or 0
                if counts(found[value]):
                    yield found.span(value)


def _undisguised(text: str) -> tuple[str, array[int]]:
    """A text in plain signs, and where each of them stands in it; its end is the last place."""
    pieces, places, position = [], array("q"), 0
    for found in _DISGUISES.finditer(text):
        pieces.append(text[position : found.start()])
        places.extend(range(position, found.start()))
        position = found.end()
        if sign := _plain_sign(found[0]):
            pieces.append(sign)
            places.append(found.start())
    places.extend(range(position, len(text) + 1))
    return "".join([*pieces, text[position:]]), places


def _plain_sign(written: str) -> str:
    """The sign that a disguise stands for; none for what nobody sees."""
    if len(written) == 1:
        sign = unicodedata.normalize("NFKC", written.translate(_CURLY))
        return sign if sign.isascii() and sign.isprintable() else ""
    if written[0] == "&":
        return html.unescape(written)
    if written[-1] in "\"'":
        return written[-1]
    return chr(int(written[-2:], 16)).replace("\x7f", "")


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
