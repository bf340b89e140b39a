"""What the URL of a store says, and what of it is ever shown."""

from __future__ import annotations

import logging

import psycopg
import pytest
from hypothesis import given, settings, strategies as st
from support.local_server import free_port

from agentkit import open_store
from agentkit.errors import StoreError, StoreUnavailableError, UsageError
from agentkit_postgres.address import Address

SECRET = "s3cret/pass word"
QUOTED = "s3cret%2Fpass%20word"


def test_parameters_of_ours_are_taken_out():
    """Ours set the store up; all others go to libpq as they are."""
    address = Address.parse(
        "postgres://ada@db.example:6000/tools?schema=my%20team&pool_size=9&timeout=2.5"
        "&statement_timeout=7&sslmode=require&application_name=bot"
    )
    assert (address.schema, address.pool_size) == ("my team", 9)
    assert (address.timeout, address.statement_timeout) == (2.5, 7.0)
    found = psycopg.conninfo.conninfo_to_dict(address.conninfo)
    assert (found["sslmode"], found["application_name"]) == ("require", "bot")
    assert address.shown == "postgresql://ada@db.example:6000/tools"


@pytest.mark.parametrize(
    "parameter",
    [
        *("schema=", "schema=pg_mine", f"schema={'x' * 64}", "pool_size=0", "pool_size=many"),
        *("timeout=0", "timeout=nan", "timeout=soon", "statement_timeout=-1", "colour=red"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(parameter):
    """A parameter of ours with a value that means nothing, or one that nobody knows, raises."""
    with pytest.raises(UsageError) as caught:
        Address.parse(f"postgresql://ada:{QUOTED}@db.example/tools?{parameter}")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:s3cret%zz@db.example/tools",
        "postgresql://ada:s3cret?x%zz@db.example/tools",
        "postgresql://ada:s3cret@db.example:port/tools",
        "postgresql://ada:s3cret",
        "postgresql://[s3cret",
    ],
)
def test_a_broken_url_shows_no_password(url):
    """An URL that libpq cannot read is refused without a part of it being repeated."""
    with pytest.raises(UsageError) as caught:
        open_store(url)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__context__ is None


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12))
def test_any_password_reaches_libpq_and_is_not_shown(password):
    """Whatever characters a password has, libpq gets it and neither words nor repr show it."""
    from urllib.parse import quote

    address = Address.parse(f"postgresql://ada:{quote(password, safe='')}@db/tools")
    found = psycopg.conninfo.conninfo_to_dict(address.conninfo)
    assert found["password"] == password
    assert address.shown == "postgresql://ada@db/tools"
    assert "conninfo" not in repr(address)


def test_a_wrong_password_is_refused(own_server, caplog):
    """A wrong password raises at once, with the next step, and is told nowhere."""
    caplog.set_level(logging.DEBUG)
    url = own_server.url_of(port=own_server.port, password="wr0ng")
    with pytest.raises(StoreError, match="password") as caught:
        open_store(f"{url}?timeout=5")
    assert not isinstance(caught.value, StoreUnavailableError)
    assert "Give the right user and password" in str(caught.value)
    assert "wr0ng" not in str(caught.value) + caplog.text


@pytest.mark.parametrize(
    ("user", "database", "words"),
    [("agentkit", "no_such", "createdb"), ("nobody", "postgres", "user")],
)
def test_an_absent_database_or_user_is_refused(own_server, user, database, words):
    """A database or a user that is not there raises at once and says what to do."""
    url = own_server.url_of(port=own_server.port, user=user).replace("/postgres", f"/{database}")
    with pytest.raises(StoreError, match=words) as caught:
        open_store(f"{url}?timeout=5")
    assert not isinstance(caught.value, StoreUnavailableError)
    assert SECRET not in str(caught.value)


@pytest.fixture(scope="module")
def refusing(own_server):
    """A server with a user and databases that may not be used."""
    made = ("ROLE shut_out PASSWORD 'x'", "DATABASE private", "ROLE ada LOGIN PASSWORD 'x'")
    with psycopg.connect(own_server.url, autocommit=True) as connection:
        for what in made:
            connection.execute(f"CREATE {what}".encode())
        connection.execute("REVOKE CONNECT ON DATABASE private FROM public")
        yield own_server
        for what in made:
            connection.execute(f"DROP {' '.join(what.split()[:2])}".encode())


@pytest.mark.parametrize(
    ("user", "end", "advice"),
    [
        ("agentkit", "postgres", "Give the user's password"),
        ("shut_out:x", "postgres", "LOGIN"),
        ("ada:x", "private", "GRANT CONNECT"),
        ("ada:x", "postgres?options=-c%20no_such%3D1", r"\?options="),
        ("ada:x", "postgres?sslmode=require", r"\?sslmode="),
    ],
)
def test_a_refusal_says_what_mends_it(refusing, user, end, advice, caplog):
    """What trying again does not mend is no unavailability; it is told once, and not in the log."""
    with pytest.raises(StoreError, match=f"refused the connection.*{advice}") as caught:
        open_store(f"postgresql://{user}@127.0.0.1:{refusing.port}/{end}")
    assert not isinstance(caught.value, StoreUnavailableError)
    assert caplog.text == ""


def test_a_refused_connection_is_told_at_once(own_server):
    """Where nobody listens, the store is unavailable, long before the time to wait is over."""
    with pytest.raises(StoreUnavailableError, match="refused") as caught:
        open_store(own_server.url_of(port=free_port()) + "?timeout=100")
    assert SECRET not in str(caught.value)
