"""What personal data looks like, and what looks like it and is none."""

from __future__ import annotations

import pytest

from agentkit.episodes.redaction import PATTERNS, Redaction

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
    "iban": ["DE89370400440532013000", "GB82 WEST 1234 5698 7654 32", "NO9386011117947",
        "DE89\u00a03704\u00a00044\u00a00532\u00a00130\u00a000"],
    "ipv4": ["178.34.55.101", "192.168.1.10", "8.8.8.8"],
    "ipv6": ["2001:db8::ff00:42:8329", "2001:0db8:85a3:0000:0000:8a2e:0370:7334"],
    "ssn": ["078-05-1120", "219-09-9999"],
    "secret": [
        "sk-abcdefghijklmnop1234", "ghp_abcdefghijklmnopqrst", "AKIAIOSFODNN7EXAMPLE",
        "ASIAIOSFODNN7EXAMPLE", "glpat-abcdefghij0123456789", "npm_" + "a1" * 18, "dop_v1_" + "0f" * 32,
        "SG.abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz", "xoxb-1234567890-abc", "eyJhbGciOiJI.eyJzdWIiOiIx.abc-_1",
    ],
}  # fmt: skip
LEFT = [
    "Python 3.11.4, version 1.2.3.4, v10.20.30.40, numpy==1.26.4.1, EC 3.5.1.50, section 1.2.3.4",
    "build 10.0.19041.1", "127.0.0.1 and 0.0.0.0 are here", "4.2.2.2",
    "$1,234,567.89 or 1234567890123.45 or 3.14159265358979", "EUR 1 000 000 000 000",
    "2026-03-02T10:00:00+00:00", "2026-11-22", "12:34:56", "12:34:56.789", "1700000000000",
    "1700000000000000000", "4111111111111112", "order 9999999999999999", "1-800", "555-1234",
    "000-12-3456", "666-12-3456", "123-45-67890", "900-12-3456",
    "DE89370400440532013001", "AB12 IS NOT AN ACCOUNT", "x[::2]", "std::vector", "a::b::c", "::1",
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
@pytest.mark.parametrize("around", ["{}", "I am {}, ok?", '{{"x": "{}"}}', "<b>{}</b>", "({})\n"])
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
    """Where a language leaves no space before a number, or two forms are one, it is found whole."""
    redact = Redaction()
    assert redact.text("\u96fb\u8a71+81312345678\u3067\u3059") == "\u96fb\u8a71<phone>\u3067\u3059"
    assert redact.text("NAT64 is 64:ff9b::192.0.2.33.") == "NAT64 is <ipv6>."


def test_two_ways_to_write_a_number_are_one():
    """Spaces and dashes of other sorts make no other pseudonym."""
    text = Redaction(key=b"0123456789abcdef").text
    assert text("+1\u00a0415\u2011555 0100") == text("+1 415 555 0100") == text("\uff0b14155550100")
    assert text("DE89\u00a03704\u00a00044\u00a00532\u00a00130\u00a000") == text(
        "DE89370400440532013000"
    )


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
        ("https://:t0ken@example.org/x", "https://:<secret>@example.org/x"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- x", "<secret> x"),
        ("x -----BEGIN PRIVATE KEY-----\ncut off", "x <secret>"),
    ],
)
def test_what_is_called_a_secret_is_one(text, left):
    """What stands behind the word is taken out, and the word stays."""
    assert Redaction().text(text) == left


HOSTILE = [
    "://:",
    "://a:b",
    "sk-",
    "SG.aaaaaaaaaaaaaaaa",
    "bearer a",
    "\u00a01",
    "+1\u4e00",
    '\\"password\\": \\"',
    "'token': '",
    "a@",
    "@",
    "1.",
    "+1 ",
    "eyJaaaaaaaa-",
    '"password": "',
    "DE12 ",
    ":",
    "4111 ",
    "<email>",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_long_hostile_text_is_done(unit):
    """Repetitions that make careless patterns quadratic end; a test that hangs is stopped."""
    text = unit * (250_000 // len(unit))
    assert isinstance(Redaction().text(text), str)
