"""What tools were used for, and what of it may be kept."""

from __future__ import annotations

import pytest

from agentkit.evolution.learning import private_part

# --- What looks private, and what only looks like it ---------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "mail ann.b+c@example.co.uk now",
        "use sk-abcdefghijklmnop1234",
        "ghp_" + "a1" * 12,
        "my password is hunter2",
        "call +44 20 7946 0958",
        "call me at (555) 123-4567",
        "or 555.123.4567.",
        "my number is 219-09-9999.",
        "pay to DE89 3704 0044 0532 0130 00",
        "card 4111 1111 1111 1111",
        "token Zx8Kq2Lm9Pv4Rt7Yw1Nb6Hc3",
        "x-" + "eyJhbGciOiJI." * 2 + "c2lnbmF0dXJl",
    ],
)
def test_formats_that_are_private(text):
    """An address, a key or a number of an account is known by its look."""
    assert private_part(text) == "private data"
    assert private_part({"deep": [{"in": text}]}) == "private data"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Flights from Rome to Oslo on 2026-08-15, two adults",
        "area of a 10 x 20.5 rectangle",
        "order 12345678901234",
        "part 1-555-123-4567-9 of ISBN 978-0-306-40615-7",
        "how do I change my password?",
        "https://example.org/a/long/path/that/goes/on",
        "the method calculateTheAreaOfAVeryLargeTriangle",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "@ann said so",
        "罗马会下雨吗",
    ],
)
def test_formats_that_are_not(text):
    """Dates, orders, names of functions and places in the web stay."""
    assert private_part(text) is None


@pytest.mark.parametrize("name", ["password", "api_key", "accessToken", "Authorization"])
def test_fields_that_say_so(name):
    """A field that is called like a secret is one, unless it is empty."""
    assert private_part({"login": {name: "x"}}) == "a field that holds a secret"
    assert private_part({"login": {name: ""}}) is None
