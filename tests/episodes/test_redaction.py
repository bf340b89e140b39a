"""Personal data and secrets: what is recognised, and where it is replaced."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.cost import check_cost
from support.records import records

from agentkit import Episode, File
from agentkit.episodes import RetrievalTrace, Turn
from agentkit.episodes.redaction import PATTERNS, Redaction
from agentkit.episodes.secrets import SECRET_NAME
from agentkit.errors import UsageError
from agentkit.media import Media
from agentkit.messages import AssistantMessage, ProviderItem, ToolCall, ToolResult

FOUND = {
    "email": [
        "ann@example.org", "Ann.Lee+tag@sub.example.co.uk", "müller@example.de", "a_b%c@x-y.io",
        "\u7528\u6237@\u4f8b\u5b50.\u516c\u53f8", "u@xn--fsqu00a.xn--0zwm56d", "\u0438\u0432\u0430\u043d@\u043f\u0440\u0438\u043c\u0435\u0440.\u0440\u0444",
    ],
    "phone": [
        "+1 415 555 0100", "+49 30 1234567", "+14155550100", "(415) 555-0100", "415-555-0100",
        "415.555.0100", "1-415-555-0100", "+1\u00a0415\u00a0555\u00a00100", "+1\u2011415\u2011555\u20110100",
        "\uff0b81 3 1234 5678", "+33 1 23 45 67 89", "+44 (0)20 7946 0958", "+7 (495) 123-45-67",
        "+86 138 0013 8000", "+91 98765 43210", "+\u0669\u0666\u0666 \u0665\u0660 \u0661\u0662\u0663 \u0664\u0665\u0666\u0667",
    ],
    "card": [
        "4111111111111111", "4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005",
        "3782 822463 10005", "30569309025904", "6011111111111117",
        "4111\u00a01111\u00a01111\u00a01111",
    ],
    "secret": [
        "sk-abcdefghijklmnop1234", "ghp_abcdefghijklmnopqrst", "AKIAIOSFODNN7EXAMPLE",
        "ASIAIOSFODNN7EXAMPLE", "glpat-abcdefghij0123456789", "npm_" + "a1" * 18, "dop_v1_" + "0f" * 32,
        "SG.abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz", "xoxb-1234567890-abc", "eyJhbGciOiJI.eyJzdWIiOiIx.abc-_1",
    ],
}  # fmt: skip
LEFT = [
    "Python 3.11.4, version 1.2.3.4", "127.0.0.1 is here",
    "$1,234,567.89 or 1234567890123.45 or 3.14159265358979", "EUR 1 000 000 000 000",
    "2026-03-02T10:00:00+00:00", "2026-11-22", "12:34:56", "12:34:56.789", "1700000000000",
    "1700000000000000000", "4111111111111112", "order 9999999999999999", "1-800", "555-1234",
    "DE89370400440532013001", "std::vector",
    "00:1A:2B:3C:4D:5E", "@decorator", "me@localhost", "package@1.2.3", "a @ b", "x @ y.T",
    "sk-short", "my password is required", "password: must be long", "api_key: string",
    "glaive/generate_password:308a5282", "123e4567-e89b-12d3-a456-426614174000",
    "ISBN 978-3-16-148410-0", "1 2 3 4 5 6 7 8 9 10 11 12 13", "0123456789abcdef01234567",
    "logo@2x.png", "sk-learn-tutorial-of-the-day", "Bearer authentication", "Basic understanding of it",
    "http://localhost:8080/a@b", "https://host:443/x", "deadbeef:cafe", "call_1234567890123", "5 + 10 - 15", "(a) 123-4567",
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"), [(n, text) for n, all_ in FOUND.items() for text in all_]
)
@pytest.mark.parametrize("around", ["I am {}, ok?", '{{"x": "{}"}}'])
def test_what_is_personal_is_found_whole(name, text, around):
    """Each sort is found whatever stands around it, all of it, and called by its name."""
    assert Redaction().text(around.format(text)) == around.format(f"<{name}>")


@pytest.mark.parametrize("text", LEFT)
def test_what_only_looks_like_it_is_left(text):
    """Versions, prices, dates, times, counts, code and invalid check digits stay as they are."""
    assert Redaction().text(text) == text


@pytest.mark.parametrize("name", PATTERNS)
def test_each_pattern_is_on_or_off_by_its_name(name):
    """A pattern that is not asked for finds nothing, and one alone finds its own."""
    for text in FOUND[name]:
        assert Redaction(patterns=[name]).text(text) == f"<{name}>"
        others = [other for other in PATTERNS if other != name]
        assert Redaction(patterns=others).text(text) == text


def test_what_stands_without_a_space_is_found():
    """Where a language leaves no space before a number it is found whole."""
    redact = Redaction()
    assert redact.text("\u96fb\u8a71+81312345678\u3067\u3059") == "\u96fb\u8a71<phone>\u3067\u3059"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("my password is hunter2, ok", "my password is <secret>, ok"),
        ("DB_PASSWORD=hunter2!", "DB_PASSWORD=<secret>"),
        ('{"user": "ann", "password": "correct horse"}', '{"user": "ann", "password": "<secret>"}'),
        ('{"api_key":"a\\"b"}', '{"api_key":"<secret>"}'),
        ("Authorization: Bearer abcdefghijkl1234", "Authorization: Bearer <secret>"),
        ("{'password': 'correct horse'}", "{'password': '<secret>'}"),
        ('"{\\"api_key\\": \\"correct horse\\"}"', '"{\\"api_key\\": \\"<secret>\\"}"'),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic <secret>"),
        ("postgres://ann:pa55/x", "postgres://ann:pa55/x"),
        ("postgres://ann:pass@host/db", "postgres://ann:<secret>@host/db"),
        ("https://u:a@host.example/@b/x", "https://u:<secret>@host.example/@b/x"),
        ("redis://u:a@host:6379/x@b", "redis://u:<secret>@host:6379/x@b"),
        ("https://:t0ken@example.org/x", "https://:<secret>@example.org/x"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- x", "<secret> x"),
        ("x -----BEGIN PRIVATE KEY-----\ncut off", "x <secret>"),
    ],
)
def test_what_is_called_a_secret_is_one(text, left):
    """What stands behind the word is taken out, and the word stays."""
    assert Redaction().text(text) == left


HOSTILE = [
    "://:", "://a:b", "sk-", "SG.aaaaaaaaaaaaaaaa", "bearer a", "\u00a01", "+1\u4e00",
    '\\"password\\": \\"', "'token': '", "a@", "@", "1.", "+1 ", "eyJaaaaaaaa-", '"password": "',
    ":", "4111 ", "<email>",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_long_hostile_text_is_done(unit):
    """Repetitions that make careless patterns quadratic end; a test that hangs is stopped."""
    text = unit * (250_000 // len(unit))
    assert isinstance(Redaction().text(text), str)


HIDDEN = "hunter2-Tr0ub4dor"
LONG = "q7Zk2" * 8

FOUND_secrets = [
    f"DB_PASS={HIDDEN}", f"export SMTP_PASS={HIDDEN}", f"PGPASSWORD={HIDDEN}", f"MYSQL_PWD={HIDDEN}",
    f"dbPassword={HIDDEN}", f"user=ann password:{HIDDEN}", f"GITHUB_TOKEN={HIDDEN}",
    f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={LONG}==;EndpointSuffix=x",
    f"Endpoint=sb://a.example/;SharedAccessKeyName=Root;SharedAccessKey={LONG}=",
    f"https://a.blob.example/c?sv=2022&sig={LONG}%3D&se=2026", f"https://x.example/api/f?code={LONG}",
    f"https://s3.example/k?X-Amz-Signature={LONG}", f"https://x.example/?key={LONG}",
    f"client_secret%3D{HIDDEN}", f"a=1%26password%253D{HIDDEN}", f"&quot;password&quot;:&quot;{HIDDEN}&quot;",
    f"{{\\u0022password\\u0022:\\u0022{HIDDEN}\\u0022}}", f"password\uff1d{HIDDEN}", f"password \u201c{HIDDEN}\u201d".replace(" ", "="),
    f"KeyError('token={HIDDEN}')", f'KeyError("token={HIDDEN}")', f"token: {LONG}", f"f(password={HIDDEN})",
    f"Passwort: {HIDDEN}", f"Kennwort ist {HIDDEN}", f"contrase\u00f1a={HIDDEN}", f"mot de passe : {HIDDEN}", f"senha: {HIDDEN}",
    f"\u5bc6\u7801\uff1a{HIDDEN}", f"\u30d1\u30b9\u30ef\u30fc\u30c9\uff1a{HIDDEN}", f"\u5bc6\u7801\u662f{HIDDEN}", f"\u043f\u0430\u0440\u043e\u043b\u044c: {HIDDEN}",
    f"pass\u200bword={HIDDEN}", f"pa\u00adss\u2060word: {HIDDEN}", f"pass\ufffdword={HIDDEN}", f"p\u0000assword={HIDDEN}",
    f"Authorization: bearer {HIDDEN}", f"AUTHORIZATION: BEARER {HIDDEN}", f"authorization: token {HIDDEN}",
    f"proxy-authorization: basic {LONG}", f"('authorization', 'Bearer {HIDDEN}')", f"(b'x-api-key', b'{HIDDEN}')",
    f'Authorization: Digest username="ann", response="{HIDDEN}"', f"X-Api-Key: {HIDDEN}", f"x-auth-token: {HIDDEN}",
    f"Cookie: a=b; session={HIDDEN}", f"Set-Cookie: sid={HIDDEN}; Path=/", f"set-cookie: sid=plain{HIDDEN}",
    f"machine example.org login ann password {HIDDEN}", f"login ann\n  password {HIDDEN}",
    f"psql --password {HIDDEN}", f"x --db-password={HIDDEN}", f"x --token {HIDDEN}", f"curl -u ann:{HIDDEN} https://x",
    f"<password>{HIDDEN}</password>", f"<db.Password>{HIDDEN}</db.Password>", f"ftp://ann:{HIDDEN}@host/",
    f"password => {HIDDEN}",
    f"'password' => '{HIDDEN}'",
    f"password := {HIDDEN}",
    f"password -> {HIDDEN}",
    f"the password was {HIDDEN}",
    f"assert password == '{HIDDEN}'",
    f"private_token={HIDDEN}",
    f"password is {HIDDEN}", f"api_key: {HIDDEN}", f"The access token is {HIDDEN}.", f"secret = {HIDDEN}",
    f"aws_secret_access_key = {LONG}", f"passphrase='{HIDDEN}'", f"password={HIDDEN}" + "x" * 300,
    f"password     =     {HIDDEN}", f"password      : {HIDDEN}", f'password:     "{HIDDEN}"', f"api_key     = {HIDDEN}",
    f'{{"name": "DB_PASSWORD", "value": "{HIDDEN}"}}', f"mysql://u:a/{HIDDEN}@h/x", f"https://{LONG}@github.example/x",
    f"SECRET_KEY_BASE={HIDDEN}", f"SECRET_KEY_BASE: '{HIDDEN}'", f'{{"PASSWORD_ROOT_2": "{HIDDEN}"}}', f"secret_key_base: {LONG}",
    f"token_client_secret={HIDDEN}", f"\u0130 PASSWORD={HIDDEN}",
    f"mysql -u root -p{HIDDEN} shop", f"mysqldump -p{HIDDEN} > x", f"mariadb --host db -p{HIDDEN}",
    f"postgresql://u:p@a/{HIDDEN}@db/x", f"redis://:a@b@{HIDDEN}@db.example:6379/0", f"https://u:p@{HIDDEN}@db.example/x",
    f'"password": "{"x" * 400}{HIDDEN}"', f'"password": "cut off {HIDDEN}', f'{{"password": "a\\"{HIDDEN}"}}',
]  # fmt: skip

WHOLE = [
    'password="a b c"', "password='a b c'", "password: 'a b c'", 'password = "a b c"', "secret is 'a b c'",
    'PASSWORD="a b c"', 'passwd="a b c', '\\"password\\": \\"a b c\\"', "--password 'a b c'",
    "DB_PASS=swordfishc", "export A_SECRET=swordfishc", "psql --password c", "API_TOKEN=c1d2e3f",
]  # fmt: skip

KEYS = [
    "GOCSPX-" + "aB3-_" * 5, "ya29." + "a1B2" * 10, "npm_" + "a1" * 18, "pypi-" + "AgEI" * 12, "xoxp-123-456-abc",
    "xoxe.xoxp-1-abcdefghij", "xapp-1-A1-2-abcdef", "gho_" + "a1" * 18, "github_pat_" + "a1" * 20,
    "AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "sk_live_" + "a1" * 12, "rk_live_" + "a1" * 12,
    "whsec_" + "a1" * 16, "shpat_" + "0f" * 16, "hvs." + "a1B" * 10, "gsk_" + "a1" * 20, "dckr_pat_" + "a1" * 12,
    "123456789:AA" + "a1B" * 11, "eyJhbGciOiJI.eyJzdWIiOiIx.abc-_1", "glsa_" + "a1" * 18,
    "-----BEGIN EC PRIVATE KEY-----\nMII\n-----END EC PRIVATE KEY-----",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQ\n-----END PGP PRIVATE KEY BLOCK-----",
    "sk-ab\u200bcdefghijklmn1234op",
]  # fmt: skip

INNOCENT = [
    "max_tokens=5", "max_tokens: 4096", "tokens=128000", "total_tokens=1532, prompt_tokens=12", "token=5", "token: 12",
    "The prompt has 4096 tokens; 12 tokens are left.", "TOKEN_LIMIT=4096", "MAX_TOKEN=512", "unexpected token: word2",
    "Unexpected token '}' at position 12", "next_page_token=CAUQAA9x", "password must have 8 characters",
    "password: between 8 and 20 characters", "password is 8-20 characters long", "password_min_length=8",
    "The password is required.", "password: str", "password: SecretStr", "password='required'", 'password = "string"',
    "Use --password to set the password.", "--password TEXT  The password.", "--password is required", "[--password VALUE]",
    "sort_key=name", "primary_key=id1", "PRIMARY_KEY=customer_id2", "public_key=abc123def", "foreign_key: user_id2",
    "KeyError('user_12')", "key=value1", "keyboard=qwerty12", "monkey=ape123", "signature(a=1, b=2)", "signature(x: int) -> str",
    "?sig=5", "?code=US-CA", "?key=name&page=2", "sig=figure2", "code=404", "status_code=500", "?code=HTTP_404",
    "pass=12 fail=3", "12 pass: 3 fail", "high_pass=2000Hz", "low_pass=0.5", "BYPASS=true2", "passed=3, passengers=4a5b6c",
    "compass: 270deg NW", "pass: see below", "secretary=Ann2", "The secret is out.", "secret: optional",
    "cookie policy: see page 3", "Cookie: none", "per cookie: 70 of them / 140 = 50%", "A cookie: 12 g of sugar, 3 g of fat", "cookies=5",
    "authorization: must be given", "Authorization: Basic authentication is off", "Bearer authentication", "bearer token required",
    "docker run -u 1000:1000 x", "chown -u root:root x", "PWD=/home/ann1", "cwd=/srv/a1", "OLDPWD=/home/ann1",
    "login with your password first", "the login page asks for a password twice", "<password>required</password>",
    "https://example.org:8080/users/@ann", "https://documentation-of-the-project@example", "https://example.org/a%20b?x=1%3D2", "100%25 sure", "&quot;password&quot; is a field", "\u5bc6\u7801\uff1a\u5fc5\u987b\u5305\u542b8\u4e2a\u5b57\u7b26",
    "Passwort: mindestens acht Zeichen", "mot de passe : obligatoire", "contrase\u00f1a: obligatoria",
    "zero\u200bwidth 12", "an npm_package and a hf_model", "sk-learn-tutorial-of-the-day", "sha256=" + "0f" * 32,
    "commit 308a5282c0ffee", "request_id=req_123abc456def", "session_id=12", "etag=abc123def456", "auth=none", "OAuth 2.0",
    "client_id=my-app-12", "AccountName=store12", "SharedAccessKeyName=Root", "tokenizer=gpt2", "token_type=bearer",
    "TOKEN_LIMIT_2=4096tokens", "SECRET_FILE=/run/secrets/db1", "TOKEN_URL=https://a1.example/oauth2", "PASSWORD_MIN_LENGTH=8letters",
    "SECRET_NAMES=shop-db-1", "token_bucket_size: burst100per10seconds", "SECRET_DATA = load2(x)", "token_value = tokens12of_the_request.first",
    "SECRET_KEY_BASE=${KEY2BASE}", "SECRET_KEY_BASE: required", "secret_key_base: see page 12", "a token_of_thanks2: it is for you",
    "mysql -P3306 -h db1.example", "mysql -p$PASSWORD1", "mysql -u root -p shop2024", "find x -print0 -path2024x", "step-p2024abc of mysql",
    "https://ann@host.example/@scope/x1", "/webhooks/12/ab", "/webhooks/123456789012345678/messages",
]  # fmt: skip


@pytest.mark.parametrize("text", FOUND_secrets)
def test_a_secret_is_taken_out_whatever_it_is_written_like(text):
    """Nothing of the value is left, and something says that it was there; twice is once."""
    redact = Redaction(patterns={"secret"}).text
    left = redact(text)
    assert HIDDEN not in left
    assert "Tr0ub" not in left
    assert LONG not in left
    assert "<secret>" in left
    assert redact(left) == left


@pytest.mark.parametrize("text", WHOLE)
def test_a_quoted_value_is_taken_out_whole(text):
    """Words between quotes are one value."""
    left = Redaction(patterns={"secret"}).text(text)
    assert "<secret>" in left
    assert " b" not in left
    assert "c" not in left.replace("<secret>", "").replace("secret", "").replace("\\", "")


@pytest.mark.parametrize("text", KEYS)
def test_a_key_in_the_format_of_its_issuer(text):
    """Keys are found by their look alone, all of them."""
    assert Redaction(patterns={"secret"}).text(f"It is {text}, ok?") == "It is <secret>, ok?"


@pytest.mark.parametrize("text", INNOCENT)
def test_what_only_talks_of_secrets_is_whole(text):
    """Counts, names of columns, rules, help pages and code keep every letter."""
    assert Redaction(patterns={"secret"}).text(text) == text


@pytest.mark.parametrize(
    "name", ["DB_PASS", "AccountKey", "Passwort", "contrase\u00f1a", "\u5bc6\u7801"]
)
def test_a_field_of_that_name_holds_a_secret(name):
    """Fields of JSON data are called so too."""
    assert SECRET_NAME.search(name)


def test_a_value_beside_the_name_of_a_secret_is_one():
    """Variables of environments are listed so."""
    listed = [{"name": "DB_PASSWORD", "value": "swordfish"}, {"name": "HOST", "value": "swordfish"}]
    hidden = Redaction()(Episode(episode_id="e1", request="", output=listed)).output
    assert [one["value"] for one in hidden] == ["<secret>", "swordfish"]


def test_a_secret_in_a_container_is_one():
    """Objects and lists under the name of a secret, and pairs, as headers are listed."""
    held = [
        {"password": {"value": "swordfish", "type": "string", "minLength": 8}},
        {"credentials": {"user": "ann", "pass": "swordfish", "hosts": ["a1b2c3"]}},
        {"passwords": ["swordfish", 12], "secret": {"name": "shop-1", "key": "db-1"}},
        {"headers": [["Authorization", "swordfish1"], ("x-api-key", "swordfish1")]},
        {"SECRET_KEY_BASE": "swordfish1", "SECRET_FILE": "swordfish1", "TOKEN_KINDS": "a1b2c3"},
        {"required": ["password", "username"], "fields": ["password", "email", "address12"]},
        {"passwords": 3, "value": "a", "pass": "b", "order": ["number", "A-123456"]},
    ]
    hidden = Redaction()(Episode(episode_id="e1", request="", output=held))
    assert hidden.output == [
        {"password": {"value": "<secret>", "type": "string", "minLength": 8}},
        {"credentials": {"user": "ann", "pass": "<secret>", "hosts": ["a1b2c3"]}},
        {"passwords": ["<secret>", "<secret>"], "secret": {"name": "shop-1", "key": "db-1"}},
        {"headers": [["Authorization", "<secret>"], ("x-api-key", "<secret>")]},
        {"SECRET_KEY_BASE": "<secret>", "SECRET_FILE": "swordfish1", "TOKEN_KINDS": "a1b2c3"},
        *held[-2:],
    ]
    assert Redaction()(hidden) == hidden
    whole = Episode(episode_id="e1", request="", output=held)
    assert Redaction(patterns={"email"})(whole) == whole


def test_the_address_of_a_webhook_is_a_key():
    """Whoever has one of Discord's may write there."""
    url = "https://discord.com/api/webhooks/123456789012345678/" + "aB3_" * 17
    hidden = "https://discord.com/api/webhooks/<secret>"
    assert Redaction(patterns={"secret"}).text(f"Post to {url}.") == f"Post to {hidden}."


