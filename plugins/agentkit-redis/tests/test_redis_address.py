"""The URL of a Redis store: what it says is read exactly, and its password is never shown."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import UsageError
from agentkit_redis import parse_address

WORDS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), min_size=1)


def test_what_is_not_said_is_usual():
    """A bare host means the usual port, database 0, the usual prefix and no encryption."""
    address = parse_address("redis://cache.example")
    assert (address.host, address.port, address.database) == ("cache.example", 6379, 0)
    assert (address.prefix, address.require, address.replicas) == ("agentkit", "none", 0)
    assert (address.uses_tls, address.timeout_seconds) == (False, 5.0)


def test_everything_can_be_said():
    """User, password, host, port, database and each option are read."""
    address = parse_address(
        "rediss://ada:p%40ss@[::1]:6390/3?prefix=team-a:&require=always&replicas=2&timeout=1.5"
        "&ssl_ca_certs=/etc/ca.pem&ssl_check_hostname=false"
    )
    assert (address.user, address.password, address.host) == ("ada", "p@ss", "::1")
    assert (address.port, address.database, address.prefix) == (6390, 3, "team-a")
    assert (address.require, address.replicas, address.timeout_seconds) == ("always", 2, 1.5)
    assert address.uses_tls
    assert address.tls == {"ssl_ca_certs": "/etc/ca.pem", "ssl_check_hostname": "false"}
    assert str(address) == "rediss://ada:***@[::1]:6390/3?prefix=team-a"


@given(password=WORDS, user=WORDS)
def test_any_password_is_read_and_none_is_shown(password: str, user: str):
    """A password of any characters comes through, and no text of an address holds it."""
    address = parse_address(f"redis://{quote(user, safe='')}:{quote(password, safe='')}@host")
    assert (address.user, address.password) == (user, password)
    assert f":{quote(password, safe='')}@" not in str(address).replace(":***@", "")
    assert str(address).startswith(f"redis://{user}:***@host")
    assert "password" not in repr(address)


@pytest.mark.parametrize(
    "url",
    [
        "redis:secret",
        "redis://:sec/ret@host",
        "redis://:sec#ret@host",
        "redis://host:secret",
        "redis://host:99999999/secret",
        "redis://host/secret",
        "redis://host/0?password=secret",
        "redis://host/0?secret=1",
        "redis://host/0?prefix={secret}",
        "redis://host/0?prefix=",
        "redis://host/0?require=secret",
        "redis://host/0?replicas=-1",
        "redis://host/0?timeout=0",
        "redis://host/0?timeout=inf",
        "redis://host/0?ssl_ca_certs=x",
        "http://secret@host",
        "redis://[::1",
    ],
)
def test_what_means_nothing_is_refused(url: str):
    """A URL that can not be meant is refused with the way to write it."""
    with pytest.raises(UsageError, match=r"rediss?://|prefix|require|timeout|option"):
        parse_address(url)


@pytest.mark.parametrize(
    "url",
    [
        "redis://:hush/hush@host",
        "redis://:hush#@host",
        "redis://:hush?@host",
        "redis://a:hush:hush@[host",
        "redis://host?password=hush",
        "redis://:hush@host:port",
        "redis://:hush@host/x",
    ],
)
def test_a_broken_url_does_not_give_the_password_away(url: str):
    """Neither the message nor what is behind it holds any part of the password."""
    with pytest.raises(UsageError) as caught:
        parse_address(url)
    assert "hush" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