UNITS = [
    "password=", 'password="', "password: '", "password is ", "pass\u200bword=", "%70", "%2525", '\\"', "\\" * 9,
    "&quot;", "token=a", "token: ", "Cookie: a", "cookie:", "authorization: digest ", "authorization: basic a",
    "--password ", "--" + "a" * 40, " -u a:", "login a ", "login ", "<password>", "<secret", "AKIAIOSFODNN7EXAMPLE ",
    "xoxb-", "xox", "12345678:AA", "?sig=aaaaaaaaaaaaaaaa", "\u5bc6\u7801:", "x-api-key', '", "api_" * 3 + "key", "secret.",
    "password=" + "." * 40, "PASSWORD", "A_TOKEN=", "mot de ", "://a:b", "-----BEGIN PRIVATE KEY-----", "eyJaaaaaaaa.eyJ",
    "secret_", "SECRET_A", "token_a_b_c_d_e", "mysql ", "mysql -p", "://a:b@c/", "://:a@@", "/webhooks/123456789012345678/",
]  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_a_message_costs_little(unit):
    """What a model or a log reads of a hostile text is searched within the bound of all inputs."""
    text = unit * (20_000 // len(unit))
    check_cost(lambda: Redaction(patterns={"secret"}).text(text), len(text))


MAIL = "ann@example.org"

KEPT = {  # ids, names, digests and fixed words
    "episode_id", "model", "library_digest", "session_id", "resumes", "started_at", "call_id",
    "name", "stage", "goal", "shortlist", "offered", "cards", "ranked", "tool", "verifier", "cause",
    "metrics", "library_names", "episode", "arguments of recoveries", "protocol",
    "shortened", "program",
}  # fmt: skip


FULL = {
    str: st.just(MAIL),
    Any: st.just({MAIL: [MAIL, 1, None, {"deep": MAIL}]}),
    Media: st.just(File(data=MAIL.encode(), name=MAIL)),
    int: st.just(1),
    float: st.just(1.0),
    bool: st.just(True),
}
"""An address in each text."""


def found_texts(value: Any, field: str = "") -> list[tuple[str, str]]:
    """Each text of a value with the innermost field of a record that it is in."""
    if isinstance(value, str):
        return [(field, value)]
    if is_dataclass(value):
        is_recovery = type(value).__name__ == "Recovery"
        found = [(one.name, getattr(value, one.name)) for one in fields(value)]
        return [
            text
            for name, part in found
            for text in found_texts(
                part, f"{name} of recoveries" if is_recovery and name == "arguments" else name
            )
        ]
    if isinstance(value, Mapping):
        return [
            text for pair in value.items() for part in pair for text in found_texts(part, field)
        ]
    if isinstance(value, list | tuple):
        return [text for part in value for text in found_texts(part, field)]
    return []


@given(records(Episode, FULL, full=True))
def test_every_text_is_reached(everywhere):
    """The address is gone from all fields but ids, names and digests; new fields are noticed."""
    left = {field for field, text in found_texts(Redaction()(everywhere)) if MAIL in text}
    assert left == KEPT - {"protocol"}  # the whole part of a provider went, as it would change
    assert {field for field, _ in found_texts(everywhere)} > left
    assert Redaction()(everywhere).turns[0].tokens is None  # the texts once more


def test_an_episode_without_findings_is_equal():
    """What holds nothing personal is not changed."""
    call = ToolCall(call_id="1", name="add", arguments={"a": 2, "when": "2026-03-02"})
    result = ToolResult(call_id="1", name="add", status="ok", value=[4, 1.5, True], text="v1.2.3.4")
    turn = Turn(message=AssistantMessage(text="4", tool_calls=(call,)), results=(result,))
    episode = Episode(episode_id="e1", request="2 + 2?", turns=(turn,), metadata={"user": "u1"})
    assert Redaction()(episode) == episode


def test_fields_that_are_called_secrets_hold_none():
    """A password is one whatever it looks like, in a list too; with the pattern off it stays."""
    arguments = {
        "password": "horse", "db_password": "battery", "apiKey": "staple", "access_token": ["a", "b"],
        "passcode": 1234, "authorization": {"kind": "x"}, "secret": True, "token": "", "key": "C major", "primary_key": "id",
        "next_page_token": "p2",
    }  # fmt: skip
    call = ToolCall(call_id="1", name="login", arguments=arguments)
    episode = Episode(
        episode_id="e", request="", turns=(Turn(message=AssistantMessage(tool_calls=(call,))),)
    )
    assert Redaction()(episode).calls[0].arguments == arguments | {
        "password": "<secret>", "db_password": "<secret>", "apiKey": "<secret>",
        "access_token": ["<secret>", "<secret>"], "passcode": "<secret>",
    }  # fmt: skip
    assert Redaction(patterns=["email"])(episode) == episode


def test_numbers_of_cards_are_found_without_quotes():
    """A card as a JSON number becomes a placeholder; other numbers stay numbers."""
    output = {"card": 4111111111111111, "time": 1700000000000, "count": 7, "yes": True}
    redacted = Redaction()(Episode(episode_id="e", request="", output=output))
    assert redacted.output == output | {"card": "<card>"}


def test_keys_that_become_equal_are_told_apart():
    """No entry of an object is lost because its key was personal."""
    output = {"a@example.org": 1, "b@example.org": 2, 3: "c@example.org"}
    once = Redaction()(Episode(episode_id="e", request="", output=output))
    assert once.output == {"<email>": 1, "<email> 2": 2, 3: "<email>"}
    assert Redaction()(once) == once


def test_words_of_what_was_taken_out_go_too():
    """Search terms of a redacted query that are no words of it any more are left out."""
    trace = RetrievalTrace(
        query=f"mail {MAIL} tickets",
        shortlist=(),
        offered=(),
        unmatched=("ann", "example", "ticket"),
    )
    turn = Turn(message=AssistantMessage(), retrieval=trace)
    redacted = Redaction()(Episode(episode_id="e", request="", turns=(turn,)))
    assert redacted.turns[0].retrieval.query == "mail <email> tickets"
    assert redacted.turns[0].retrieval.unmatched == ("ticket",)


def test_parts_of_a_provider_stay_whole_or_go():
    """A part that would change is left out, for its provider would not take it; others stay."""
    clean = ProviderItem(protocol="p", data={"signature": "abc", "text": "hm"})
    message = AssistantMessage(provider_items=(clean, ProviderItem(protocol="p", data={"t": MAIL})))
    redacted = Redaction()(Episode(episode_id="e", request="", turns=(Turn(message=message),)))
    assert redacted.turns[0].message.provider_items == (clean,)


def test_patterns_of_your_own():
    """What a pattern of your own finds is called by its name, beside what ours find."""
    redact = Redaction(more={"staff": re.compile(r"\bE-\d{4}\b")})
    assert redact.text(f"E-1234 and {MAIL}") == "<staff> and <email>"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"patterns": ["mail"]}, "'mail'"),
        ({"patterns": "email"}, "there are"),
        ({"more": {"Staff": re.compile("x")}}, "Staff"),
        ({"more": {"email": re.compile("x")}}, "email"),
    ],
)
def test_what_can_not_be_meant_is_refused(wrong, said):
    """An unknown pattern or a bad name is a mistake and says so."""
    with pytest.raises(UsageError, match=said):
        Redaction(**wrong)


def test_text_that_goes_on_turning_up_more_goes_as_a_whole():
    """A pattern that finds its own placeholders has an end, and the end is stable."""
    redact = Redaction(more={"all": re.compile(r"\w+")})
    assert redact.text("a b") == redact.text(redact.text("a b")) == "<redacted>"


PIECES = st.sampled_from(
    [MAIL, "+1 415 555 0100", "4111111111111111", "sk-abcdefghijklmnop1234", "password=", '"password": "',
     "Bearer ", "<email>", "<", ">", ":", "<secret>", "@", ".", "-", " ", "+", "415-555-0100", "4111 ",
     "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "hunter2", "v"]
)  # fmt: skip
TEXTS = st.lists(PIECES | st.text(max_size=6), max_size=8).map("".join)


VALUES = st.recursive(
    TEXTS | st.integers() | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@given(request=TEXTS, output=VALUES, name=TEXTS, session=st.none() | TEXTS)
def test_ids_never_change(request, output, name, session):
    """Whatever an episode holds, its ids and the names of its tools stay, and twice is once."""
    call = ToolCall(call_id=name, name=name, arguments={"x": output})
    turn = Turn(message=AssistantMessage(text=request, tool_calls=(call,)))
    episode = Episode(
        episode_id=name,
        request=request,
        turns=(turn,),
        output=output,
        session_id=session,
        resumes=name,
    )
    redact = Redaction()
    once = redact(episode)
    assert (once.episode_id, once.session_id, once.resumes) == (name, session, name)
    assert [(one.call_id, one.name) for one in once.calls] == [(name, name)]
    assert redact(once) == once
